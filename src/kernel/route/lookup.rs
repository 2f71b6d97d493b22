//! Where the kernel sends a packet (`ip route get`), with the namespace's rules.

use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::{Errno, Error, Socket};

/// What selects the routes of a packet beside its destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selector {
    /// The source address; `None`: the kernel chooses it.
    pub source: Option<IpAddr>,
    /// The link to which the sender is bound.
    pub bound: Option<u32>,
    /// The firewall mark.
    pub mark: Option<u32>,
}

/// The way of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// The link that it leaves through.
    pub index: Option<u32>,
    /// The next hop; `None` where the destination is on-link.
    pub gateway: Option<IpAddr>,
    /// Its source address.
    pub source: Option<IpAddr>,
}

/// Where a packet to `to` leaves the socket's namespace; the kernel's errno if it does not.
pub fn lookup(
    socket: &mut Socket,
    to: IpAddr,
    selector: Selector,
) -> Result<Result<Found, Errno>, Error> {
    match socket.get(RouteNetlinkMessage::GetRoute(question(to, selector))) {
        Ok(RouteNetlinkMessage::NewRoute(message)) => Ok(Ok(read(&message))),
        Ok(_) => Ok(Err(Errno::EIO)),
        Err(Error::Kernel(errno)) => Ok(Err(errno)),
        Err(error) => Err(error),
    }
}

fn question(to: IpAddr, selector: Selector) -> RouteMessage {
    let mut message = RouteMessage::default();
    let (family, bits) = match to {
        IpAddr::V4(_) => (AddressFamily::Inet, 32),
        IpAddr::V6(_) => (AddressFamily::Inet6, 128),
    };
    let header = &mut message.header;
    (header.address_family, header.destination_prefix_length) = (family, bits);
    // IPv4 takes every destination for on-link where a sender is bound to a link and no route leads out of it.
    if selector.bound.is_some() && to.is_ipv4() {
        header.flags |= RouteFlags::FibMatch;
    }
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Destination(to.into()));
    if let Some(source) = selector.source {
        header.source_prefix_length = bits;
        attributes.push(RouteAttribute::Source(source.into()));
    }
    attributes.extend(selector.bound.map(RouteAttribute::Oif));
    attributes.extend(selector.mark.map(RouteAttribute::Mark));
    message
}

fn read(message: &RouteMessage) -> Found {
    let mut found = Found::default();
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => found.index = Some(*index),
            RouteAttribute::Gateway(ip) => found.gateway = address(ip),
            RouteAttribute::Via(RouteVia::Inet6(ip)) => found.gateway = Some((*ip).into()),
            RouteAttribute::PrefSource(ip) => found.source = address(ip),
            _ => {}
        }
    }
    found.source = found.source.filter(|source| !source.is_unspecified());
    found
}

fn address(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some((*ip).into()),
        RouteAddress::Inet6(ip) => Some((*ip).into()),
        _ => None,
    }
}
