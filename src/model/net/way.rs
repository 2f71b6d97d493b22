//! Where the kernel sends a packet of a namespace.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::model::IfName;

/// What decides where a packet goes, beside the namespace's routes and rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Packet {
    /// Its destination.
    pub to: IpAddr,
    /// The source address; absent where the kernel chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// The firewall mark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<u32>,
    /// The link or VRF that the sender is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<IfName>,
    /// For one that is forwarded: the link that it comes in through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<IfName>,
}

impl Packet {
    /// One of which the destination alone decides the way.
    pub(crate) fn plain(to: IpAddr) -> Self {
        Self {
            to,
            from: None,
            mark: None,
            bound: None,
            received: None,
        }
    }

    /// To a neighbour of this link.
    pub(crate) fn to_neighbour(to: IpAddr, dev: &IfName) -> Self {
        let bound = is_link_local(to).then(|| dev.clone());
        Self {
            bound,
            ..Self::plain(to)
        }
    }
}

/// Whether it is an address of IPv6 that every link has for itself.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The way of a packet, by the kernel's lookup (`ip route get`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PacketWay {
    /// The packet.
    #[serde(flatten)]
    pub packet: Packet,
    /// Where it goes.
    #[serde(flatten)]
    pub exit: WayExit,
}

/// Where a packet goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WayExit {
    /// Out of a link.
    Link {
        /// The link.
        dev: IfName,
        /// The next hop; absent where the destination is on the link.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<IpAddr>,
        /// The routing table that has its route.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        table: Option<u32>,
    },
    /// To the namespace itself.
    Local {
        /// The link that has the address, or `lo`.
        local: IfName,
    },
    /// Nowhere.
    Refused {
        /// The kernel's errno, such as `ENETUNREACH`.
        refused: String,
    },
}

impl WayExit {
    /// The link that the packet leaves through, and its next hop, by whatever route.
    pub(crate) fn hop(&self) -> Option<(&IfName, Option<IpAddr>)> {
        match self {
            Self::Link { dev, via, .. } => Some((dev, *via)),
            Self::Local { .. } | Self::Refused { .. } => None,
        }
    }
}
