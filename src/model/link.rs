//! Links and their kind-specific data, as `ip -d link` shows them.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use super::bond::Bond;
use super::raw::RawAttribute;
use super::sysctl::Sysctls;
use super::{Bytes, IfName, Mac, Traffic, is_false, limits};

pub use super::vlan::{Vlan, VlanId, VlanProtocol};

/// One network interface with all attributes that `ip link add` or `ip link set` can give it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Link {
    /// Interface name.
    pub name: IfName,
    /// Interface index, to which sockets with `SO_BINDTODEVICE` are bound.
    pub index: u32,
    /// Hardware address; `None` for links without an Ethernet one.
    pub mac: Option<Mac>,
    /// Maximum transmission unit in bytes.
    pub mtu: u32,
    /// Transmit queue length in packets.
    pub txqueuelen: u32,
    /// Flags that `ip link set` can change.
    pub flags: Flags,
    /// `ip link set alias`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limits::alias"
    )]
    pub alias: Option<Bytes>,
    /// Alternative names (`ip link property add altname`).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::altnames"
    )]
    pub altnames: Vec<Bytes>,
    /// Interface group.
    #[serde(default)]
    pub group: u32,
    /// Number of transmit and receive queues, fixed at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queues: Option<Queues>,
    /// Kind of the root qdisc (`IFLA_QDISC`). Where that is the kernel's default one, it is compared and not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// Qdiscs, classes and filters beyond the kernel's defaults.
    #[serde(default, skip_serializing_if = "Traffic::is_empty")]
    pub traffic: Traffic,
    /// The bond, bridge or VRF that the link is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<IfName>,
    /// The settings of a port of a bridge, by the numbers in [`BRIDGE_PORT`], ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<RawAttribute>,
    /// Limits of segmentation and aggregation offload that are not the kernel's defaults.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub offload: BTreeMap<OffloadLimit, u32>,
    /// `protodown on`: held down by a daemon.
    #[serde(default, skip_serializing_if = "is_false")]
    pub protodown: bool,
    /// `mode dormant` (`IFLA_LINKMODE`): waits for a daemon to declare it operational.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dormant: bool,
    /// `ip token`: the lower half of the addresses that the link derives from router advertisements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Ipv6Addr>,
    /// A bridge with VLAN filtering, whose ports have VLANs of their own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub vlan_filtering: bool,
    /// The parent (`IFLA_LINK`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The kind, with its data.
    #[serde(flatten)]
    pub kind: LinkKind,
    /// The identity of a physical device, independent of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Per-interface sysctls; empty for the loopback device.
    #[serde(default)]
    pub sysctls: Sysctls,
}

impl Link {
    /// Whether it is on a link of the host.
    pub(crate) fn is_on_host(&self) -> bool {
        matches!(self.parent, Some(Parent::Host(_)))
    }

    /// Whether netfix can add a port to it: to a VRF, and to a bridge whose ports have no VLANs. A bond is a case of its own.
    pub(crate) fn takes_ports(&self) -> bool {
        match self.kind.name() {
            "bridge" => !self.vlan_filtering,
            kind => kind == "vrf",
        }
    }

    /// A link with default attributes: up, with multicast, and an index of the kernel's choice.
    #[must_use]
    pub fn plain(name: IfName, kind: LinkKind) -> Self {
        Self {
            name,
            index: 0,
            mac: None,
            mtu: ETHERNET_MTU,
            txqueuelen: DEFAULT_TXQUEUELEN,
            flags: Flags {
                up: true,
                multicast: true,
                ..Flags::default()
            },
            alias: None,
            altnames: Vec::new(),
            group: 0,
            queues: None,
            qdisc: None,
            traffic: Traffic::default(),
            master: None,
            port: Vec::new(),
            offload: BTreeMap::new(),
            protodown: false,
            dormant: false,
            token: None,
            vlan_filtering: false,
            parent: None,
            kind,
            hardware: None,
            sysctls: Sysctls::default(),
        }
    }
}

/// The settings of a port of a bridge that an administrator sets (`IFLA_BRPORT_*`, `linux/if_link.h`), with their names in
/// bridge(8). The others are states, or refer to another link.
pub const BRIDGE_PORT: [(u16, &str); 23] = [
    (2, "priority"),
    (3, "cost"),
    (4, "hairpin"),
    (5, "guard"),
    (6, "root_block"),
    (7, "fastleave"),
    (8, "learning"),
    (9, "flood"),
    (10, "proxy_arp"),
    (12, "proxy_arp_wifi"),
    (25, "mcast_router"),
    (27, "mcast_flood"),
    (28, "mcast_to_unicast"),
    (29, "vlan_tunnel"),
    (30, "bcast_flood"),
    (31, "group_fwd_mask"),
    (32, "neigh_suppress"),
    (33, "isolated"),
    (37, "mcast_eht_hosts_limit"),
    (39, "locked"),
    (40, "mab"),
    (42, "mcast_max_groups"),
    (43, "neigh_vlan_suppress"),
];

/// The kernel's defaults (`ETH_DATA_LEN`, `DEFAULT_TX_QUEUE_LEN`).
const ETHERNET_MTU: u32 = 1500;
const DEFAULT_TXQUEUELEN: u32 = 1000;

/// Flags of a link that an administrator sets (`IFF_*`, linux/if.h).
#[allow(clippy::struct_excessive_bools)] // each is one bit of the kernel's flag word
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags {
    /// Administratively up.
    pub up: bool,
    /// Carrier (`LOWER_UP` and `RUNNING`); read only.
    pub carrier: bool,
    /// `arp off`.
    pub noarp: bool,
    /// `promisc on`.
    pub promisc: bool,
    /// `allmulticast on`.
    pub allmulti: bool,
    /// `multicast on`.
    pub multicast: bool,
    /// `dynamic on`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub dynamic: bool,
    /// `trailers off`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub notrailers: bool,
}

/// A limit of segmentation or aggregation offload (`IFLA_*`, `linux/if_link.h`), in bytes or segments. The kernel lowers those for
/// IPv4 with the others, which come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is documented in ip-link(8)
pub enum OffloadLimit {
    GsoMaxSize,
    GsoMaxSegs,
    GroMaxSize,
    GsoIpv4MaxSize,
    GroIpv4MaxSize,
}

impl OffloadLimit {
    /// The kernel's default (`GSO_LEGACY_MAX_SIZE`, `GSO_MAX_SEGS`, `GRO_LEGACY_MAX_SIZE`, linux/netdevice.h).
    pub(crate) fn default_value(self) -> u32 {
        match self {
            Self::GsoMaxSegs => 65_535,
            _ => 65_536,
        }
    }

    /// Its name in ip-link(8).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GsoMaxSize => "gso_max_size",
            Self::GsoMaxSegs => "gso_max_segs",
            Self::GroMaxSize => "gro_max_size",
            Self::GsoIpv4MaxSize => "gso_ipv4_max_size",
            Self::GroIpv4MaxSize => "gro_ipv4_max_size",
        }
    }
}

/// Queue counts of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Queues {
    /// Transmit queues.
    pub tx: u32,
    /// Receive queues.
    pub rx: u32,
}

/// The parent of a link, and its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Parent {
    /// In the same namespace.
    Own(IfName),
    /// In the host's namespace.
    Host(IfName),
    /// In a third namespace; netfix cannot recreate such a link.
    Elsewhere,
}

impl Parent {
    /// The parent's name; `None` for a link of a third namespace.
    #[must_use]
    pub fn name(&self) -> Option<&IfName> {
        match self {
            Self::Own(name) | Self::Host(name) => Some(name),
            Self::Elsewhere => None,
        }
    }
}

/// The kinds of link that netfix distinguishes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum LinkKind {
    /// The loopback device of a namespace; never lost.
    Loopback,
    /// A device without a kind: hardware, or a driver that appears as such.
    Physical,
    /// IEEE 802.1Q or 802.1ad VLAN.
    Vlan(Vlan),
    /// macvlan.
    Macvlan(Macvlan),
    /// Bonding master.
    Bond(Bond),
    /// A kind that netfix can describe but not make.
    Other {
        /// The kernel's `IFLA_INFO_KIND`, such as `veth` or `ipvlan`.
        driver: String,
    },
}

impl LinkKind {
    /// The kind's name as `ip link add type` takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Loopback => "loopback",
            Self::Physical => "physical",
            Self::Vlan(_) => "vlan",
            Self::Macvlan(_) => "macvlan",
            Self::Bond(_) => "bond",
            Self::Other { driver } => driver,
        }
    }

    /// Whether netfix can create a link of this kind.
    #[must_use]
    pub fn can_be_made(&self) -> bool {
        matches!(self, Self::Vlan(_) | Self::Macvlan(_) | Self::Bond(_))
    }
}

/// How a macvlan's traffic is treated (`enum macvlan_mode`, `linux/if_link.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MacvlanMode {
    /// No traffic between the macvlans of one parent.
    Private,
    /// Traffic between them goes through the switch.
    Vepa,
    /// Traffic between them is bridged on the host.
    Bridge,
    /// One macvlan owns the parent.
    Passthru,
    /// Only listed source addresses are received.
    Source,
}

/// The data of a macvlan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Macvlan {
    /// Mode.
    pub mode: MacvlanMode,
    /// `MACVLAN_FLAG_*` bits: 1 nopromisc, 2 nodst.
    #[serde(default)]
    pub macvlan_flags: u16,
    /// Requested broadcast queue length in packets (Linux 5.11), never the one in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bc_queue_len: Option<u32>,
    /// Broadcast cutoff (Linux 6.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bc_cutoff: Option<i32>,
    /// Source addresses let through in source mode.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::SOURCES }, _, _>"
    )]
    pub sources: Vec<Mac>,
}

impl Macvlan {
    /// A macvlan with default attributes.
    #[must_use]
    pub fn plain(mode: MacvlanMode) -> Self {
        Self {
            mode,
            macvlan_flags: 0,
            bc_queue_len: None,
            bc_cutoff: None,
            sources: Vec::new(),
        }
    }
}

/// The identity of a device.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Hardware {
    /// The address burnt into the device (`ip -d link`: permaddr).
    pub permanent_mac: Option<Mac>,
    /// Bus address, such as `0000:00:02.0`.
    pub bus: Option<String>,
    /// Kernel driver, such as `i40e`.
    pub driver: Option<String>,
}

impl Hardware {
    /// Whether both are the same device: permanent MAC or bus address is known of both and equal, and the other one does
    /// not differ.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let mac = same(self.permanent_mac.as_ref(), other.permanent_mac.as_ref());
        let bus = same(self.bus.as_ref(), other.bus.as_ref());
        match (mac, bus) {
            (Some(mac), Some(bus)) => mac && bus,
            (known, None) | (None, known) => known == Some(true),
        }
    }

    /// Whether it can be recognised under another name.
    pub(crate) fn is_known(&self) -> bool {
        self.permanent_mac.is_some() || self.bus.is_some()
    }
}

fn same<T: PartialEq>(a: Option<&T>, b: Option<&T>) -> Option<bool> {
    Some(a? == b?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hardware(mac: Option<u8>, bus: Option<&str>) -> Hardware {
        let permanent_mac = mac.map(|last| Mac([2, 0, 0, 0, 0, last]));
        Hardware {
            permanent_mac,
            bus: bus.map(str::to_owned),
            driver: None,
        }
    }

    #[test]
    fn a_device_is_known_by_mac_or_bus_and_never_by_a_contradiction() {
        let nic = hardware(Some(1), Some("0000:00:02.0"));
        assert!(nic.is_same(&hardware(Some(1), None)));
        assert!(nic.is_same(&hardware(None, Some("0000:00:02.0"))));
        assert!(!nic.is_same(&hardware(Some(2), Some("0000:00:02.0"))));
        assert!(!nic.is_same(&hardware(None, None)));
    }

    #[test]
    fn a_port_can_be_added_to_a_vrf_and_to_a_bridge_without_vlans() {
        let master = |kind: &str, vlan_filtering| {
            let driver = kind.to_owned();
            let kind = LinkKind::Other { driver };
            Link {
                vlan_filtering,
                ..Link::plain("m0".parse().unwrap(), kind)
            }
        };
        assert!(master("vrf", false).takes_ports());
        assert!(master("bridge", false).takes_ports());
        assert!(!master("bridge", true).takes_ports());
        assert!(!master("team", false).takes_ports());
    }

    #[test]
    fn vlan_ids_end_at_4094() {
        assert!(VlanId::try_from(4094).is_ok());
        assert!(VlanId::try_from(4095).is_err());
    }
}
