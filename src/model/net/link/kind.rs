//! The kinds of links, with their data.

use serde::{Deserialize, Serialize};

use crate::model::Mac;
use crate::model::net::limits;
use crate::model::net::link::bond::Bond;
use crate::model::net::link::vlan::Vlan;
use crate::model::net::raw::RawAttribute;

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
    /// A macvlan with a character device (`/dev/tapIFINDEX`).
    Macvtap(Macvlan),
    /// ipvlan.
    Ipvlan(Ipvlan),
    /// An ipvlan with a character device.
    Ipvtap(Ipvlan),
    /// Bonding master.
    Bond(Bond),
    /// A kind that netfix can describe, and make only with its data.
    Other {
        /// The kernel's `IFLA_INFO_KIND`, such as `veth` or `bridge`.
        driver: String,
        /// `IFLA_INFO_DATA` of a kind that names its lower device there, without that attribute: [`Link::parent`](crate::model::Link::parent) has its name.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        data: Vec<RawAttribute>,
    },
}

impl LinkKind {
    /// A kind of which only the name is known.
    #[must_use]
    pub fn other(driver: impl Into<String>) -> Self {
        Self::Other {
            driver: driver.into(),
            data: Vec::new(),
        }
    }

    /// The kind's name as `ip link add type` takes it.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Loopback => "loopback",
            Self::Physical => "physical",
            Self::Vlan(_) => "vlan",
            Self::Macvlan(_) => "macvlan",
            Self::Macvtap(_) => "macvtap",
            Self::Ipvlan(_) => "ipvlan",
            Self::Ipvtap(_) => "ipvtap",
            Self::Bond(_) => "bond",
            Self::Other { driver, .. } => driver,
        }
    }

    /// Whether netfix can create a link of this kind.
    #[must_use]
    pub fn can_be_made(&self) -> bool {
        match self {
            Self::Loopback | Self::Physical => false,
            Self::Other { .. } => self.has_whole_data(),
            _ => true,
        }
    }

    /// Whether it is a macvlan or a macvtap: it has a MAC of its own on its parent.
    #[must_use]
    pub fn is_macvlan(&self) -> bool {
        matches!(self, Self::Macvlan(_) | Self::Macvtap(_))
    }

    /// Whether it has a character device.
    pub(crate) fn is_tap(&self) -> bool {
        matches!(self, Self::Macvtap(_) | Self::Ipvtap(_))
    }

    /// Whether it reaches the same neighbours as its parent.
    pub(crate) fn shares_parent(&self) -> bool {
        self.is_macvlan() || self.is_ipvlan()
    }

    /// Whether it has its parent's MAC and no other (`ipvlan_link_new` in `drivers/net/ipvlan/ipvlan_main.c`).
    #[must_use]
    pub fn is_ipvlan(&self) -> bool {
        matches!(self, Self::Ipvlan(_) | Self::Ipvtap(_))
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

/// How an ipvlan forwards (`enum ipvlan_mode`, `linux/if_link.h`). All ipvlans of one parent have the same mode and flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IpvlanMode {
    /// As a switch.
    L2,
    /// As a router, without multicast and broadcast.
    L3,
    /// As a router, and packets also pass the host's netfilter.
    L3s,
}

/// The data of an ipvlan.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ipvlan {
    /// Mode.
    pub mode: IpvlanMode,
    /// `IPVLAN_F_*` bits: 1 private, 2 vepa; none: bridge.
    #[serde(default)]
    pub ipvlan_flags: u16,
}

impl Ipvlan {
    /// The word of ip(8) for the flags.
    pub(crate) fn flag(&self) -> &'static str {
        match self.ipvlan_flags {
            0 => "bridge",
            1 => "private",
            2 => "vepa",
            _ => "unknown",
        }
    }
}
