//! Everything that the kernel reports about the objects of a namespace, attribute by attribute.
//!
//! The readers of `link/`, `address/` and `route/` decode what netfix knows, and what they do not know they do not see. This one
//! keeps each attribute as bytes. The tables of [`fidelity`](crate::model::fidelity) say which are states or counts of the kernel's
//! own; those are left out. An attribute that no table has is kept.

mod attributes;
mod link;
mod objects;
mod route;

use std::collections::HashMap;

use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourFlags, NeighbourMessage};
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::codec::message::Message;
use crate::kernel::codec::{split, text};
use crate::kernel::dump::Names;
use crate::kernel::route::nexthop;
use crate::kernel::{Errno, Error, Socket};
use crate::model::Mac;
use crate::model::raw_object::RawObject;

/// The MACs of links by their ifindex.
type Macs = HashMap<u32, Mac>;

/// The links, addresses, routes, nexthop objects and neighbours of the socket's namespace, each kind in the order of its dump.
///
/// # Errors
/// Those of [`Socket::dump`].
pub(crate) fn read(socket: &mut Socket) -> Result<Vec<RawObject>, Error> {
    let mut request = LinkMessage::default();
    let mask = LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]);
    request.attributes.push(mask);
    let links = dumped(socket, RouteNetlinkMessage::GetLink(request))?;
    let names: Names = links.iter().filter_map(link::name).collect();
    let macs: Macs = links.iter().filter_map(link::mac).collect();
    let mut all = objects::each(&links, &names, &macs);
    let read = |socket: &mut Socket, request: Message| -> Result<Vec<RawObject>, Error> {
        Ok(objects::each(&dumped(socket, request)?, &names, &macs))
    };
    let addresses = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    all.extend(read(socket, addresses.into())?);
    for family in [AddressFamily::Inet, AddressFamily::Inet6] {
        let mut request = RouteMessage::default();
        request.header.address_family = family;
        all.extend(read(socket, RouteNetlinkMessage::GetRoute(request).into())?);
    }
    match read(socket, nexthop::list().into()) {
        // Before Linux 5.3.
        Err(Error::Kernel(Errno::EOPNOTSUPP)) => {}
        nexthops => {
            let mut nexthops = nexthops?;
            route::add_links_of_members(&mut nexthops);
            all.extend(nexthops);
        }
    }
    for flags in [NeighbourFlags::empty(), NeighbourFlags::Proxy] {
        let mut request = NeighbourMessage::default();
        request.header.flags = flags;
        all.extend(read(
            socket,
            RouteNetlinkMessage::GetNeighbour(request).into(),
        )?);
    }
    Ok(all)
}

/// The messages of a dump, each with its type, and without its header.
fn dumped(socket: &mut Socket, request: impl Into<Message>) -> Result<Vec<(u16, Vec<u8>)>, Error> {
    let bytes = socket.dump_bytes(request)?;
    let parts = split(&bytes);
    parts
        .map(|part| {
            let (header, message) = part?;
            let body = message.get(text::MESSAGE_HEADER..).unwrap_or_default();
            Ok((header.message_type, body.to_vec()))
        })
        .collect()
}

#[cfg(test)]
mod tests;
