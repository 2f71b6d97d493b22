//! Steps as screens and documents show them: like the `ip(8)` command that would make the change.

use std::fmt;

use super::{Change, NetlinkStep, OrderedObject, Step};
use crate::model::fidelity::{BOND_PORT, BRIDGE_PORT};
use crate::model::net::link::Flags;
use crate::model::net::route::Position;
use crate::model::text::join;
use crate::model::{Link, LinkKind, Parent};

/// `+` is what appears, `~` what changes, `-` what disappears.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddLink(link) => describe_link(f, link),
            Self::Netlink(step) => step.fmt(f),
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
            Self::Sysfs { dev, key, value } => write!(f, "~ link {dev} {key} = {value}"),
            Self::Sriov(step) => step.fmt(f),
            Self::JoinGroups { dev, groups } => {
                write!(f, "~ link {dev} maddress {}", join(groups, " "))
            }
            Self::Nic(step) => step.fmt(f),
            Self::Index { dev, index, now } => write!(f, "~ link {dev} index {index} (now {now})"),
        }
    }
}

impl fmt::Display for NetlinkStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetLink { dev, change, now } => {
                write!(f, "~ link {dev} {change}")?;
                now.as_ref().map_or(Ok(()), |now| write!(f, " (now {now})"))
            }
            Self::AddTraffic { dev, object } => write!(f, "+ {object} dev {dev}"),
            Self::ChangeActions { dev, filter } => write!(f, "~ actions of {filter} dev {dev}"),
            Self::ChangeTraffic { dev, object } => write!(f, "~ {object} dev {dev}"),
            Self::AddForwarding { dev, entry } => write!(f, "+ fdb {entry} dev {dev}"),
            Self::AddAddress(address) => write!(f, "+ address {address}"),
            Self::ChangeAddress(address) => write!(f, "~ address {address}"),
            Self::AddNeighbour(neighbour) => write!(f, "+ neighbour {neighbour}"),
            Self::AddGroup {
                bridge,
                port,
                entry,
            } => write!(f, "+ mdb dev {bridge} port {port} {entry}"),
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

impl fmt::Display for OrderedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "address {address}"),
            Self::Route(route) => write!(f, "route {route}"),
            Self::Rule(rule) => write!(f, "rule {rule}"),
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
            Self::Name(name) => write!(f, "name {name}"),
            Self::Broadcast(mac) => write!(f, "broadcast {mac}"),
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::TxQueueLen(length) => write!(f, "txqueuelen {length}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::Alias(alias) => write!(f, "alias \"{alias}\""),
            Self::Altnames(names) => write!(f, "altname {}", join(names, " ")),
            Self::Flags(from, to) => describe_flags(f, *from, *to),
            Self::Master(master) => write!(f, "master {master}"),
            Self::Port(settings) => {
                let names = settings.iter();
                let names = names.filter_map(|raw| BRIDGE_PORT.name(raw.number));
                write!(f, "bridge_slave {}", join(names, ", "))
            }
            Self::BondPort(settings) => {
                let names = settings.iter();
                let names = names.filter_map(|raw| BOND_PORT.name(raw.number));
                write!(f, "bond_slave {}", join(names, ", "))
            }
            Self::AddVlans(vlans) => write!(f, "vlan add {}", join(vlans, ", ")),
            Self::DeleteVlans(vlans) => write!(f, "vlan del {}", join(vlans, ", ")),
            Self::Offload(limits) => {
                let limits = limits.iter();
                let words = limits.map(|(limit, value)| format!("{} {value}", limit.as_str()));
                f.write_str(&join(words, " "))
            }
            Self::ProtoDown => f.write_str("protodown on"),
            Self::Dormant => f.write_str("mode dormant"),
            Self::Token(token) => write!(f, "token {token}"),
            Self::Kind(kind) => describe_kind(f, kind),
            Self::Lower { link, parent } => write!(f, "type {} dev {parent}", link.kind.name()),
            Self::BondOption(option, value) => write!(f, "type bond {option} {value}"),
            Self::BondLists(_) => {
                f.write_str("type bond arp_ip_target, ns_ip6_target, ad_actor_system")
            }
            Self::BackupPort(port) => write!(f, "bridge_slave backup_port {port}"),
            Self::BondPrimary(port) => write!(f, "type bond primary {port}"),
            Self::AddrGenMode(mode) => write!(f, "addrgenmode {mode}"),
            Self::Function(index, setting) => write!(f, "vf {index} {setting}"),
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
