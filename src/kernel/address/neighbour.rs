//! Neighbours: between rtnetlink messages and the model (`ip neighbour`).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, Nla};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use crate::kernel::codec::text;
use crate::kernel::{Request, admission};
use crate::model::{IfName, Mac, Neighbour};

/// `NDA_DST` and `NDA_LLADDR` (`linux/neighbour.h`).
const DST: u16 = 1;
const LLADDR: u16 = 2;

/// Reads one entry of a dump; `None` for one that was not added ([`admission::is_neighbour`]).
pub(crate) fn parse(
    message: &NeighbourMessage,
    dev: &IfName,
    mac: Option<Mac>,
) -> Option<Neighbour> {
    let (state, flags) = (message.header.state, message.header.flags);
    let mut neighbour = Neighbour {
        proxy: flags.contains(NeighbourFlags::Proxy),
        router: flags.contains(NeighbourFlags::Router),
        noarp: state == NeighbourState::Noarp,
        extern_learn: flags.contains(NeighbourFlags::ExtLearned),
        ..Neighbour::plain(dev.clone(), destination(message)?)
    };
    for attribute in &message.attributes {
        let raw = text::stored(attribute);
        neighbour.read(raw.number, &raw.value);
    }
    let Neighbour {
        dst,
        lladdr,
        proxy,
        managed,
        ..
    } = neighbour;
    let is_marked = proxy || managed;
    if !admission::is_neighbour(state.into(), is_marked, dst, lladdr, mac) {
        return None;
    }
    neighbour.noarp &= !is_marked;
    neighbour.lladdr = lladdr.filter(|_| !managed);
    neighbour.protocol = neighbour.protocol.filter(|protocol| *protocol != 0);
    Some(neighbour)
}

/// The value of an attribute in a message about any entry.
fn value(message: &NeighbourMessage, number: u16) -> Option<Vec<u8>> {
    let mut all = message.attributes.iter();
    let attribute = all.find(|attribute| attribute.kind() == number)?;
    Some(text::stored(attribute).value)
}

pub(crate) fn destination(message: &NeighbourMessage) -> Option<IpAddr> {
    admission::ip(message.header.family, &value(message, DST)?)
}

pub(crate) fn lladdr(message: &NeighbourMessage) -> Option<Mac> {
    Mac::from_slice(&value(message, LLADDR)?)
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
    let mut message = entry(index, neighbour.dst);
    // A proxy entry that is not permanent goes with the carrier of its link (`pneigh_entry.permanent` in Linux 6.18).
    message.header.state = match neighbour {
        Neighbour { managed: true, .. } => NeighbourState::None,
        Neighbour { noarp: true, .. } => NeighbourState::Noarp,
        _ => NeighbourState::Permanent,
    };
    for (flag, is_set) in [
        (NeighbourFlags::Proxy, neighbour.proxy),
        (NeighbourFlags::Router, neighbour.router),
        (NeighbourFlags::ExtLearned, neighbour.extern_learn),
    ] {
        message.header.flags.set(flag, is_set);
    }
    message.attributes = neighbour
        .attributes()
        .map(|raw| NeighbourAttribute::Other(text::restored(&raw, 0)))
        .collect();
    let flags = if neighbour.proxy {
        NLM_F_CREATE | NLM_F_EXCL
    } else {
        NLM_F_CREATE | NLM_F_REPLACE
    };
    Request::new(RouteNetlinkMessage::NewNeighbour(message), flags)
}
