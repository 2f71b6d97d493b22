//! Neighbours: between rtnetlink messages and the model (`ip neighbour`).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourExtFlags, NeighbourFlags, NeighbourMessage,
    NeighbourState,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::{Errno, Error, Request, Socket, events};
use crate::model::{IfName, Mac, Neighbour};

/// The multicast group of neighbour changes (linux/rtnetlink.h).
const RTNLGRP_NEIGH: u32 = 3;

/// Reads one entry of a dump; `None` unless an administrator added it: permanent, managed and proxy entries, and those without
/// ARP, but for the kernel's own, which have the MAC of their link or of a group.
pub(crate) fn parse(
    message: &NeighbourMessage,
    dev: &IfName,
    mac: Option<Mac>,
) -> Option<Neighbour> {
    let (state, flags) = (message.header.state, message.header.flags);
    let (dst, lladdr) = (destination(message)?, lladdr(message));
    let proxy = flags.contains(NeighbourFlags::Proxy);
    let managed = message.attributes.iter().any(is_managed);
    let is_of_another = lladdr.is_some_and(|lladdr| !lladdr.is_group() && Some(lladdr) != mac);
    let noarp = state == NeighbourState::Noarp && !dst.is_multicast() && is_of_another;
    if !proxy && !managed && !noarp && state != NeighbourState::Permanent {
        return None;
    }
    Some(Neighbour {
        dev: dev.clone(),
        dst,
        lladdr: lladdr.filter(|_| !managed),
        proxy,
        router: flags.contains(NeighbourFlags::Router),
        noarp,
        extern_learn: flags.contains(NeighbourFlags::ExtLearned),
        managed,
        protocol: protocol(message),
    })
}

/// The MAC of an entry of a bridge's forwarding table (`bridge fdb`) that was added and not learnt; the kernel's own, among them,
/// have MACs of the bridge and its ports.
pub(crate) fn added_to_bridge(message: &NeighbourMessage) -> Option<Mac> {
    let is_in_bridge =
        |attribute: &NeighbourAttribute| matches!(attribute, NeighbourAttribute::Controller(_));
    let is_static = matches!(
        message.header.state,
        NeighbourState::Noarp | NeighbourState::Permanent
    );
    let in_bridge = message.attributes.iter().any(is_in_bridge);
    lladdr(message).filter(|_| is_static && in_bridge)
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

fn entry(index: u32, dst: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = if dst.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    message.header.ifindex = index;
    let dst = match dst {
        IpAddr::V4(ip) => NeighbourAddress::Inet(ip),
        IpAddr::V6(ip) => NeighbourAddress::Inet6(ip),
    };
    message
        .attributes
        .push(NeighbourAttribute::Destination(dst));
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
    message.header.state = match () {
        () if *proxy || *managed => NeighbourState::None,
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
        Some(
            NeighbourState::Reachable
            | NeighbourState::Stale
            | NeighbourState::Delay
            | NeighbourState::Probe,
        ) => NeighbourEntry::Known,
        _ => NeighbourEntry::Unknown,
    })
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
    let change = |event| match event {
        RouteNetlinkMessage::NewNeighbour(message) => Some(NeighbourEvent {
            index: message.header.ifindex,
            dst: destination(&message)?,
            lladdr: lladdr(&message),
            reachable: message.header.state == NeighbourState::Reachable,
            failed: message.header.state == NeighbourState::Failed,
        }),
        _ => None,
    };
    let events = events::receive(socket)?;
    Ok(events.into_iter().filter_map(change).collect())
}
