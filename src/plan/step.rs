//! The steps of a plan, each one change of one object, printed like the `ip(8)` command that would make it.

use std::fmt;

use crate::model::bond::{Bond, BondOption};
use crate::model::link::{Flags, Macvlan, Vlan};
use crate::model::sysctl::{Folder, SysctlKey, Sysctls};
use crate::model::text::join;
use crate::model::{Address, Bytes, IfName, Link, LinkKind, Mac, Neighbour, Parent, Route, Rule};

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
        /// Whether another route of the checkpoint shares its place.
        append: bool,
    },
    /// Adds a rule.
    AddRule(Rule),
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
    /// macvlan data.
    Macvlan(Macvlan),
    /// VLAN flags.
    Vlan(Vlan),
    /// A numeric option of a bond.
    BondOption(BondOption, u32),
    /// The list-like options of a bond.
    BondLists(Box<Bond>),
    /// The primary port of a bond.
    BondPrimary(IfName),
    /// `IN6_ADDR_GEN_MODE_*`, without making an address at once as a write of the sysctl does.
    AddrGenMode(u8),
}

impl Step {
    /// The step that creates a link. Its settings are steps of their own.
    pub(crate) fn add_link(link: Link) -> Self {
        let sysctls = Sysctls::default();
        Self::AddLink(Box::new(Link { sysctls, ..link }))
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

/// `+` is what appears, `~` what changes.
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
            Self::AddAddress(address) => write!(f, "+ address {address}"),
            Self::ChangeAddress(address) => write!(f, "~ address {address}"),
            Self::AddNeighbour(neighbour) => write!(f, "+ neighbour {neighbour}"),
            Self::AddRoute { route, .. } => write!(f, "+ route {route}"),
            Self::AddRule(rule) => write!(f, "+ rule {rule}"),
        }
    }
}

fn describe_link(f: &mut fmt::Formatter<'_>, link: &Link) -> fmt::Result {
    write!(f, "+ {} {}", link.kind.name(), link.name)?;
    if let Some(Parent::Own(parent) | Parent::Host(parent)) = &link.parent {
        write!(f, " on {parent}")?;
    }
    match &link.kind {
        LinkKind::Vlan(vlan) => {
            write!(f, " id {} protocol {}", vlan.id, vlan.protocol)?;
            vlan.unusual_flags()
                .iter()
                .try_for_each(|flag| write!(f, " {flag}"))?;
        }
        LinkKind::Macvlan(macvlan) => write!(f, " mode {}", macvlan.mode)?,
        LinkKind::Bond(bond) => write!(f, " mode {}", bond.mode_name())?,
        LinkKind::Loopback | LinkKind::Physical | LinkKind::Other { .. } => {}
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
            Self::Mtu(mtu) => write!(f, "mtu {mtu}"),
            Self::TxQueueLen(length) => write!(f, "txqueuelen {length}"),
            Self::Group(group) => write!(f, "group {group}"),
            Self::Alias(alias) => write!(f, "alias \"{alias}\""),
            Self::Altnames(names) => write!(f, "altname {}", join(names, " ")),
            Self::Flags(from, to) => describe_flags(f, *from, *to),
            Self::Master(master) => write!(f, "master {master}"),
            Self::Macvlan(data) => write!(
                f,
                "type macvlan mode {} flags {}",
                data.mode, data.macvlan_flags
            ),
            Self::Vlan(vlan) => write!(f, "type vlan flags {:#x}", vlan.vlan_flags),
            Self::BondOption(option, value) => write!(f, "type bond {option} {value}"),
            Self::BondLists(_) => {
                f.write_str("type bond arp_ip_target, ns_ip6_target, ad_actor_system")
            }
            Self::BondPrimary(port) => write!(f, "type bond primary {port}"),
            Self::AddrGenMode(mode) => write!(f, "addrgenmode {mode}"),
        }
    }
}

fn describe_flags(f: &mut fmt::Formatter<'_>, from: Flags, to: Flags) -> fmt::Result {
    let pairs = [
        ("arp", !from.noarp, !to.noarp),
        ("promisc", from.promisc, to.promisc),
        ("allmulticast", from.allmulti, to.allmulti),
        ("multicast", from.multicast, to.multicast),
    ];
    let changed = pairs.iter().filter(|(_, from, to)| from != to);
    let words: Vec<String> = changed
        .map(|(name, _, to)| format!("{name} {}", if *to { "on" } else { "off" }))
        .collect();
    f.write_str(&words.join(" "))
}
