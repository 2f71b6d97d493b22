//! IP addresses of interfaces.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use super::IfName;

/// `IFA_F_*` bits (`linux/if_addr.h`) that describe what an administrator asked for; the others (secondary,
/// tentative, deprecated, permanent, dadfailed) are states that the kernel derives.
pub const REQUESTED_FLAGS: u32 = NODAD | HOMEADDRESS | MANAGETEMPADDR | NOPREFIXROUTE | MCAUTOJOIN;
/// Duplicate address detection is skipped.
pub const NODAD: u32 = 0x02;
/// Mobile IPv6 home address.
pub const HOMEADDRESS: u32 = 0x10;
/// Duplicate address detection found another owner.
pub const DADFAILED: u32 = 0x08;
/// Not usable yet: duplicate address detection is under way.
pub const TENTATIVE: u32 = 0x40;
/// Lives until it is removed.
pub const PERMANENT: u32 = 0x80;
/// A privacy address made by the kernel (for IPv4 the same bit means secondary).
pub const TEMPORARY: u32 = 0x01;
/// Template for privacy addresses.
pub const MANAGETEMPADDR: u32 = 0x100;
/// No connected route comes with the address.
pub const NOPREFIXROUTE: u32 = 0x200;
/// Joins the multicast group.
pub const MCAUTOJOIN: u32 = 0x400;
/// `IFAPROT_KERNEL_RA`: learnt from a router advertisement.
const PROTO_KERNEL_RA: u8 = 2;
/// `IFAPROT_KERNEL_LL`: the link-local address that the kernel made.
const PROTO_KERNEL_LL: u8 = 3;

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Address {
    /// The interface that has it.
    pub dev: IfName,
    /// The address itself (`IFA_LOCAL`).
    pub local: IpAddr,
    /// Prefix length in bits.
    pub prefix_len: u8,
    /// The other end of a point-to-point address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// IPv4 broadcast address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Ipv4Addr>,
    /// Scope (`RT_SCOPE_*`): 0 global, 253 link, 254 host.
    pub scope: u8,
    /// `IFA_F_*` bits.
    pub flags: u32,
    /// IPv4 label, where it is not the interface's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Seconds for which it stays valid; `None` is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_lft: Option<u32>,
    /// Seconds for which it is preferred; `None` is for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_lft: Option<u32>,
    /// Metric of the connected route (`IFA_RT_PRIORITY`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
    /// Who made it (`IFA_PROTO`, Linux 5.18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
}

impl Address {
    /// Whether the kernel makes this address by itself once the interface is up: the link-local one, and
    /// what router advertisements and privacy extensions bring.
    #[must_use]
    pub fn is_made_by_kernel(&self) -> bool {
        self.is_kernel_link_local() || self.is_learnt()
    }

    /// Whether it comes from router advertisements or privacy extensions, and so from outside.
    #[must_use]
    pub fn is_learnt(&self) -> bool {
        let IpAddr::V6(_) = self.local else { return false };
        self.protocol == Some(PROTO_KERNEL_RA)
            || self.flags & (TEMPORARY | MANAGETEMPADDR) != 0
            || (self.valid_lft.is_some() && self.protocol.is_none())
    }

    /// Whether it is the link-local address that the kernel derives from the MAC.
    #[must_use]
    pub fn is_kernel_link_local(&self) -> bool {
        match self.local {
            IpAddr::V4(_) => false,
            // Kernels before 5.18 do not tell who made an address.
            IpAddr::V6(ip) => {
                self.protocol.map_or_else(|| is_link_local(ip), |proto| proto == PROTO_KERNEL_LL)
            }
        }
    }

    /// Whether both are the same address on the same interface, whatever their attributes.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.dev == other.dev
            && self.local == other.local
            && self.prefix_len == other.prefix_len
            && self.peer == other.peer
    }

    /// Whether the address also has what an administrator gave it: flags, scope, label, metric, broadcast.
    #[must_use]
    pub fn has_attributes_of(&self, other: &Self) -> bool {
        (self.flags ^ other.flags) & REQUESTED_FLAGS == 0
            && self.scope == other.scope
            && self.label == other.label
            && self.metric == other.metric
            && self.broadcast == other.broadcast
            && self.valid_lft.is_some() == other.valid_lft.is_some()
    }
}

fn is_link_local(ip: std::net::Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.local)?;
        if let Some(peer) = self.peer {
            write!(f, " peer {peer}")?;
        }
        write!(f, "/{} dev {}", self.prefix_len, self.dev)
    }
}
