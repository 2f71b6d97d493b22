//! The changes that are netlink messages, one or several in one send.

use std::net::Ipv6Addr;

use crate::model::net::link::bond::{Bond, BondOption};
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::function::FunctionSetting;
use crate::model::net::link::port::{MdbEntry, PortVlans};
use crate::model::net::link::{Flags, OffloadLimit};
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::Position;
use crate::model::{
    Address, Bytes, IfName, Link, LinkKind, Mac, Neighbour, Nexthop, Route, Rule, TrafficObject,
};

/// A change of one object, by netlink.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NetlinkStep {
    /// Changes an attribute of a link.
    SetLink {
        /// The link.
        dev: IfName,
        /// The attribute.
        change: Change,
        /// What it is now, where that is one word.
        now: Option<String>,
    },
    /// Adds a qdisc, class or filter.
    AddTraffic {
        /// The link.
        dev: IfName,
        /// The object.
        object: Box<TrafficObject>,
    },
    /// Changes the options of a qdisc, class or filter in place.
    ChangeTraffic {
        /// The link.
        dev: IfName,
        /// The object.
        object: Box<TrafficObject>,
    },
    /// Replaces the actions of a filter.
    ChangeActions {
        /// The link.
        dev: IfName,
        /// The filter.
        filter: Box<TrafficObject>,
    },
    /// Adds an address.
    AddAddress(Address),
    /// Changes an address's attributes.
    ChangeAddress(Address),
    /// Adds a forwarding entry, or replaces the one of its MAC.
    AddForwarding {
        /// The link.
        dev: IfName,
        /// The entry.
        entry: Box<FdbEntry>,
    },
    /// Adds a permanent or proxy neighbour.
    AddNeighbour(Neighbour),
    /// Adds a multicast group to a port of a bridge.
    AddGroup {
        /// The bridge.
        bridge: IfName,
        /// The port.
        port: IfName,
        /// The group.
        entry: MdbEntry,
    },
    /// Adds a route.
    AddRoute {
        /// The route.
        route: Route,
        /// Where, among routes with the same destination, table and metric.
        position: Position,
    },
    /// Changes the route in its place, which has the same hops or some of them.
    ChangeRoute(Route),
    /// Deletes a connected route that came with an address, and that was not there.
    DeleteRoute(Route),
    /// Adds a nexthop object.
    AddNexthop(Nexthop),
    /// Replaces a nexthop object; what refers to it stays.
    ChangeNexthop(Nexthop),
    /// Adds a rule.
    AddRule(Rule),
    /// Deletes objects and adds them again, in one send.
    Rewrite(Box<Rewrite>),
}

impl NetlinkStep {
    /// The link that it takes up.
    pub(crate) fn takes_up(&self) -> Option<&IfName> {
        match self {
            Self::SetLink {
                dev,
                change: Change::Up,
                ..
            } => Some(dev),
            _ => None,
        }
    }

    /// The interfaces whose objects it changes.
    pub(super) fn devs(&self) -> Vec<&IfName> {
        match self {
            Self::SetLink { dev, .. }
            | Self::AddTraffic { dev, .. }
            | Self::AddForwarding { dev, .. }
            | Self::ChangeTraffic { dev, .. }
            | Self::ChangeActions { dev, .. } => vec![dev],
            Self::AddAddress(address) | Self::ChangeAddress(address) => vec![&address.dev],
            Self::AddNeighbour(neighbour) => vec![&neighbour.dev],
            Self::AddGroup { port, .. } => vec![port],
            Self::AddRoute { route, .. } | Self::ChangeRoute(route) | Self::DeleteRoute(route) => {
                route.devs()
            }
            Self::AddNexthop(nexthop) | Self::ChangeNexthop(nexthop) => {
                nexthop.dev.iter().collect()
            }
            Self::AddRule(_) => Vec::new(),
            Self::Rewrite(rewrite) => rewrite.added.iter().flat_map(OrderedObject::devs).collect(),
        }
    }
}

/// Objects that must be written anew, because the kernel changes neither their order nor some of their attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rewrite {
    /// What is deleted, in order.
    pub gone: Vec<OrderedObject>,
    /// What is added, in order: what was deleted, what is missing, and what the kernel deletes along.
    pub added: Vec<OrderedObject>,
}

/// An object whose place in a list counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OrderedObject {
    /// An address.
    Address(Address),
    /// A route.
    Route(Route),
    /// A rule.
    Rule(Rule),
}

impl OrderedObject {
    pub(crate) fn route(&self) -> Option<&Route> {
        match self {
            Self::Route(route) => Some(route),
            Self::Address(_) | Self::Rule(_) => None,
        }
    }

    /// The interfaces that it is on.
    fn devs(&self) -> Vec<&IfName> {
        match self {
            Self::Address(address) => vec![&address.dev],
            Self::Route(route) => route.devs(),
            Self::Rule(_) => Vec::new(),
        }
    }
}

/// One changed attribute of a link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// Administratively up.
    Up,
    /// Administratively down, for a device that is to join a bond.
    Down,
    /// Hardware address.
    Mac(Mac),
    /// Another name.
    Name(IfName),
    /// Link-layer broadcast address.
    Broadcast(Mac),
    /// MTU in bytes.
    Mtu(u32),
    /// Transmit queue length in packets.
    TxQueueLen(u32),
    /// Interface group.
    Group(u32),
    /// Alias.
    Alias(Bytes),
    /// Alternative names that are missing.
    Altnames(Vec<Bytes>),
    /// Flags, from these to those.
    Flags(Flags, Flags),
    /// Becomes a port of that link.
    Master(IfName),
    /// Settings of a port of a bridge.
    Port(Vec<RawAttribute>),
    /// Settings of a port of a bond.
    BondPort(Vec<RawAttribute>),
    /// VLANs that a port of a bridge gets.
    AddVlans(Vec<PortVlans>),
    /// VLANs that the bridge gave to a new port.
    DeleteVlans(Vec<PortVlans>),
    /// Limits of offload that differ.
    Offload(Vec<(OffloadLimit, u32)>),
    /// Held down (`protodown on`).
    ProtoDown,
    /// `mode dormant`.
    Dormant,
    /// `ip token set`.
    Token(Ipv6Addr),
    /// The data of its kind that the kernel can change.
    Kind(LinkKind),
    /// The lower device of a link that has lost it, which keeps all else.
    Lower {
        /// The link as it is.
        link: Box<Link>,
        /// The device.
        parent: IfName,
    },
    /// A numeric option of a bond.
    BondOption(BondOption, u32),
    /// The list-like options of a bond.
    BondLists(Box<Bond>),
    /// The backup of a port of a bridge.
    BackupPort(IfName),
    /// The primary port of a bond.
    BondPrimary(IfName),
    /// A setting of the virtual function of this number.
    Function(u32, FunctionSetting),
    /// `IN6_ADDR_GEN_MODE_*`, without making an address at once as a write of the sysctl does.
    AddrGenMode(u8),
}
