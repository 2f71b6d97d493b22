//! Probes of neighbours by the kernel (RFC 4861, section 7.3; RFC 826), and what comes of them.

use std::net::IpAddr;

use netlink_packet_core::NLM_F_CREATE;
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use crate::kernel::address::neighbour::{destination, entry, lladdr};
use crate::kernel::{Errno, Error, Request, Socket, events};
use crate::model::Mac;

/// The multicast group of neighbour changes (linux/rtnetlink.h).
const RTNLGRP_NEIGH: u32 = 3;

/// Makes the kernel resolve a neighbour as if a packet for it had arrived (`NTF_USE`): it sends ARP requests or
/// neighbour solicitations from the link.
///
/// The table is one for all namespaces (`gc_thresh3`). From Linux 5.0 on an `NTF_EXT_LEARNED` entry does not count there, so a
/// full table refuses none, and no other entry gives way; but it stays until [`forget`].
pub fn resolve(index: u32, dst: IpAddr) -> Request {
    let mut message = entry(index, dst);
    message.header.state = NeighbourState::None;
    message.header.flags = NeighbourFlags::Use | NeighbourFlags::ExtLearned;
    Request::new(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE)
}

/// `ip neighbour del`.
pub fn forget(index: u32, dst: IpAddr) -> Request {
    Request::new(RouteNetlinkMessage::DelNeighbour(entry(index, dst)), 0)
}

/// Makes the kernel probe a known neighbour again.
pub fn reprobe(index: u32, dst: IpAddr) -> Request {
    let mut message = entry(index, dst);
    message.header.state = NeighbourState::Probe;
    Request::new(RouteNetlinkMessage::NewNeighbour(message), 0)
}

/// The kernel's entry for a neighbour before the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeighbourEntry {
    /// There is none, or the neighbour did not answer.
    Unknown,
    /// The neighbour has answered before.
    Known,
    /// Its hardware address is static, or the link needs none.
    Static,
}

/// The entry of a neighbour in the socket's namespace.
pub fn lookup(socket: &mut Socket, index: u32, dst: IpAddr) -> Result<NeighbourEntry, Error> {
    let request = RouteNetlinkMessage::GetNeighbour(entry(index, dst));
    let state = match socket.get(request) {
        Ok(RouteNetlinkMessage::NewNeighbour(found)) => Some(found.header.state),
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => listed(socket, index, dst)?,
        // ENOENT; what else is wrong, the probe shows.
        Ok(_) | Err(Error::Kernel(_)) => None,
        Err(error) => return Err(error),
    };
    Ok(match state {
        Some(NeighbourState::Permanent | NeighbourState::Noarp) => NeighbourEntry::Static,
        Some(state) if has_answered(state) => NeighbourEntry::Known,
        _ => NeighbourEntry::Unknown,
    })
}

/// A neighbour that has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnsweredNeighbour {
    pub index: u32,
    pub dst: IpAddr,
    pub lladdr: Mac,
}

/// The neighbours that have answered, by the table of the socket's namespace; not those that a program has added.
pub fn answered(socket: &mut Socket) -> Result<Vec<AnsweredNeighbour>, Error> {
    let request = RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default());
    let entries = socket.dump(request)?.objects.into_iter();
    let answered = entries.filter_map(|object| match object {
        RouteNetlinkMessage::NewNeighbour(found)
            if has_answered(found.header.state)
                && !found.header.flags.contains(NeighbourFlags::ExtLearned) =>
        {
            Some(AnsweredNeighbour {
                index: found.header.ifindex,
                dst: destination(&found)?,
                lladdr: lladdr(&found)?,
            })
        }
        _ => None,
    });
    Ok(answered.collect())
}

fn has_answered(state: NeighbourState) -> bool {
    matches!(
        state,
        NeighbourState::Reachable
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe
    )
}

/// The hardware address of a neighbour, where the kernel has one.
pub fn known_mac(socket: &mut Socket, index: u32, dst: IpAddr) -> Result<Option<Mac>, Error> {
    match socket.get(RouteNetlinkMessage::GetNeighbour(entry(index, dst))) {
        Ok(RouteNetlinkMessage::NewNeighbour(found)) => Ok(lladdr(&found)),
        Ok(_) | Err(Error::Kernel(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The state of an entry in the list of the interface: kernels before 5.0 answer for no single one.
fn listed(socket: &mut Socket, index: u32, dst: IpAddr) -> Result<Option<NeighbourState>, Error> {
    let mut request = entry(index, dst);
    request.attributes = vec![NeighbourAttribute::IfIndex(index)];
    request.header.ifindex = 0;
    let entries = socket.dump(RouteNetlinkMessage::GetNeighbour(request))?;
    let state = entries.objects.into_iter().find_map(|object| match object {
        RouteNetlinkMessage::NewNeighbour(found)
            if found.header.ifindex == index && destination(&found) == Some(dst) =>
        {
            Some(found.header.state)
        }
        _ => None,
    });
    Ok(state)
}

/// A change in a neighbour table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourEvent {
    pub index: u32,
    pub dst: IpAddr,
    /// Its hardware address, where the kernel has one.
    pub lladdr: Option<Mac>,
    /// It has just answered (`NUD_REACHABLE`).
    pub reachable: bool,
    /// It did not answer (`NUD_FAILED`).
    pub failed: bool,
}

/// Subscribes to neighbour events of the calling thread's namespace.
pub fn subscribe() -> Result<Socket, Error> {
    events::subscribe(RTNLGRP_NEIGH)
}

/// The next events of such a socket; blocks until there is one.
pub fn events(socket: &mut Socket) -> Result<Vec<NeighbourEvent>, Error> {
    Ok(events::receive(socket)?
        .into_iter()
        .filter_map(|event| match event {
            RouteNetlinkMessage::NewNeighbour(message) => Some(NeighbourEvent {
                index: message.header.ifindex,
                dst: destination(&message)?,
                lladdr: lladdr(&message),
                reachable: message.header.state == NeighbourState::Reachable,
                failed: message.header.state == NeighbourState::Failed,
            }),
            _ => None,
        })
        .collect())
}
