//! IP addresses of interfaces.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::{Bytes, IfName, Mac};

/// `IFA_F_*` bits (`linux/if_addr.h`) that an administrator sets; the kernel derives the others (secondary, tentative,
/// deprecated, permanent, dadfailed).
pub const REQUESTED_FLAGS: u32 = NODAD | HOMEADDRESS | MANAGETEMPADDR | NOPREFIXROUTE | MCAUTOJOIN;
/// Duplicate address detection is skipped.
pub const NODAD: u32 = 0x02;
/// Mobile IPv6 home address.
pub const HOMEADDRESS: u32 = 0x10;
/// Duplicate address detection found another owner.
pub const DADFAILED: u32 = 0x08;
/// Not usable yet: duplicate address detection is under way.
pub const TENTATIVE: u32 = 0x40;
/// Has no lifetime.
pub const PERMANENT: u32 = 0x80;
/// Usable although duplicate address detection is under way (RFC 4429).
const OPTIMISTIC: u32 = 0x04;
/// Phases of duplicate address detection.
pub const PASSING_FLAGS: u32 = OPTIMISTIC | DADFAILED | TENTATIVE;
/// A privacy address of the kernel (for IPv4, the same bit means secondary).
pub const TEMPORARY: u32 = 0x01;
/// Template for privacy addresses.
pub const MANAGETEMPADDR: u32 = 0x100;
/// No connected route comes with the address.
pub const NOPREFIXROUTE: u32 = 0x200;
/// Joins the multicast group.
pub const MCAUTOJOIN: u32 = 0x400;
/// Derived from a secret (RFC 7217).
const STABLE_PRIVACY: u32 = 0x800;
/// `IFAPROT_KERNEL_RA`: learnt from a router advertisement.
const PROTO_KERNEL_RA: u8 = 2;
/// `IFAPROT_KERNEL_LL`: the kernel's link-local address.
const PROTO_KERNEL_LL: u8 = 3;

/// One address of one interface.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The interface that has it.
    pub dev: IfName,
    /// The address itself (`IFA_LOCAL`).
    pub local: IpAddr,
    /// Prefix length in bits.
    pub prefix_len: u8,
    /// The peer of a point-to-point address.
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
    pub label: Option<Bytes>,
    /// Valid lifetime in seconds; `None`: forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_lft: Option<u32>,
    /// Preferred lifetime in seconds; `None`: forever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preferred_lft: Option<u32>,
    /// Metric of the connected route (`IFA_RT_PRIORITY`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<u32>,
    /// Its origin (`IFA_PROTO`, Linux 5.18).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u8>,
    /// Its origin, as far as a restore is concerned.
    pub maker: Maker,
}

/// The origin of an address, which decides whether a restore adds it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Maker {
    /// An administrator or a program on this machine.
    #[default]
    Admin,
    /// The kernel, once the link is up: the link-local address derived from MAC or secret.
    Kernel,
    /// The network: router advertisements and privacy extensions.
    Network,
}

impl Maker {
    /// The origin of an address with these attributes, on a link with this MAC.
    ///
    /// Kernels before 5.18 do not report it: there, a link-local address is the kernel's if the kernel would derive the
    /// same one.
    #[must_use]
    pub fn of(
        local: IpAddr,
        flags: u32,
        protocol: Option<u8>,
        expires: bool,
        mac: Option<Mac>,
    ) -> Self {
        let IpAddr::V6(ip) = local else {
            return Self::Admin;
        };
        // The kernel would not derive an address of an earlier MAC again.
        let would_be_made =
            || flags & STABLE_PRIVACY != 0 || mac.is_none_or(|mac| ip == link_local(mac));
        match protocol {
            Some(PROTO_KERNEL_RA) => Self::Network,
            Some(PROTO_KERNEL_LL) if would_be_made() => Self::Kernel,
            Some(PROTO_KERNEL_LL) => Self::Admin,
            _ if flags & (TEMPORARY | MANAGETEMPADDR) != 0 || (expires && protocol.is_none()) => {
                Self::Network
            }
            _ if is_link_local(ip) && would_be_made() => Self::Kernel,
            _ => Self::Admin,
        }
    }
}

fn is_link_local(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xffc0 == 0xfe80
}

/// The link-local address derived from a MAC (RFC 4291, appendix A: modified EUI-64).
fn link_local(Mac(mac): Mac) -> Ipv6Addr {
    let pair = |high: u8, low: u8| u16::from_be_bytes([high, low]);
    let (first, last) = (pair(mac[0] ^ 2, mac[1]), pair(mac[4], mac[5]));
    Ipv6Addr::new(
        0xfe80,
        0,
        0,
        0,
        first,
        pair(mac[2], 0xff),
        pair(0xfe, mac[3]),
        last,
    )
}

impl Address {
    /// An address without lifetime and with default attributes.
    #[must_use]
    pub fn plain(dev: IfName, local: IpAddr, prefix_len: u8) -> Self {
        Self {
            dev,
            local,
            prefix_len,
            peer: None,
            broadcast: None,
            scope: 0,
            flags: 0,
            label: None,
            valid_lft: None,
            preferred_lft: None,
            metric: None,
            protocol: None,
            maker: Maker::Admin,
        }
    }

    /// Whether the kernel or the network adds this address once the link is up.
    #[must_use]
    pub fn comes_by_itself(&self) -> bool {
        self.maker != Maker::Admin
    }

    /// Whether both are the same address on the same interface; their attributes may differ.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// What distinguishes it from the other addresses of its namespace.
    pub(crate) fn key(&self) -> (&IfName, IpAddr, u8, Option<IpAddr>) {
        (&self.dev, self.local, self.prefix_len, self.peer)
    }

    /// Whether the attributes that an administrator sets are equal: flags, scope, label, metric, broadcast.
    pub(crate) fn has_attributes_of(&self, other: &Self) -> bool {
        (self.flags ^ other.flags) & REQUESTED_FLAGS == 0
            && self.scope == other.scope
            && self.label == other.label
            && self.metric == other.metric
            && self.broadcast == other.broadcast
            && self.valid_lft.is_some() == other.valid_lft.is_some()
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([0x02, 0x42, 0x0a, 0x03, 0x01, 0x01]);

    fn maker(text: &str, flags: u32, protocol: Option<u8>, expires: bool) -> Maker {
        Maker::of(text.parse().unwrap(), flags, protocol, expires, Some(MAC))
    }

    #[test]
    fn a_link_local_address_is_the_kernels_only_if_the_kernel_would_make_it() {
        assert_eq!(
            maker("fe80::42:aff:fe03:101", PERMANENT, None, false),
            Maker::Kernel
        );
        assert_eq!(maker("fe80::88", PERMANENT, None, false), Maker::Admin);
        assert_eq!(
            maker("fe80::42:aff:fe03:101", PERMANENT, Some(3), false),
            Maker::Kernel
        );
        assert_eq!(
            maker("fe80::1234", PERMANENT | STABLE_PRIVACY, Some(3), false),
            Maker::Kernel
        );
        assert_eq!(
            maker("fe80::1234", PERMANENT, Some(3), false),
            Maker::Admin,
            "made from an earlier MAC"
        );
    }

    #[test]
    fn what_routers_advertise_comes_from_the_network() {
        assert_eq!(maker("fd00::1", 0, Some(2), true), Maker::Network);
        assert_eq!(maker("fd00::1", 0, None, true), Maker::Network);
        assert_eq!(maker("fd00::1", TEMPORARY, None, true), Maker::Network);
        assert_eq!(
            maker("10.0.0.1", TEMPORARY, None, true),
            Maker::Admin,
            "for IPv4 the bit means secondary"
        );
    }
}
