//! IP addresses of interfaces.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use crate::model::fidelity::attribute::Treatment::{Restored, State};
use crate::model::fidelity::attribute::TwinComparison::Reported;
use crate::model::fidelity::attribute::row;
use crate::model::fidelity::form::{IP, IPV4, TEXT, U8, U32, attributes};
use crate::model::net::link::sysctl::GenMode;
use crate::model::{Bytes, IfName, Mac, is_false};

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
/// `IFA_F_SECONDARY`, for IPv4.
const SECONDARY: u32 = TEMPORARY;
/// Template for privacy addresses.
pub const MANAGETEMPADDR: u32 = 0x100;
/// No connected route comes with the address.
pub const NOPREFIXROUTE: u32 = 0x200;
/// Joins the multicast group.
pub const MCAUTOJOIN: u32 = 0x400;
/// Derived from a secret (RFC 7217).
const STABLE_PRIVACY: u32 = 0x800;
/// `IFAPROT_KERNEL_LO`: the address of the loopback device.
const PROTO_KERNEL_LO: u8 = 1;
/// `IFAPROT_KERNEL_RA`: learnt from a router advertisement.
const PROTO_KERNEL_RA: u8 = 2;
/// `IFAPROT_KERNEL_LL`: the kernel's link-local address.
const PROTO_KERNEL_LL: u8 = 3;

/// `RT_SCOPE_HOST`: no other machine sees such an address.
pub(crate) const SCOPE_HOST: u8 = 254;

/// The prefix length of a link-local address that the kernel adds.
const LINK_LOCAL_LEN: u8 = 64;

attributes! {
    /// One address of one interface.
    #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub struct Address {
        /// The interface that has it.
        pub dev: IfName;
        /// The address itself (`IFA_LOCAL`).
        pub local: IpAddr = IP, row(2, "IFA_LOCAL", Restored, "addresses");
        /// Prefix length in bits.
        pub prefix_len: u8;
        /// The peer of a point-to-point address.
        pub peer?: IpAddr = IP, row(1, "IFA_ADDRESS", Restored, "addresses");
        /// IPv4 broadcast address.
        pub broadcast?: Ipv4Addr = IPV4, row(4, "IFA_BROADCAST", Restored, "addresses");
        /// Scope (`RT_SCOPE_*`): 0 global, 253 link, 254 host.
        pub scope: u8;
        /// `IFA_F_*` bits.
        pub flags: u32 = U32, row(8, "IFA_FLAGS", Restored, "addresses, fidelity/addresses");
        /// IPv4 label, where it is not the interface's name.
        pub label?: Bytes = TEXT, row(3, "IFA_LABEL", Restored, "addresses, bytes");
        /// Valid lifetime in seconds; `None`: forever.
        pub valid_lft?: u32;
        /// Preferred lifetime in seconds; `None`: forever.
        pub preferred_lft?: u32;
        /// How much of both lifetimes had passed since they were last set, in seconds; `None`: nothing, or unknown.
        pub lft_elapsed?: u32;
        /// Metric of the connected route (`IFA_RT_PRIORITY`).
        pub metric?: u32 = U32, row(9, "IFA_RT_PRIORITY", Restored, "addresses").since("4.18");
        /// Its origin (`IFA_PROTO`, Linux 5.18).
        pub protocol?: u8 = U8, row(11, "IFA_PROTO", Restored, "fidelity/addresses").since("5.18");
        /// Its origin, as far as a restore is concerned.
        pub maker: Maker;
        /// Its connected route was deleted, or moved to another table.
        #[serde(default, skip_serializing_if = "is_false")]
        pub without_route: bool;
        /// Its entry in the table `local` was deleted, or that for the multicast packets of its link (IPv6): packets are not
        /// delivered.
        #[serde(default, skip_serializing_if = "is_false")]
        pub without_local: bool;
    }

    /// `IFA_*`.
    pub const ADDRESS = "Addresses", "`IFA_*` of `RTM_NEWADDR` (`linux/if_addr.h`)", Reported;
    others:
        row(5, "IFA_ANYCAST", State, ""),
        // The lifetimes.
        row(6, "IFA_CACHEINFO", Restored, "addresses"),
        row(7, "IFA_MULTICAST", State, ""),
        row(10, "IFA_TARGET_NETNSID", State, ""),
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
    /// The origin of an address on a link with this MAC, which adds link-local addresses of its own in this `mode`
    /// (`addr_gen_mode`).
    ///
    /// Kernels before 5.18 do not report it (`reports`). There, a link-local address is the kernel's if the kernel would
    /// derive the same one, and an address of a router is known by `mngtmpaddr`, which the kernel gives to each of them.
    #[must_use]
    pub fn of(address: &Address, reports: bool, mac: Option<Mac>, mode: GenMode) -> Self {
        let Address {
            local: IpAddr::V6(ip),
            flags,
            protocol,
            ..
        } = *address
        else {
            return Self::Admin;
        };
        // The kernel would derive neither an address of an earlier MAC again, nor one of an earlier mode. No request can add one
        // that is derived from a secret.
        let would_be_made = || match mode {
            _ if flags & STABLE_PRIVACY != 0 => true,
            GenMode::Nothing | GenMode::OfSecret => false,
            GenMode::OfMac => mac.is_none_or(|mac| ip == link_local(mac)),
        };
        match protocol {
            _ if flags & TEMPORARY != 0 => Self::Network,
            // The kernel gives this flag to each of its own; a program that evaluates advertisements does not.
            Some(PROTO_KERNEL_RA) if flags & MANAGETEMPADDR != 0 => Self::Network,
            Some(PROTO_KERNEL_LL) if would_be_made() => Self::Kernel,
            _ if reports || protocol.is_some() => Self::Admin,
            _ if flags & MANAGETEMPADDR != 0 => Self::Network,
            _ if address.looks_derived() && would_be_made() => Self::Kernel,
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
            lft_elapsed: None,
            metric: None,
            protocol: None,
            maker: Maker::Admin,
            without_route: false,
            without_local: false,
        }
    }

    /// Whether it has the attributes that the kernel gives to a link-local address.
    fn looks_derived(&self) -> bool {
        let is_link_local = matches!(self.local, IpAddr::V6(ip) if is_link_local(ip));
        let is_plain = self.flags & NODAD == 0 && self.metric.is_none() && self.peer.is_none();
        is_link_local && is_plain && self.prefix_len == LINK_LOCAL_LEN
    }

    /// Whether several machines or pods may have it.
    pub(crate) fn is_shared(&self) -> bool {
        self.local.is_multicast() || self.scope == SCOPE_HOST
    }

    /// Whether it is link-local, and a request can add it: not one that is derived from a secret.
    pub(crate) fn is_plain_link_local(&self) -> bool {
        matches!(self.local, IpAddr::V6(ip) if is_link_local(ip)) && !self.is_of_secret()
    }

    /// Whether it is derived from a secret.
    pub(crate) fn is_of_secret(&self) -> bool {
        self.local.is_ipv6() && self.flags & STABLE_PRIVACY != 0
    }

    /// Whether it is the membership of an IPv6 group (`autojoin`).
    pub(crate) fn is_joined_group(&self) -> bool {
        self.local.is_ipv6() && self.flags & MCAUTOJOIN != 0
    }

    /// Whether the kernel makes such an address of its own in this mode.
    pub(crate) fn is_of_mode(&self, mode: GenMode) -> bool {
        match mode {
            GenMode::OfMac => !self.is_of_secret(),
            GenMode::OfSecret => self.is_of_secret(),
            GenMode::Nothing => false,
        }
    }

    /// Whether the kernel or the network adds this address once the link is up.
    #[must_use]
    pub fn comes_by_itself(&self) -> bool {
        self.maker != Maker::Admin
    }

    /// Whether it has no connected route that comes with it if it is added by hand: the loopback device's has none.
    pub(crate) fn has_no_route(&self) -> bool {
        self.without_route || self.protocol == Some(PROTO_KERNEL_LO)
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

    /// What the kernel compares to find it among the addresses of its link: of an IPv6 address, the address alone.
    pub(crate) fn identity(&self) -> (IpAddr, u8, Option<IpAddr>) {
        match self.local {
            IpAddr::V4(_) => (self.local, self.prefix_len, self.peer),
            IpAddr::V6(_) => (self.local, 0, None),
        }
    }

    /// Whether the attributes that `ip address change` sets are equal. Of lifetimes only their presence counts: they pass, and
    /// a DHCP client renews them.
    pub(crate) fn has_changeable_of(&self, other: &Self) -> bool {
        (self.flags ^ other.flags) & self.changeable_flags() == 0
            && self.metric == other.metric
            && self.protocol == other.protocol
            && self.valid_lft.is_some() == other.valid_lft.is_some()
            && self.preferred_lft.is_some() == other.preferred_lft.is_some()
    }

    /// Whether the attributes are equal that the kernel never changes (`inet_rtm_newaddr`, `inet6_addr_modify`).
    pub(crate) fn has_fixed_of(&self, other: &Self) -> bool {
        let fixed_flags = REQUESTED_FLAGS & !self.changeable_flags();
        (self.flags ^ other.flags) & fixed_flags == 0
            && self.scope == other.scope
            && self.label == other.label
            && self.broadcast == other.broadcast
            && self.key() == other.key()
    }

    fn changeable_flags(&self) -> u32 {
        if self.local.is_ipv4() {
            0
        } else {
            REQUESTED_FLAGS & !MCAUTOJOIN
        }
    }

    /// Whether it is behind the primary address of its subnet (`IFA_F_SECONDARY`).
    pub(crate) fn is_secondary(&self) -> bool {
        self.local.is_ipv4() && self.flags & SECONDARY != 0
    }

    /// Puts it in front of the other addresses of its subnet.
    pub(crate) fn make_primary(&mut self) {
        self.flags &= !SECONDARY;
    }

    /// The address as it is added first to be usable at once; `None` if the kernel adds it without duplicate address detection
    /// anyway.
    pub(crate) fn without_detection(&self) -> Option<Self> {
        (self.local.is_ipv6() && self.flags & NODAD == 0).then(|| Self {
            flags: self.flags | NODAD,
            ..self.clone()
        })
    }

    /// Whether duplicate address detection is under way.
    pub(crate) fn is_in_detection(&self) -> bool {
        self.flags & (TENTATIVE | DADFAILED) == TENTATIVE
    }

    /// Whether it is not usable yet, or not at all, because of duplicate address detection.
    pub(crate) fn is_unusable(&self) -> bool {
        self.flags & (TENTATIVE | DADFAILED) != 0
    }

    /// Whether duplicate address detection has found another owner: it is not usable.
    pub(crate) fn has_failed_detection(&self) -> bool {
        self.flags & DADFAILED != 0
    }

    /// The prefix that it connects to.
    pub(crate) fn subnet(&self) -> Option<IpNet> {
        let far = self.peer.unwrap_or(self.local);
        IpNet::new(far, self.prefix_len).ok().map(|net| net.trunc())
    }
}

/// The order in which to add addresses for the kernel to list them as before: it lists IPv4 addresses oldest first (the
/// first of a subnet is primary), and IPv6 addresses newest first.
pub(crate) fn in_adding_order<'a>(
    listed: impl Iterator<Item = &'a Address>,
) -> impl Iterator<Item = &'a Address> {
    let (v4, v6): (Vec<_>, Vec<_>) = listed.partition(|address| address.local.is_ipv4());
    v4.into_iter().chain(v6.into_iter().rev())
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
mod tests;
