//! VLANs: id, tag protocol, flags, maps of priorities.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::text::Invalid;

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
