//! The steps of a plan, each one change of one object, printed like the `ip(8)` command that would make it.

use std::fmt;
use std::net::Ipv6Addr;

use crate::model::fidelity::BRIDGE_PORT;
use crate::model::net::link::bond::{Bond, BondOption};
use crate::model::net::link::sysctl::{Folder, SysctlKey, Sysctls};
use crate::model::net::link::sysfs::{SysfsKey, SysfsValue};
use crate::model::net::link::{Flags, OffloadLimit};
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::Position;
use crate::model::problem;
use crate::model::text::join;
use crate::model::{
    Address, Bytes, IfName, Link, LinkKind, Mac, Neighbour, Nexthop, Parent, Route, Rule,
    TrafficObject,
};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// Creates a link, down and with the settings of a new one.
    AddLink(Box<Link>),
    /// Changes an attribute of a link.
    SetLink {
        /// The link.
        dev: IfName,
        /// The attribute.
        change: Change,
        /// What it is now, where that is one word.
        now: Option<String>,
    },
    /// Writes a per-interface sysctl.
    Sysctl {
        /// The interface.
        dev: IfName,
        /// In which folder of `/proc/sys/net`.
        folder: Folder,
        /// Which setting.
        key: SysctlKey,
        /// The value to write.
        value: String,
        /// The value that is there; empty where it is not known.
        now: String,
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
    /// Adds an address.
    AddAddress(Address),
    /// Changes an address's attributes.
    ChangeAddress(Address),
    /// Adds a permanent or proxy neighbour.
    AddNeighbour(Neighbour),
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

impl Step {
    /// Whether it only adds an address or a route, or takes a link up.
    pub(crate) fn is_addition(&self) -> bool {
        match self {
            Self::AddAddress(_) | Self::AddRoute { .. } => true,
            Self::SetLink { change, .. } => *change == Change::Up,
            _ => false,
        }
    }

    /// The addresses that it adds.
    pub(crate) fn added_addresses(&self) -> Vec<&Address> {
        match self {
            Self::AddAddress(address) => vec![address],
            Self::Rewrite(rewrite) => {
                let added = rewrite.added.iter();
                let address = added.filter_map(|object| match object {
                    Object::Address(address) => Some(address),
                    Object::Route(_) | Object::Rule(_) => None,
                });
                address.collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Objects that must be written anew, because the kernel changes neither their order nor some of their attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rewrite {
    /// What is deleted, in order.
    pub gone: Vec<Object>,
    /// What is added, in order: what was deleted, what is missing, and what the kernel deletes along.
    pub added: Vec<Object>,
}

/// An object whose place in a list counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Object {
    /// An address.
    Address(Address),
    /// A route.
    Route(Route),
    /// A rule.
    Rule(Rule),
}

impl Object {
    /// The interfaces that it is on.
    pub(crate) fn devs(&self) -> Vec<&IfName> {
        match self {
            Self::Address(address) => vec![&address.dev],
            Self::Route(route) => route.devs(),
            Self::Rule(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "address {address}"),
            Self::Route(route) => write!(f, "route {route}"),
            Self::Rule(rule) => write!(f, "rule {rule}"),
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
    /// Link-layer broadcast address.
    Broadcast(Mac),
    /// Link-layer groups to join.
    Groups(Vec<Mac>),
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
    /// A numeric option of a bond.
    BondOption(BondOption, u32),
    /// The list-like options of a bond.
    BondLists(Box<Bond>),
    /// The primary port of a bond.
    BondPrimary(IfName),
    /// `IN6_ADDR_GEN_MODE_*`, without making an address at once as a write of the sysctl does.
    AddrGenMode(u8),
    /// A packet steering or NAPI setting in `/sys/class/net`.
    Sysfs(SysfsKey, SysfsValue),
}

impl Step {
    /// The step that creates a link. Its settings are steps of their own.
    pub(crate) fn add_link(link: Link) -> Self {
        let sysctls = Sysctls::default();
        Self::AddLink(Box::new(Link { sysctls, ..link }))
    }

    /// The interfaces whose objects it changes.
    pub(crate) fn devs(&self) -> Vec<&IfName> {
        match self {
            Self::AddLink(link) => vec![&link.name],
            Self::SetLink { dev, .. }
            | Self::Sysctl { dev, .. }
            | Self::AddTraffic { dev, .. }
            | Self::ChangeTraffic { dev, .. } => vec![dev],
            Self::AddAddress(address) | Self::ChangeAddress(address) => vec![&address.dev],
            Self::AddNeighbour(neighbour) => vec![&neighbour.dev],
            Self::AddRoute { route, .. } | Self::ChangeRoute(route) | Self::DeleteRoute(route) => {
                route.devs()
            }
            Self::AddNexthop(nexthop) | Self::ChangeNexthop(nexthop) => {
                nexthop.dev.iter().collect()
            }
            Self::AddRule(_) => Vec::new(),
            Self::Rewrite(rewrite) => rewrite.added.iter().flat_map(Object::devs).collect(),
        }
    }

    /// The step that changes an attribute whose present value needs no mention.
    #[must_use]
    pub fn set(dev: &IfName, change: Change) -> Self {
        Self::SetLink {
            dev: dev.clone(),
            change,
            now: None,
        }
    }
}

impl From<&Step> for problem::Object {
    fn from(step: &Step) -> Self {
        Self::Text(step.to_string())
    }
}

/// `+` is what appears, `~` what changes, `-` what disappears.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddLink(link) => describe_link(f, link),
            Self::SetLink { dev, change, now } => {
                write!(f, "~ link {dev} {change}")?;
                now.as_ref().map_or(Ok(()), |now| write!(f, " (now {now})"))
            }
            Self::Sysctl {
                dev,
                folder,
                key,
                value,
                now,
            } => {
                // `sysctl` swaps dots and slashes, so the path is the form without doubt.
                write!(f, "~ sysctl net/{}/{dev}/{key} = {value}", folder.as_str())?;
                if now.is_empty() {
                    Ok(())
                } else {
                    write!(f, " (now {now})")
                }
            }
            Self::AddTraffic { dev, object } => write!(f, "+ {object} dev {dev}"),
            Self::ChangeTraffic { dev, object } => write!(f, "~ {object} dev {dev}"),
            Self::AddAddress(address) => write!(f, "+ address {address}"),
            Self::ChangeAddress(address) => write!(f, "~ address {address}"),
            Self::AddNeighbour(neighbour) => write!(f, "+ neighbour {neighbour}"),
            Self::AddRoute { route, position } => {
                let place = match position {
                    Position::First => " (before the others)",
                    Position::Only | Position::Last => "",
                };
                write!(f, "+ route {route}{place}")
            }
            Self::ChangeRoute(route) => write!(f, "~ route {route}"),
            Self::DeleteRoute(route) => write!(f, "- route {route}"),
            Self::AddNexthop(nexthop) => write!(f, "+ nexthop {nexthop}"),
            Self::ChangeNexthop(nexthop) => write!(f, "~ nexthop {nexthop}"),
            Self::AddRule(rule) => write!(f, "+ rule {rule}"),
            Self::Rewrite(rewrite) => {
                write!(f, "~ in this order: {}", join(&rewrite.added, ", "))
            }
        }
    }
}

fn describe_link(f: &mut fmt::Formatter<'_>, link: &Link) -> fmt::Result {
    write!(f, "+ {} {}", link.kind.name(), link.name)?;
    if let Some(Parent::Own(parent) | Parent::Host(parent)) = &link.parent {
        let is_device = link.kind == LinkKind::Physical;
        let word = if is_device { "from the host's" } else { "on" };
        write!(f, " {word} {parent}")?;
    }
    match &link.kind {
        LinkKind::Vlan(vlan) => {
            write!(f, " id {} protocol {}", vlan.id, vlan.protocol)?;
            vlan.unusual_flags()
                .iter()
                .try_for_each(|flag| write!(f, " {flag}"))?;
        }
        LinkKind::Macvlan(data) | LinkKind::Macvtap(data) => write!(f, " mode {}", data.mode)?,
        LinkKind::Ipvlan(data) | LinkKind::Ipvtap(data) => {
            write!(f, " mode {} {}", data.mode, data.flag())?;
        }
        LinkKind::Bond(bond) => write!(f, " mode {}", bond.mode_name())?,
        LinkKind::Physical => return Ok(()),
        LinkKind::Loopback | LinkKind::Other { .. } => {}
    }
    if let Some(mac) = link.mac {
        write!(f, " address {mac}")?;
    }
    write!(f, " mtu {}", link.mtu)?;
    if link.index == 0 {
        Ok(())
    } else {
        write!(f, " index {}", link.index)
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up => f.write_str("up"),
            Self::Down => f.write_str("down"),
            Self::Mac(mac) => write!(f, "address {mac}"),
            Self::Broadcast(mac) => write!(f, "broadcast {mac}"),
            Self::Groups(groups) => write!(f, "maddress {}", join(groups, " ")),
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::TxQueueLen(length) => write!(f, "txqueuelen {length}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::Alias(alias) => write!(f, "alias \"{alias}\""),
            Self::Altnames(names) => write!(f, "altname {}", join(names, " ")),
            Self::Flags(from, to) => describe_flags(f, *from, *to),
            Self::Master(master) => write!(f, "master {master}"),
            Self::Port(settings) => {
                let names = settings
                    .iter()
                    .filter_map(|raw| BRIDGE_PORT.name(raw.number));
                write!(f, "bridge_slave {}", join(names, ", "))
            }
            Self::Offload(limits) => {
                let word =
                    |(limit, value): &(OffloadLimit, u32)| format!("{} {value}", limit.as_str());
                f.write_str(&join(limits.iter().map(word), " "))
            }
            Self::ProtoDown => f.write_str("protodown on"),
            Self::Dormant => f.write_str("mode dormant"),
            Self::Token(token) => write!(f, "token {token}"),
            Self::Kind(kind) => describe_kind(f, kind),
            Self::BondOption(option, value) => write!(f, "type bond {option} {value}"),
            Self::BondLists(_) => {
                f.write_str("type bond arp_ip_target, ns_ip6_target, ad_actor_system")
            }
            Self::BondPrimary(port) => write!(f, "type bond primary {port}"),
            Self::AddrGenMode(mode) => write!(f, "addrgenmode {mode}"),
            Self::Sysfs(key, value) => write!(f, "{key} = {value}"),
        }
    }
}

/// The data that the kernel can change.
fn describe_kind(f: &mut fmt::Formatter<'_>, kind: &LinkKind) -> fmt::Result {
    write!(f, "type {}", kind.name())?;
    match kind {
        LinkKind::Vlan(vlan) => write!(f, " flags {:#x}", vlan.vlan_flags),
        LinkKind::Macvlan(data) | LinkKind::Macvtap(data) => {
            write!(f, " mode {} flags {}", data.mode, data.macvlan_flags)
        }
        LinkKind::Ipvlan(data) | LinkKind::Ipvtap(data) => {
            write!(f, " mode {} {}", data.mode, data.flag())
        }
        LinkKind::Bond(_) | LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => {
            Ok(())
        }
    }
}

fn describe_flags(f: &mut fmt::Formatter<'_>, from: Flags, to: Flags) -> fmt::Result {
    let pairs = [
        ("arp", !from.noarp, !to.noarp),
        ("promisc", from.promisc, to.promisc),
        ("allmulticast", from.allmulti, to.allmulti),
        ("multicast", from.multicast, to.multicast),
        ("dynamic", from.dynamic, to.dynamic),
        ("trailers", !from.notrailers, !to.notrailers),
    ];
    let changed = pairs.iter().filter(|(_, from, to)| from != to);
    let words: Vec<String> = changed
        .map(|(name, _, to)| format!("{name} {}", if *to { "on" } else { "off" }))
        .collect();
    f.write_str(&words.join(" "))
}
