//! Routes. Each has one family: an IPv4 route cannot hold an IPv6 hop.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};

use super::{IfName, limits};

/// `RT_TABLE_MAIN` (linux/rtnetlink.h).
pub const TABLE_MAIN: u32 = 254;
/// `RTPROT_REDIRECT`, `RTPROT_KERNEL` and `RTPROT_RA`: routes that the kernel adds.
const KERNEL_PROTOCOLS: [u8; 3] = [1, 2, 9];
/// `RTN_UNICAST`.
pub const KIND_UNICAST: u8 = 1;
/// `RT_SCOPE_UNIVERSE`, the widest scope: a route to it needs the narrower ones first.
pub const SCOPE_UNIVERSE: u8 = 0;

/// Destination, source, table, type of service and metric, by which the kernel finds a route.
pub(crate) type Place = (IpNet, Option<IpNet>, u32, u8, Option<u32>);

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
}

/// A route metric (`RTAX_*`, linux/rtnetlink.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is documented in ip-route(8)
pub enum Metric {
    Lock,
    Mtu,
    Window,
    Rtt,
    Rttvar,
    Ssthresh,
    Cwnd,
    Advmss,
    Reordering,
    Hoplimit,
    Initcwnd,
    Features,
    RtoMin,
    Initrwnd,
    Quickack,
    FastopenNoCookie,
}

/// The destination shows the family of a stored route. Serde would read the key `family` only after it has copied the route, and
/// a pod may have tens of thousands.
impl TryFrom<RouteOf<IpAddr, IpNet>> for Route {
    type Error = &'static str;

    fn try_from(route: RouteOf<IpAddr, IpNet>) -> Result<Self, Self::Error> {
        const MIXED: &str = "a route of two families";
        const TOO_MANY: &str = "more next hops than fit into one attribute of netlink";
        let (hops, gateway) = (route.hops.len(), route.dst.max_prefix_len() / 8);
        let route = match route.dst {
            IpNet::V4(_) => route.of_family(v4, v4_net).map(Self::V4),
            IpNet::V6(_) => route.of_family(v6, v6_net).map(Self::V6),
        };
        if hops > limits::hops(gateway.into()) {
            return Err(TOO_MANY);
        }
        route.ok_or(MIXED)
    }
}

fn v4(ip: IpAddr) -> Option<Ipv4Addr> {
    match ip {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn v6(ip: IpAddr) -> Option<Ipv6Addr> {
    match ip {
        IpAddr::V4(_) => None,
        IpAddr::V6(ip) => Some(ip),
    }
}

fn v4_net(net: IpNet) -> Option<Ipv4Net> {
    match net {
        IpNet::V4(net) => Some(net),
        IpNet::V6(_) => None,
    }
}

fn v6_net(net: IpNet) -> Option<Ipv6Net> {
    match net {
        IpNet::V4(_) => None,
        IpNet::V6(net) => Some(net),
    }
}

impl RouteOf<IpAddr, IpNet> {
    /// The same route if all its addresses are of one family.
    fn of_family<A, N>(
        self,
        address: fn(IpAddr) -> Option<A>,
        net: fn(IpNet) -> Option<N>,
    ) -> Option<RouteOf<A, N>> {
        let hop = |hop: Hop<IpAddr>| {
            let gateway = match hop.gateway {
                Some(gateway) => Some(address(gateway)?),
                None => None,
            };
            Some(Hop {
                gateway,
                dev: hop.dev,
                onlink: hop.onlink,
                weight: hop.weight,
            })
        };
        Some(RouteOf {
            dst: net(self.dst)?,
            src: match self.src {
                Some(src) => Some(net(src)?),
                None => None,
            },
            table: self.table,
            protocol: self.protocol,
            scope: self.scope,
            kind: self.kind,
            tos: self.tos,
            priority: self.priority,
            prefsrc: match self.prefsrc {
                Some(ip) => Some(address(ip)?),
                None => None,
            },
            hops: self.hops.into_iter().map(hop).collect::<Option<_>>()?,
            metrics: self.metrics,
            preference: self.preference,
        })
    }
}

impl Route {
    /// Whether the kernel adds this route, for an address or a router advertisement.
    pub(crate) fn is_made_by_kernel(&self) -> bool {
        let (Self::V4(RouteOf { protocol, .. }) | Self::V6(RouteOf { protocol, .. })) = self;
        KERNEL_PROTOCOLS.contains(protocol)
    }

    /// The gateway and the interface of each hop.
    fn hops(&self) -> Vec<(Option<IpAddr>, Option<&IfName>)> {
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
    /// direct and narrow-scoped routes go first.
    pub(crate) fn rank(&self) -> (bool, u8) {
        let (Self::V4(RouteOf { scope, .. }) | Self::V6(RouteOf { scope, .. })) = self;
        let has_gateway = self.hops().iter().any(|(gateway, _)| gateway.is_some());
        (has_gateway, u8::MAX - scope)
    }

    /// Whether both compete for the same place in the same table, so that only appending lets both live.
    #[must_use]
    pub fn shares_place_with(&self, other: &Self) -> bool {
        self.place() == other.place()
    }

    /// What may be only once in a namespace.
    pub(crate) fn place(&self) -> Place {
        match self {
            Self::V4(route) => route.place(),
            Self::V6(route) => route.place(),
        }
    }

    /// The same route with every interface name passed through `rename`.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(&IfName) -> IfName) -> Self {
        match &mut self {
            Self::V4(route) => route.hops.iter_mut().for_each(|hop| hop.rename(&rename)),
            Self::V6(route) => route.hops.iter_mut().for_each(|hop| hop.rename(&rename)),
        }
        self
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
        hops.map(|hop| (hop.gateway.map(Into::into), hop.dev.as_ref()))
            .collect()
    }

    fn place(&self) -> Place {
        let (dst, src) = (self.dst.into(), self.src.map(Into::into));
        (dst, src, self.table, self.tos, self.priority)
    }
}

impl<A> Hop<A> {
    fn rename(&mut self, rename: impl Fn(&IfName) -> IfName) {
        self.dev = self.dev.as_ref().map(rename);
    }
}

const KIND_NAMES: [(u8, &str); 8] = [
    (2, "local"),
    (3, "broadcast"),
    (4, "anycast"),
    (5, "multicast"),
    (6, "blackhole"),
    (7, "unreachable"),
    (8, "prohibit"),
    (9, "throw"),
];

impl Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(route) => route.describe(f, route.dst.prefix_len() == 0),
            Self::V6(route) => route.describe(f, route.dst.prefix_len() == 0),
        }
    }
}

impl<A: Display, N: Display> RouteOf<A, N> {
    fn describe(&self, f: &mut fmt::Formatter<'_>, is_default: bool) -> fmt::Result {
        if let Some((_, name)) = KIND_NAMES.iter().find(|(kind, _)| *kind == self.kind) {
            write!(f, "{name} ")?;
        }
        if is_default {
            write!(f, "default")?;
        } else {
            write!(f, "{}", self.dst)?;
        }
        let multipath = self.hops.len() > 1;
        for hop in &self.hops {
            f.write_str(if multipath { " nexthop" } else { "" })?;
            hop.describe(f)?;
        }
        if let Some(src) = &self.prefsrc {
            write!(f, " src {src}")?;
        }
        if self.table != TABLE_MAIN {
            write!(f, " table {}", self.table)?;
        }
        if let Some(metric) = self.priority {
            write!(f, " metric {metric}")?;
        }
        Ok(())
    }
}

impl<A: Display> Hop<A> {
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(gateway) = &self.gateway {
            write!(f, " via {gateway}")?;
        }
        if let Some(dev) = &self.dev {
            write!(f, " dev {dev}")?;
        }
        f.write_str(if self.onlink { " onlink" } else { "" })
    }
}
