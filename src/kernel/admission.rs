//! Which objects of a dump netfix reads: one rule for each kind, for the readers of `link/`, `address/` and `route/` and for
//! `reported/`, which compares what a restore brought back. If they disagreed, a rehearsal would miss an object, or report one
//! that no snapshot has.
//!
//! Of links, those with a name that is an [`IfName`](crate::model::IfName); of nexthop objects, all. Only `route/` reads rules.

use std::net::IpAddr;

use netlink_packet_route::AddressFamily;

use crate::model::Mac;
use crate::model::fidelity::form::IP;

/// An IP address in a message of this family. The destination of a forwarding entry is of another family than its message.
pub(super) fn ip(family: AddressFamily, value: &[u8]) -> Option<IpAddr> {
    (IP.read)(value).filter(|ip| family == (*ip).into())
}

/// The address itself, of `IFA_LOCAL` and `IFA_ADDRESS`; `None` for families other than IP.
///
/// IPv6 sends `IFA_LOCAL` only with a peer. IPv4 sends both, which differ only with a peer, but none that is 0.0.0.0.
pub(super) fn address(
    family: AddressFamily,
    local: Option<IpAddr>,
    far: Option<IpAddr>,
) -> Option<IpAddr> {
    let local = local.filter(|local| !local.is_unspecified()).or(far);
    local.filter(|local| family == (*local).into())
}

/// Whether a route is one of IP, and not one that the kernel keeps for packets to one address.
pub(super) fn is_route(family: AddressFamily, flags: u32) -> bool {
    /// `RTM_F_CLONED` (`linux/rtnetlink.h`).
    const CLONED: u32 = 0x200;
    matches!(family, AddressFamily::Inet | AddressFamily::Inet6) && flags & CLONED == 0
}

/// Whether an administrator or a program added a neighbour: permanent entries, those that are `marked` as proxy or managed, and
/// those without ARP, but for the kernel's own, which have the MAC of their link or of a group. What the kernel or a program
/// learned (`NTF_EXT_LEARNED`), such as the probe of a gateway, is none of these.
pub(super) fn is_neighbour(
    state: u16,
    is_marked: bool,
    dst: IpAddr,
    lladdr: Option<Mac>,
    mac: Option<Mac>,
) -> bool {
    /// `NUD_NOARP` and `NUD_PERMANENT` (`linux/neighbour.h`).
    const NOARP: u16 = 0x40;
    const PERMANENT: u16 = 0x80;
    let is_of_another = lladdr.is_some_and(|lladdr| !lladdr.is_group() && Some(lladdr) != mac);
    let noarp = state == NOARP && !dst.is_multicast() && is_of_another;
    is_marked || noarp || state == PERMANENT
}
