//! Links and their kind-specific data, as `ip -d link` shows them.

pub mod bond;
pub mod fdb;
pub mod function;
mod hardware;
pub mod index;
pub(crate) mod kind;
pub(crate) mod lower;
pub mod nic;
pub mod port;
pub mod settings;
pub mod socket;
pub mod sysctl;
pub mod sysfs;
pub(crate) mod vlan;

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::nic::{NicState, Sriov};
use crate::model::net::link::port::{MdbEntry, PortVlans};
use crate::model::net::link::sysctl::Sysctls;
use crate::model::net::link::sysfs::SysfsSettings;
use crate::model::net::raw::RawAttribute;
use crate::model::{Bytes, IfName, Mac, Traffic, is_false};

pub use crate::model::net::link::hardware::{Hardware, NicDriver, OtherDriver};
pub use crate::model::net::link::kind::{Ipvlan, IpvlanMode, LinkKind, Macvlan, MacvlanMode};
pub use crate::model::net::link::vlan::{Vlan, VlanId, VlanProtocol};

/// One network interface with all attributes that `ip link add` or `ip link set` can give it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(clippy::struct_excessive_bools, reason = "one for each attribute")]
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
    /// The ports of a bond in the order in which they were added: some drivers treat the first one in another way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<IfName>,
    /// The settings of a port, by the numbers in [`BRIDGE_PORT`](crate::model::fidelity::BRIDGE_PORT) or
    /// [`BOND_PORT`](crate::model::fidelity::BOND_PORT), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port: Vec<RawAttribute>,
    /// The port of the same bridge that gets the packets of this one while this one has no carrier (`bridge link set … backup_port`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup_port: Option<IfName>,
    /// Whether it is a port of a bridge that is set to pass no packet: the bridge runs no spanning tree, and both could carry some.
    #[serde(default, skip_serializing_if = "is_false")]
    pub blocked: bool,
    /// Forwarding entries that were added to it, in the kernel's order (`bridge fdb`).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::FORWARDING }, _, _>"
    )]
    pub fdb: Vec<FdbEntry>,
    /// The VLANs of a port of a bridge, ascending; `None` for another link, and in a file of a netfix that did not read them.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "limits::vlans"
    )]
    pub vlans: Option<Vec<PortVlans>>,
    /// The multicast groups that were added to a port of a bridge, ascending (`bridge mdb`).
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::GROUPS }, _, _>"
    )]
    pub mdb: Vec<MdbEntry>,
    /// The link-layer broadcast address where it is not `ff:ff:ff:ff:ff:ff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Mac>,
    /// Link-layer groups that were joined by hand (`ip maddress`), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Mac>,
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
    /// A bridge with VLAN filtering, in which the VLANs of a port decide which packets it lets through.
    #[serde(default, skip_serializing_if = "is_false")]
    pub vlan_filtering: bool,
    /// `vlan_default_pvid`: the VLAN that the bridge gives to a new port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_pvid: Option<VlanId>,
    /// The parent (`IFLA_LINK`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The other end of a pair of links, such as a veth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<Parent>,
    /// The kind, with its data.
    #[serde(flatten)]
    pub kind: LinkKind,
    /// The identity of a physical device, independent of its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Per-interface sysctls; empty for the loopback device.
    #[serde(default)]
    pub sysctls: Sysctls,
    /// Packet steering and NAPI settings; read for links that can be lost with a NIC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysfs: SysfsSettings,
    /// What is set on a device by ethtool(8), and its virtual functions; absent where nothing can be set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nic: Option<Box<NicState>>,
}

impl Link {
    /// The link with its kind, as messages name it.
    #[must_use]
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind.name(), self.name)
    }

    /// Whether it is on a link of the host.
    pub(crate) fn is_on_host(&self) -> bool {
        matches!(self.parent, Some(Parent::Host(_)))
    }

    /// Whether it is a bridge of the kernel.
    pub(crate) fn is_bridge(&self) -> bool {
        self.kind.name() == BRIDGE
    }

    /// Whether it is the one link that all ports of Open vSwitch have as their master.
    pub(crate) fn is_open_vswitch(&self) -> bool {
        self.kind.name() == OPEN_VSWITCH
    }

    /// Whether packets from one port of it go to the others.
    pub(crate) fn is_switch(&self) -> bool {
        is_switch(self.kind.name())
    }

    /// Whether it is a device that can be recognised when its driver has made it anew.
    pub(crate) fn is_device(&self) -> bool {
        self.kind == LinkKind::Physical && self.hardware.is_some()
    }

    /// Its virtual functions, where it can have some.
    pub(crate) fn sriov(&self) -> Option<&Sriov> {
        self.nic.as_ref()?.sriov.as_ref()
    }

    /// Whether forwarding entries that were added to it are lost with a NIC: those of a vxlan with a lower device.
    pub(crate) fn has_forwarding(&self) -> bool {
        self.kind.name() == "vxlan" && self.parent.is_some()
    }

    /// Whether MACs that were added to its own filter (`bridge fdb add ... self`) can be lost with a NIC. A pair, a dummy or an ifb can
    /// stand in for a device. The kernel lets none be added to a macvlan that shares its parent (`macvlan_fdb_add`).
    pub(crate) fn has_filter(&self) -> bool {
        let is_shared = matches!(
            &self.kind,
            LinkKind::Macvlan(data) | LinkKind::Macvtap(data) if data.mode != MacvlanMode::Passthru
        );
        let can_be = self.can_be_lost() || matches!(self.kind.name(), "veth" | "dummy" | "ifb");
        can_be && !is_shared && !self.has_forwarding()
    }

    /// Whether it is one end of a pair (veth).
    pub(crate) fn is_pair(&self) -> bool {
        self.kind.name() == "veth"
    }

    /// Whether it is a VRF, which has the connected routes of its ports in a table of its own.
    pub(crate) fn is_vrf(&self) -> bool {
        self.kind.name() == "vrf"
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
            ports: Vec::new(),
            backup_port: None,
            blocked: false,
            fdb: Vec::new(),
            vlans: None,
            mdb: Vec::new(),
            broadcast: None,
            groups: Vec::new(),
            offload: BTreeMap::new(),
            protodown: false,
            dormant: false,
            token: None,
            vlan_filtering: false,
            default_pvid: None,
            parent: None,
            peer: None,
            kind,
            hardware: None,
            sysctls: Sysctls::default(),
            sysfs: SysfsSettings::new(),
            nic: None,
        }
    }
}

const BRIDGE: &str = "bridge";
const OPEN_VSWITCH: &str = "openvswitch";

/// Whether packets from one port of a link of this kind go to the others.
pub(crate) fn is_switch(kind: &str) -> bool {
    matches!(kind, BRIDGE | OPEN_VSWITCH)
}

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

#[cfg(test)]
mod tests {
    use crate::model::net::link::*;

    #[test]
    fn a_port_can_be_added_to_a_vrf_and_to_a_bridge() {
        let master = |kind: &str| Link::plain("m0".parse().unwrap(), LinkKind::other(kind));
        for (kind, expected) in [
            ("vrf", true),
            ("bridge", true),
            ("team", false),
            ("openvswitch", false),
        ] {
            assert_eq!(master(kind).takes_ports(), expected, "{kind}");
        }
    }

    #[test]
    fn vlan_ids_end_at_4094() {
        assert!(VlanId::try_from(4094).is_ok());
        assert!(VlanId::try_from(4095).is_err());
    }
}
