//! Bonding masters and their options.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::model::net::limits;
use crate::model::{IfName, Mac};

/// The data of a bond: mode and options of `ip link set type bond`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bond {
    /// Mode number (`BOND_MODE_*`, `linux/if_bonding.h)`: 0 balance-rr, 1 active-backup, 4 802.3ad, …
    pub mode: u8,
    /// Numeric options by their `ip(8)` name, in the kernel's own units.
    #[serde(default)]
    pub options: BTreeMap<BondOption, u32>,
    /// `arp_ip_target`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::BOND_TARGETS }, _, _>"
    )]
    pub arp_ip_target: Vec<Ipv4Addr>,
    /// `ns_ip6_target`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::BOND_TARGETS }, _, _>"
    )]
    pub ns_ip6_target: Vec<Ipv6Addr>,
    /// `primary`: the kernel accepts only a port of the bond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<IfName>,
    /// `ad_actor_system`, where one was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ad_actor_system: Option<Mac>,
}

/// The names of bonding modes, by number.
const MODES: [&str; 7] = [
    "balance-rr",
    "active-backup",
    "balance-xor",
    "broadcast",
    "802.3ad",
    "balance-tlb",
    "balance-alb",
];

impl Bond {
    /// The mode's name as `ip(8)` prints it.
    pub(crate) fn mode_name(&self) -> &'static str {
        MODES
            .get(usize::from(self.mode))
            .copied()
            .unwrap_or("unknown")
    }
}

/// A numeric option of a bond, named as in `ip(8)`, in the order in which netfix sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // each is documented in ip-link(8) and the kernel's bonding.rst
pub enum BondOption {
    FailOverMac,
    UseCarrier,
    Miimon,
    Updelay,
    Downdelay,
    ArpInterval,
    ArpValidate,
    ArpAllTargets,
    PrimaryReselect,
    XmitHashPolicy,
    ResendIgmp,
    NumPeerNotif,
    AllSlavesActive,
    MinLinks,
    LpInterval,
    PacketsPerSlave,
    AdLacpRate,
    AdSelect,
    AdActorSysPrio,
    AdUserPortKey,
    TlbDynamicLb,
    PeerNotifyDelay,
    AdLacpActive,
    ArpMissedMax,
    CoupledControl,
}
