//! Routes. Each has one family: an IPv4 route cannot hold an IPv6 hop.

mod family;
mod metric;
pub(crate) mod own;
mod text;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::net::raw::RawAttribute;

pub use metric::{METRIC, Metric};

/// `RT_TABLE_MAIN` (linux/rtnetlink.h).
pub const TABLE_MAIN: u32 = 254;
/// `RTPROT_KERNEL`: the kernel added it with an address; a plugin may have moved it to another table.
pub(crate) const PROTOCOL_KERNEL: u8 = 2;
/// `RTPROT_BOOT`: what `ip route add` gives.
const PROTOCOL_BOOT: u8 = 3;
/// `RTPROT_RA`: learnt from a router advertisement.
pub(crate) const PROTOCOL_RA: u8 = 9;
/// `RTN_UNICAST`.
pub const KIND_UNICAST: u8 = 1;
/// `RTN_BLACKHOLE`.
pub(crate) const KIND_BLACKHOLE: u8 = 6;
/// `RTN_THROW`, the last of the kinds that send packets nowhere.
const KIND_THROW: u8 = 9;
/// `RT_SCOPE_LINK`.
pub(crate) const SCOPE_LINK: u8 = 253;
/// `RT_SCOPE_UNIVERSE`, the widest scope: a route to it needs the narrower ones first.
pub const SCOPE_UNIVERSE: u8 = 0;

/// The position of a new route among those with the same destination, table and metric; the kernel uses the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Position {
    /// There must be no other one.
    Only,
    /// Before the others (IPv4 only).
    First,
    /// Behind the others.
    Last,
}

/// Destination, source, table, type of service and metric, by which the kernel finds a route.
pub(crate) type RouteKey = (IpNet, Option<IpNet>, u32, u8, Option<u32>);

/// One route of either family.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "family", try_from = "RouteOf<IpAddr, IpNet>")]
pub enum Route {
    /// IPv4.
    #[serde(rename = "inet")]
    V4(RouteOf<Ipv4Addr, Ipv4Net>),
    /// IPv6.
    #[serde(rename = "inet6")]
    V6(RouteOf<Ipv6Addr, Ipv6Net>),
}

/// A route of the family whose address type is `A` and prefix type is `N`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RouteOf<A, N> {
    /// Destination; `0.0.0.0/0` or `::/0` is the default route.
    pub dst: N,
    /// Source prefix (IPv6 subtrees).
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub src: Option<N>,
    /// Routing table.
    pub table: u32,
    /// Its origin (`RTPROT_*`).
    pub protocol: u8,
    /// Scope (`RT_SCOPE_*`).
    pub scope: u8,
    /// Type (`RTN_*`): 1 unicast, 6 blackhole, …
    #[serde(rename = "type")]
    pub kind: u8,
    /// Type of service.
    #[serde(default)]
    pub tos: u8,
    /// Metric of the route itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Preferred source address.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub prefsrc: Option<A>,
    /// The next hops; none for blackhole and similar types, several for multipath.
    pub hops: Vec<Hop<A>>,
    /// `RTA_METRICS`: mtu, advmss, …, by `RTAX_*` number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<Metric, u32>,
    /// IPv6 router preference (RFC 4191) when it is not medium.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preference: Option<u8>,
    /// The congestion control of TCP (`RTAX_CC_ALGO`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congctl: Option<String>,
    /// Attributes of the route, or of its one hop, that netfix does not interpret: realms, encapsulation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<RawAttribute>,
    /// The id of its nexthop object, from which it has the hops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nexthop: Option<u32>,
    /// The time after which the kernel deletes it (IPv6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Remaining>,
}

/// A remaining time in seconds. Two are always equal: it passes.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Remaining(pub u32);

impl From<u32> for Remaining {
    fn from(seconds: u32) -> Self {
        Self(seconds)
    }
}

impl PartialEq for Remaining {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Remaining {}

impl Hash for Remaining {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

fn none<T>() -> Option<T> {
    None
}

/// One next hop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hop<A> {
    /// Gateway; `None` when the destination is on-link.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub gateway: Option<A>,
    /// Outgoing interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<IfName>,
    /// The gateway is on-link even without a route to it.
    #[serde(default)]
    pub onlink: bool,
    /// Weight among several hops, minus one (`rtnh_hops`).
    #[serde(default)]
    pub weight: u8,
    /// The gateway of an IPv4 route that has an IPv6 address (`RTA_VIA`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Ipv6Addr>,
    /// Attributes of a hop among several that netfix does not interpret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<RawAttribute>,
}

impl Route {
    /// The rank of routes that need all others, and of what comes before them.
    pub(crate) const LAST: (bool, u8) = (true, u8::MAX);

    /// Its destination.
    pub(crate) fn destination(&self) -> IpNet {
        self.place().0
    }

    /// Its metric.
    pub(crate) fn metric(&self) -> Option<u32> {
        self.place().4
    }

    /// Type, table and origin.
    pub(crate) fn nature(&self) -> (u8, u32, u8) {
        match self {
            Self::V4(route) => (route.kind, route.table, route.protocol),
            Self::V6(route) => (route.kind, route.table, route.protocol),
        }
    }

    /// Whether it refuses packets (`blackhole`, `unreachable`, `prohibit`) or sends them to the next rule (`throw`): it needs no link.
    pub(crate) fn sends_nowhere(&self) -> bool {
        (KIND_BLACKHOLE..=KIND_THROW).contains(&self.nature().0)
    }

    /// The time after which the kernel deletes it.
    pub(crate) fn expires(&self) -> Option<Remaining> {
        match self {
            Self::V4(route) => route.expires,
            Self::V6(route) => route.expires,
        }
    }

    /// The time after which the kernel deletes it, to change it.
    pub(crate) fn expires_mut(&mut self) -> &mut Option<Remaining> {
        match self {
            Self::V4(route) => &mut route.expires,
            Self::V6(route) => &mut route.expires,
        }
    }

    /// Whether `self` is `whole` with other attributes, or without some of its hops: in the same place, and over no other hop.
    pub(crate) fn is_version_of(&self, whole: &Self) -> bool {
        let (mine, all) = (self.hops(), whole.hops());
        self.place() == whole.place()
            && mine.is_empty() == all.is_empty()
            && mine.iter().all(|hop| all.contains(hop))
    }

    /// The gateway and the interface of each hop.
    pub(crate) fn hops(&self) -> Vec<(Option<IpAddr>, Option<&IfName>)> {
        match self {
            Self::V4(route) => route.hops(),
            Self::V6(route) => route.hops(),
        }
    }

    /// The interfaces that it goes out of.
    #[must_use]
    pub fn devs(&self) -> Vec<&IfName> {
        self.hops().into_iter().filter_map(|(_, dev)| dev).collect()
    }

    /// The id of its nexthop object.
    pub(crate) fn nexthop(&self) -> Option<u32> {
        let (Self::V4(RouteOf { nexthop, .. }) | Self::V6(RouteOf { nexthop, .. })) = self;
        *nexthop
    }

    /// Its gateways with the interface that each is reached through.
    pub(crate) fn gateways(&self) -> Vec<(IpAddr, &IfName)> {
        let hops = self.hops().into_iter();
        hops.filter_map(|(gateway, dev)| gateway.zip(dev)).collect()
    }

    /// The source address that it gives to packets, where it has one.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        match self {
            Self::V4(route) => route.prefsrc.map(Into::into),
            Self::V6(route) => route.prefsrc.map(Into::into),
        }
    }

    /// Whether it is a default route of the main table.
    pub(crate) fn is_default(&self) -> bool {
        match self {
            Self::V4(route) => route.is_default(),
            Self::V6(route) => route.is_default(),
        }
    }

    /// The order in which routes must be added: a gateway is accepted only when a route to it exists, so
    /// direct and narrow-scoped routes go first, and those to nexthop objects last.
    pub(crate) fn rank(&self) -> (bool, u8) {
        let (Self::V4(RouteOf { scope, .. }) | Self::V6(RouteOf { scope, .. })) = self;
        if self.nexthop().is_some() {
            return Self::LAST;
        }
        let has_gateway = self.hops().iter().any(|(gateway, _)| gateway.is_some());
        (has_gateway, u8::MAX - scope)
    }

    /// Whether both compete for the same place in the same table, so that only appending lets both live.
    #[must_use]
    pub fn shares_place_with(&self, other: &Self) -> bool {
        self.place() == other.place()
    }

    /// What may be only once in a namespace.
    pub(crate) fn place(&self) -> RouteKey {
        match self {
            Self::V4(route) => route.place(),
            Self::V6(route) => route.place(),
        }
    }

    /// The route with every interface name passed through `rename`.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(&IfName) -> IfName) -> Self {
        match &mut self {
            Self::V4(route) => route.hops.iter_mut().for_each(|hop| hop.rename(&rename)),
            Self::V6(route) => route.hops.iter_mut().for_each(|hop| hop.rename(&rename)),
        }
        self
    }
}

impl<A, N> RouteOf<A, N> {
    /// `ip route add DST dev DEV`, with the scope of a route to a gateway.
    pub(crate) fn plain(dst: N, dev: &IfName) -> Self {
        Self {
            hops: vec![Hop::direct(dev.clone())],
            ..Self::bare(dst)
        }
    }

    /// `ip route add DST` without a hop, with the scope of a route to a gateway.
    pub(crate) fn bare(dst: N) -> Self {
        Self {
            dst,
            src: None,
            table: TABLE_MAIN,
            protocol: PROTOCOL_BOOT,
            scope: SCOPE_UNIVERSE,
            kind: KIND_UNICAST,
            tos: 0,
            priority: None,
            prefsrc: None,
            hops: Vec::new(),
            metrics: BTreeMap::new(),
            preference: None,
            congctl: None,
            extra: Vec::new(),
            nexthop: None,
            expires: None,
        }
    }
}

impl<A, N: Copy + Into<IpNet>> RouteOf<A, N> {
    /// Whether it is a default route of the main table.
    pub(crate) fn is_default(&self) -> bool {
        self.table == TABLE_MAIN && self.kind == KIND_UNICAST && self.dst.into().prefix_len() == 0
    }
}

impl<A: Copy + Into<IpAddr>, N: Copy + Into<IpNet>> RouteOf<A, N> {
    fn hops(&self) -> Vec<(Option<IpAddr>, Option<&IfName>)> {
        let hops = self.hops.iter();
        hops.map(|hop| (hop.gateway(), hop.dev.as_ref())).collect()
    }

    fn place(&self) -> RouteKey {
        let (dst, src) = (self.dst.into(), self.src.map(Into::into));
        (dst, src, self.table, self.tos, self.priority)
    }
}

impl<A: Copy + Into<IpAddr>> Hop<A> {
    /// The gateway, of whichever family.
    pub fn gateway(&self) -> Option<IpAddr> {
        self.gateway.map(Into::into).or(self.via.map(IpAddr::V6))
    }
}

impl<A> Hop<A> {
    /// The hop over an interface alone.
    pub(crate) fn direct(dev: IfName) -> Self {
        Self {
            dev: Some(dev),
            ..Self::bare(false)
        }
    }

    /// A hop without a way yet.
    pub(crate) fn bare(onlink: bool) -> Self {
        Self {
            gateway: None,
            dev: None,
            onlink,
            weight: 0,
            via: None,
            extra: Vec::new(),
        }
    }

    fn rename(&mut self, rename: impl Fn(&IfName) -> IfName) {
        self.dev = self.dev.as_ref().map(rename);
    }
}
