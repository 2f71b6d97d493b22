//! What a pod or the host has lost since its good record.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize, Serializer};

use super::net::link::sysctl::SysctlKey;
use super::{Address, IfName, Link, Mac, Neighbour, Nexthop, Route, Rule};

/// One thing that was lost: the first of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// The link that had it, with its kind, as messages name it.
    pub link: String,
    /// What went.
    pub what: LossCause,
}

/// What went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossCause {
    /// The link.
    LinkGone,
    /// It was up.
    LinkDown,
    /// A link of its name is another device: MAC and ifindex differ.
    LinkReplaced,
    /// All addresses of the link.
    Addresses,
    /// All addresses of one family of the link.
    FamilyAddresses(IpFamily),
    /// The default route of a family.
    DefaultRoute(IpFamily),
    /// All routes of a family that have a gateway and go out of the link.
    GatewayRoutes(IpFamily),
    /// The way out of its bridge on the host.
    Uplink,
    /// The route to this destination, by which packets went.
    Route(IpNet),
    /// The rule of this priority, by which packets went.
    Rule(u32),
    /// The way of packets to this destination: something refuses them, or sends them elsewhere.
    Way(IpNet),
    /// Its carrier, without which nothing uses its routes.
    NoCarrier,
    /// The permanent entry of this next hop, or ARP for it.
    Neighbour(IpAddr),
    /// The MAC of this next hop: a permanent entry has another one.
    NeighbourMac {
        /// The next hop.
        hop: IpAddr,
        /// The MAC in the entry.
        mac: Mac,
    },
    /// A link of the host that carried its packets: it was up.
    HostLinkDown,
    /// The bridge of a link of the host that carried its packets.
    NoPort,
    /// A VLAN of that port.
    NotInVlan,
    /// The state in which a port of a bridge passes packets.
    PortBlocked,
    /// The exchange of packets with the uplink of its bridge: both ports are isolated.
    Isolated,
    /// The host's route to the pod.
    HostRoute(IpNet),
    /// The host's way to the pod: something precedes the route, which is there.
    HostWay(IpNet),
    /// The table by which the host forwarded its packets: a rule or a route of it is gone, or something refuses them.
    HostForwarding {
        /// Its number.
        table: u32,
    },
    /// The address of a link of the host that is the pod's gateway.
    HostAddress(IpAddr),
    /// A setting of a link of the host with which it forwarded the pod's packets.
    HostSetting(SysctlKey),
}

/// A family of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum IpFamily {
    /// IPv4.
    #[serde(rename = "inet")]
    V4,
    /// IPv6.
    #[serde(rename = "inet6")]
    V6,
}

impl IpFamily {
    /// Both.
    pub(crate) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    pub(crate) fn of(is_ipv4: bool) -> Self {
        if is_ipv4 { Self::V4 } else { Self::V6 }
    }
}

impl Loss {
    pub(crate) fn new(link: &Link, what: LossCause) -> Self {
        let link = link.title();
        Self { link, what }
    }
}

impl LossCause {
    /// Every word, in the order in which metrics have them.
    pub const WORDS: &[&str] = &[
        "link-gone",
        "link-down",
        "link-replaced",
        "addresses",
        "default-route",
        "gateway-routes",
        "uplink-lost",
        "way-lost",
        "chain-broken",
    ];

    /// Whether it may be the host that no longer carries the pod's packets.
    #[must_use]
    pub fn may_be_of_host(self) -> bool {
        matches!(self.word(), "uplink-lost" | "chain-broken")
            || matches!(self, Self::Way(_) | Self::NoCarrier)
    }

    /// The stable word in JSON and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::LinkGone => "link-gone",
            Self::LinkDown => "link-down",
            Self::LinkReplaced => "link-replaced",
            Self::Addresses | Self::FamilyAddresses(_) => "addresses",
            Self::DefaultRoute(_) => "default-route",
            Self::GatewayRoutes(_) => "gateway-routes",
            Self::Uplink => "uplink-lost",
            Self::Route(_)
            | Self::Rule(_)
            | Self::Way(_)
            | Self::NoCarrier
            | Self::Neighbour(_)
            | Self::NeighbourMac { .. } => "way-lost",
            Self::HostLinkDown
            | Self::NoPort
            | Self::NotInVlan
            | Self::PortBlocked
            | Self::Isolated
            | Self::HostRoute(_)
            | Self::HostWay(_)
            | Self::HostForwarding { .. }
            | Self::HostAddress(_)
            | Self::HostSetting(_) => "chain-broken",
        }
    }
}

impl Serialize for LossCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

impl Route {
    /// The family of its destination.
    pub(crate) fn family(&self) -> IpFamily {
        IpFamily::of(!self.is_ipv6())
    }

    /// Whether its absence is a loss: no daemon withdraws it, and the kernel does not delete it after a time.
    pub(crate) fn is_owned(&self) -> bool {
        let (_, _, protocol) = self.nature();
        !is_of_daemon(protocol) && !is_of_network(protocol) && self.expires.is_none()
    }

    /// Whether a daemon adds and withdraws it by its own rules.
    pub(crate) fn is_of_daemon(&self) -> bool {
        let (_, _, protocol) = self.nature();
        is_of_daemon(protocol)
    }
}

impl Address {
    /// Whether its absence is a loss: an administrator, a plugin or a DHCP client added it, and no daemon such as keepalived, which
    /// withdraws it by its own rules.
    pub(crate) fn is_owned(&self) -> bool {
        let mut numbers = self.protocol.into_iter();
        !self.comes_by_itself() && !numbers.any(is_of_daemon)
    }

    /// Whether a daemon adds and withdraws it by its own rules: by its origin, or because it is a service address on the loopback
    /// device.
    pub(crate) fn is_of_daemon(&self, is_loopback: impl Fn(&IfName) -> bool) -> bool {
        let mut numbers = self.protocol.into_iter();
        !self.comes_by_itself() && numbers.any(is_of_daemon) || self.is_service(is_loopback)
    }

    /// Whether it is a service address on the loopback device, which no loss of a NIC takes.
    pub(crate) fn is_service(&self, is_loopback: impl Fn(&IfName) -> bool) -> bool {
        !self.comes_by_itself() && !self.local.is_loopback() && is_loopback(&self.dev)
    }

    /// Whether its prefix is the address alone, as that of a service address that moves between links and machines.
    pub(crate) fn is_of_one_host(&self) -> bool {
        self.prefix_len == if self.local.is_ipv4() { 32 } else { 128 }
    }
}

impl Nexthop {
    /// Whether a daemon adds and withdraws it by its own rules.
    pub(crate) fn is_of_daemon(&self) -> bool {
        is_of_daemon(self.protocol)
    }
}

impl Rule {
    /// Whether a daemon adds and withdraws it by its own rules.
    pub(crate) fn is_of_daemon(&self) -> bool {
        self.protocol.is_some_and(is_of_daemon)
    }
}

impl Neighbour {
    /// Whether a program keeps it up to date: a daemon, or one that has marked it as learnt.
    pub(crate) fn is_of_program(&self) -> bool {
        self.extern_learn || self.is_of_daemon()
    }

    /// Whether a daemon adds and withdraws it by its own rules.
    pub(crate) fn is_of_daemon(&self) -> bool {
        self.protocol.is_some_and(is_of_daemon)
    }
}

/// Whether a daemon adds and withdraws what has this origin (`/etc/iproute2/rt_protos`): gated, mrt, zebra, bird, dnrouted, xorp,
/// ntk, mrouted, keepalived, babel, openr, and bgp, isis, ospf, rip, eigrp with the others of FRR. What a DHCP client adds is the
/// namespace's own.
pub(crate) fn is_of_daemon(protocol: u8) -> bool {
    matches!(protocol, 8 | 10..=15 | 17 | 18 | 42 | 99 | 186..=198)
}

/// Whether the network makes what has this origin: redirect, ra.
fn is_of_network(protocol: u8) -> bool {
    matches!(protocol, 1 | 9)
}
