//! Neighbours: between rtnetlink messages and the model (`ip neighbour`).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourExtFlags, NeighbourFlags, NeighbourMessage,
    NeighbourState,
};

use crate::kernel::Request;
use crate::model::{IfName, Mac, Neighbour};

/// `NUD_NOARP` and `NUD_PERMANENT` (`linux/neighbour.h`).
const NOARP: u16 = 0x40;
const PERMANENT: u16 = 0x80;

/// Whether an administrator or a program added an entry: permanent ones, those that are `marked` as proxy or managed, and those
/// without ARP, but for the kernel's own, which have the MAC of their link or of a group.
pub(in crate::kernel) fn is_added(
    state: u16,
    is_marked: bool,
    dst: IpAddr,
    lladdr: Option<Mac>,
    mac: Option<Mac>,
) -> bool {
    let is_of_another = lladdr.is_some_and(|lladdr| !lladdr.is_group() && Some(lladdr) != mac);
    let noarp = state == NOARP && !dst.is_multicast() && is_of_another;
    is_marked || noarp || state == PERMANENT
}

/// Reads one entry of a dump; `None` unless [`is_added`].
pub(crate) fn parse(
    message: &NeighbourMessage,
    dev: &IfName,
    mac: Option<Mac>,
) -> Option<Neighbour> {
    let (state, flags) = (message.header.state, message.header.flags);
    let (dst, lladdr) = (destination(message)?, lladdr(message));
    let proxy = flags.contains(NeighbourFlags::Proxy);
    let managed = message.attributes.iter().any(is_managed);
    if !is_added(state.into(), proxy || managed, dst, lladdr, mac) {
        return None;
    }
    Some(Neighbour {
        dev: dev.clone(),
        dst,
        lladdr: lladdr.filter(|_| !managed),
        proxy,
        router: flags.contains(NeighbourFlags::Router),
        noarp: !proxy && !managed && state == NeighbourState::Noarp,
        extern_learn: flags.contains(NeighbourFlags::ExtLearned),
        managed,
        protocol: protocol(message),
    })
}

fn is_managed(attribute: &NeighbourAttribute) -> bool {
    matches!(attribute, NeighbourAttribute::ExtFlags(flags) if flags.contains(NeighbourExtFlags::Managed))
}

fn protocol(message: &NeighbourMessage) -> Option<u8> {
    message.attributes.iter().find_map(|attribute| {
        let NeighbourAttribute::Protocol(protocol) = attribute else {
            return None;
        };
        Some((*protocol).into()).filter(|protocol| *protocol != 0)
    })
}

pub(crate) fn destination(message: &NeighbourMessage) -> Option<IpAddr> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(ip)) => Some(IpAddr::V4(*ip)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(ip)) => Some(IpAddr::V6(*ip)),
            _ => None,
        })
}

pub(crate) fn lladdr(message: &NeighbourMessage) -> Option<Mac> {
    message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(bytes) => Mac::from_slice(bytes),
            _ => None,
        })
}

/// A message about the entry of this neighbour.
pub(super) fn entry(index: u32, dst: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = dst.into();
    message.header.ifindex = index;
    message.attributes = vec![NeighbourAttribute::Destination(dst.into())];
    message
}

/// `ip neighbour add … nud permanent` or `proxy`; replaces an entry that the kernel has learnt.
pub fn put(index: u32, neighbour: &Neighbour) -> Request {
    let Neighbour {
        dev: _,
        dst,
        lladdr,
        proxy,
        router,
        noarp,
        extern_learn,
        managed,
        protocol,
    } = neighbour;
    let mut message = entry(index, *dst);
    // A proxy entry that is not permanent goes with the carrier of its link (`pneigh_entry.permanent` in Linux 6.18).
    message.header.state = match () {
        () if *managed => NeighbourState::None,
        () if *noarp => NeighbourState::Noarp,
        () => NeighbourState::Permanent,
    };
    for (flag, is_set) in [
        (NeighbourFlags::Proxy, *proxy),
        (NeighbourFlags::Router, *router),
        (NeighbourFlags::ExtLearned, *extern_learn),
    ] {
        message.header.flags.set(flag, is_set);
    }
    let lladdr = lladdr.map(|mac| NeighbourAttribute::LinkLayerAddress(mac.0.to_vec()));
    let managed = managed.then_some(NeighbourAttribute::ExtFlags(NeighbourExtFlags::Managed));
    let protocol = protocol.map(|protocol| NeighbourAttribute::Protocol(protocol.into()));
    let optional = [lladdr, managed, protocol];
    message.attributes.extend(optional.into_iter().flatten());
    let flags = if *proxy {
        NLM_F_CREATE | NLM_F_EXCL
    } else {
        NLM_F_CREATE | NLM_F_REPLACE
    };
    Request::new(RouteNetlinkMessage::NewNeighbour(message), flags)
}
