//! Routes. Each has one family, that of its destination.

mod file;
mod metric;
pub(crate) mod own;
mod text;

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::fidelity::attribute::Treatment::{NotRead, Restored, SentBack, State, Used};
use crate::model::fidelity::attribute::TwinComparison::Reported;
use crate::model::fidelity::attribute::row;
use crate::model::fidelity::form::{IP, NET, U8, U32, ValueForm, attributes};
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

/// `struct rtvia` (`linux/rtnetlink.h`) with an IPv6 address.
const VIA: ValueForm<Ipv6Addr> = ValueForm {
    read: |value| {
        let (family, ip) = value.split_first_chunk()?;
        let ip = <[u8; 16]>::try_from(ip).ok()?;
        (u16::from_ne_bytes(*family) == INET6).then(|| ip.into())
    },
    write: |ip| Some([&INET6.to_ne_bytes()[..], &ip.octets()].concat()),
};
/// `AF_INET6` (`linux/socket.h`).
const INET6: u16 = 10;

attributes! {
    /// One route. Its family is that of `dst`; all its addresses except `via` belong to it.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(remote = "Self")]
    pub struct Route {
        /// Destination; `0.0.0.0/0` or `::/0` is the default route.
        pub dst: IpNet = NET, row(1, "RTA_DST", Restored, "routes");
        /// Source prefix (IPv6 subtrees).
        pub src?: IpNet = NET, row(2, "RTA_SRC", Restored, "routes");
        /// Routing table.
        pub table: u32;
        /// Its origin (`RTPROT_*`).
        pub protocol: u8;
        /// Scope (`RT_SCOPE_*`).
        pub scope: u8;
        /// Type (`RTN_*`): 1 unicast, 6 blackhole, …
        #[serde(rename = "type")]
        pub kind: u8;
        /// Type of service.
        #[serde(default)]
        pub tos: u8;
        /// Metric of the route itself.
        pub priority?: u32 = U32, row(6, "RTA_PRIORITY", Restored, "routes");
        /// Preferred source address.
        pub prefsrc?: IpAddr = IP, row(7, "RTA_PREFSRC", Restored, "routes");
        /// The next hops; none for blackhole and similar types, several for multipath.
        pub hops: Vec<Hop>;
        /// `RTA_METRICS`: mtu, advmss, …, by `RTAX_*` number.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub metrics: BTreeMap<Metric, u32>;
        /// IPv6 router preference (RFC 4191) when it is not medium.
        pub preference?: u8 = U8, row(20, "RTA_PREF", Restored, "routes");
        /// The congestion control of TCP (`RTAX_CC_ALGO`).
        pub congctl?: String;
        /// Attributes of the route, or of its one hop, that netfix does not interpret: realms, encapsulation.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub extra: Vec<RawAttribute>;
        /// The id of its nexthop object, from which it has the hops.
        pub nexthop?: u32;
        /// The time after which the kernel deletes it (IPv6).
        pub expires?: Remaining;
    }

    /// `RTA_*`.
    pub const ROUTE = "Routes", "`RTA_*` of `RTM_NEWROUTE`. Routes that come with an address or a link are not stored", Reported;
    others:
        row(3, "RTA_IIF", State, ""),
        // Of its one hop.
        row(4, "RTA_OIF", Restored, "routes"),
        row(5, "RTA_GATEWAY", Restored, "routes"),
        row(8, "RTA_METRICS", Restored, "routes"),
        row(9, "RTA_MULTIPATH", Restored, "routes, fidelity/half_lost"),
        row(11, "RTA_FLOW", SentBack, "fidelity/routes"),
        // `expires`, which is sent as `RTA_EXPIRES`.
        row(12, "RTA_CACHEINFO", Restored, "fidelity/routes"),
        // `table`, of which the header has 8 bits.
        row(15, "RTA_TABLE", Restored, "routes"),
        row(16, "RTA_MARK", State, ""),
        row(17, "RTA_MFC_STATS", State, ""),
        // Of its one hop.
        row(18, "RTA_VIA", Restored, "fidelity/routes").since("5.2"),
        row(19, "RTA_NEWDST", State, ""),
        row(21, "RTA_ENCAP_TYPE", SentBack, "fidelity/routes"),
        row(22, "RTA_ENCAP", SentBack, "fidelity/routes"),
        row(23, "RTA_EXPIRES", Used, ""),
        row(25, "RTA_UID", State, ""),
        row(26, "RTA_TTL_PROPAGATE", NotRead("only routes of MPLS have it, which is no family of pods"), ""),
        // `nexthop`, in the place of hops.
        row(30, "RTA_NH_ID", Restored, "fidelity/nexthops").since("5.3"),
        row(31, "RTA_FLOWLABEL", State, "").since("6.14"),
}

attributes! {
    /// One next hop.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Hop {
        /// Gateway; `None` when the destination is on-link.
        pub gateway?: IpAddr = IP, row(5, "RTA_GATEWAY", Restored, "routes");
        /// Outgoing interface.
        pub dev?: IfName;
        /// The gateway is on-link even without a route to it.
        #[serde(default)]
        pub onlink: bool;
        /// Weight among several hops, minus one (`rtnh_hops`).
        #[serde(default)]
        pub weight: u8;
        /// The gateway of an IPv4 route that has an IPv6 address.
        pub via?: Ipv6Addr = VIA, row(18, "RTA_VIA", Restored, "fidelity/routes").since("5.2");
        /// Attributes of a hop among several that netfix does not interpret.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub extra: Vec<RawAttribute>;
    }

    /// `RTA_*` in the hops of `RTA_MULTIPATH`.
    pub const HOP = "Hops of multipath routes", "`RTA_*` behind `struct rtnexthop` in `RTA_MULTIPATH`", Reported;
    others:
        row(11, "RTA_FLOW", SentBack, "fidelity/routes"),
        row(21, "RTA_ENCAP_TYPE", SentBack, "fidelity/routes"),
        row(22, "RTA_ENCAP", SentBack, "fidelity/routes"),
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

impl Route {
    /// The rank of routes that need all others, and of what comes before them.
    pub(crate) const LAST: (bool, u8) = (true, u8::MAX);

    /// `ip route add DST dev DEV`, with the scope of a route to a gateway.
    pub(crate) fn plain(dst: impl Into<IpNet>, dev: &IfName) -> Self {
        Self {
            hops: vec![Hop::direct(dev.clone())],
            ..Self::bare(dst)
        }
    }

    /// `ip route add DST` without a hop, with the scope of a route to a gateway.
    pub(crate) fn bare(dst: impl Into<IpNet>) -> Self {
        Self {
            dst: dst.into(),
            table: TABLE_MAIN,
            protocol: PROTOCOL_BOOT,
            scope: SCOPE_UNIVERSE,
            kind: KIND_UNICAST,
            ..Self::default()
        }
    }

    /// Whether it is of IPv6.
    #[must_use]
    pub fn is_ipv6(&self) -> bool {
        matches!(self.dst, IpNet::V6(_))
    }

    /// Its destination.
    pub(crate) fn destination(&self) -> IpNet {
        self.dst
    }

    /// Type, table and origin.
    pub(crate) fn nature(&self) -> (u8, u32, u8) {
        (self.kind, self.table, self.protocol)
    }

    /// Whether it refuses packets (`blackhole`, `unreachable`, `prohibit`) or sends them to the next rule (`throw`): it needs no link.
    pub(crate) fn sends_nowhere(&self) -> bool {
        (KIND_BLACKHOLE..=KIND_THROW).contains(&self.kind)
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
        let hops = self.hops.iter();
        hops.map(|hop| (hop.gateway(), hop.dev.as_ref())).collect()
    }

    /// The interfaces that it goes out of.
    #[must_use]
    pub fn devs(&self) -> Vec<&IfName> {
        let hops = self.hops.iter();
        hops.filter_map(|hop| hop.dev.as_ref()).collect()
    }

    /// Its gateways with the interface that each is reached through.
    pub(crate) fn gateways(&self) -> Vec<(IpAddr, &IfName)> {
        let hops = self.hops().into_iter();
        hops.filter_map(|(gateway, dev)| gateway.zip(dev)).collect()
    }

    /// Whether it is a default route of the main table.
    pub(crate) fn is_default(&self) -> bool {
        self.table == TABLE_MAIN && self.kind == KIND_UNICAST && self.dst.prefix_len() == 0
    }

    /// The order in which routes must be added: a gateway is accepted only when a route to it exists, so
    /// direct and narrow-scoped routes go first, and those to nexthop objects last.
    pub(crate) fn rank(&self) -> (bool, u8) {
        if self.nexthop.is_some() {
            return Self::LAST;
        }
        let has_gateway = self.hops.iter().any(|hop| hop.gateway().is_some());
        (has_gateway, u8::MAX - self.scope)
    }

    /// Whether both compete for the same place in the same table, so that only appending lets both live.
    #[must_use]
    pub fn shares_place_with(&self, other: &Self) -> bool {
        self.place() == other.place()
    }

    /// What may be only once in a namespace.
    pub(crate) fn place(&self) -> RouteKey {
        (self.dst, self.src, self.table, self.tos, self.priority)
    }

    /// The one address that a route of the main table leads to.
    pub(crate) fn one_address(&self) -> Option<IpAddr> {
        let is_one = self.dst.prefix_len() == self.dst.max_prefix_len();
        (is_one && self.table == TABLE_MAIN).then(|| self.dst.addr())
    }

    /// The route with every interface name passed through `rename`.
    #[must_use]
    pub fn renamed(mut self, rename: impl Fn(&IfName) -> IfName) -> Self {
        for hop in &mut self.hops {
            hop.dev = hop.dev.as_ref().map(&rename);
        }
        self
    }
}

impl Hop {
    /// The hop over an interface alone.
    pub(crate) fn direct(dev: IfName) -> Self {
        Self {
            dev: Some(dev),
            ..Self::default()
        }
    }

    /// The gateway, of whichever family.
    pub fn gateway(&self) -> Option<IpAddr> {
        self.gateway.or(self.via.map(IpAddr::V6))
    }
}
