//! Links and their kind-specific data, as `ip -d link` shows them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bond::Bond;
use super::sysctl::Sysctls;
use super::text::Invalid;
use super::{Bytes, IfName, Mac, limits};

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
    /// Kind of the root qdisc (`IFLA_QDISC`): compared, not restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qdisc: Option<String>,
    /// The bond, bridge or VRF that the link is a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<IfName>,
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
            master: None,
            parent: None,
            kind,
            hardware: None,
            sysctls: Sysctls::default(),
        }
    }
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

/// A VLAN id: 0 to 4094.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct VlanId(u16);

impl TryFrom<u16> for VlanId {
    type Error = Invalid;

    fn try_from(id: u16) -> Result<Self, Invalid> {
        if id < 4095 {
            Ok(Self(id))
        } else {
            Err(Invalid::new(&id, "a VLAN id (0 to 4094)"))
        }
    }
}

impl From<VlanId> for u16 {
    fn from(id: VlanId) -> Self {
        id.0
    }
}

impl fmt::Display for VlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The tag protocol of a VLAN.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum VlanProtocol {
    /// Ethertype 0x8100.
    #[default]
    #[serde(rename = "802.1Q")]
    Dot1Q,
    /// Ethertype 0x88a8.
    #[serde(rename = "802.1ad")]
    Dot1Ad,
}

/// The data of a VLAN.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vlan {
    /// The tag.
    pub id: VlanId,
    /// The tag's protocol.
    #[serde(default)]
    pub protocol: VlanProtocol,
    /// `VLAN_FLAG_*` bits (`linux/if_vlan.h)`: 1 `reorder_hdr`, 2 gvrp, 4 `loose_binding`, 8 mvrp, 16 `bridge_binding`.
    #[serde(default)]
    pub vlan_flags: u32,
    /// `ingress-qos-map`: VLAN priority to packet priority.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::INGRESS }, _, _>"
    )]
    pub ingress_qos: Vec<(u32, u32)>,
    /// `egress-qos-map`: packet priority to VLAN priority.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::EGRESS }, _, _>"
    )]
    pub egress_qos: Vec<(u32, u32)>,
}

impl Vlan {
    /// `VLAN_FLAG_REORDER_HDR`, the only flag of a new VLAN.
    pub const REORDER_HDR: u32 = 1;
    const FLAG_NAMES: [(u32, &'static str); 5] = [
        (1, "reorder_hdr"),
        (2, "gvrp"),
        (4, "loose_binding"),
        (8, "mvrp"),
        (16, "bridge_binding"),
    ];

    /// An 802.1Q VLAN with the flags that a new one has.
    #[must_use]
    pub fn plain(id: VlanId) -> Self {
        Self {
            id,
            protocol: VlanProtocol::Dot1Q,
            vlan_flags: Self::REORDER_HDR,
            ingress_qos: Vec::new(),
            egress_qos: Vec::new(),
        }
    }

    /// Names of the flags that differ from a new VLAN's, as `ip link add type vlan` takes them.
    pub(crate) fn unusual_flags(&self) -> Vec<String> {
        let differs = self.vlan_flags ^ Self::REORDER_HDR;
        let on = |bit: u32| {
            if self.vlan_flags & bit == 0 {
                "off"
            } else {
                "on"
            }
        };
        Self::FLAG_NAMES
            .iter()
            .filter(|(bit, _)| differs & bit != 0)
            .map(|(bit, name)| format!("{name} {}", on(*bit)))
            .collect()
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
    fn vlan_ids_end_at_4094() {
        assert!(VlanId::try_from(4094).is_ok());
        assert!(VlanId::try_from(4095).is_err());
    }
}
