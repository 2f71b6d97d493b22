//! Where the kernel sends a packet (`ip route get`), with the namespace's rules.

use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteType, RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::kernel::{Errno, Error, Socket};
use crate::model::net::way::{Packet, PacketWay, WayExit};
use crate::model::{IfName, Link};

/// What selects the routes of a packet beside its destination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selector {
    /// The source address; `None`: the kernel chooses it.
    pub source: Option<IpAddr>,
    /// The link to which the sender is bound.
    pub bound: Option<u32>,
    /// The firewall mark.
    pub mark: Option<u32>,
    /// For a forwarded packet: the link that it comes in through.
    pub received: Option<u32>,
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
    /// Whether the namespace itself gets it.
    pub is_local: bool,
    /// The routing table that has its route.
    pub table: Option<u32>,
}

/// Where these packets leave the socket's namespace, which has these links. Those that name a link that is not there are left out.
pub fn ways(
    socket: &mut Socket,
    links: &[Link],
    mut packets: Vec<Packet>,
) -> Result<Vec<PacketWay>, Error> {
    let index = |name: &IfName| Some(links.iter().find(|link| link.name == *name)?.index);
    let name = |index: u32| Some(links.iter().find(|link| link.index == index)?.name.clone());
    packets.retain(|packet| {
        let mut named = packet.bound.iter().chain(&packet.received);
        named.all(|dev| index(dev).is_some())
    });
    let question = |packet: &Packet| {
        let selector = Selector {
            source: packet.from,
            mark: packet.mark,
            bound: packet.bound.as_ref().and_then(index),
            received: packet.received.as_ref().and_then(index),
        };
        question(packet.to, selector)
    };
    let found = look_up(socket, packets.iter().map(question).collect())?;
    let mut ways = Vec::with_capacity(packets.len());
    for (packet, found) in packets.into_iter().zip(found) {
        let exit = match found {
            Err(errno) if is_refusal(errno) => Some(WayExit::Refused {
                refused: format!("{errno:?}"),
            }),
            // A link of a pod that has just ended.
            Err(Errno::ENODEV) => None,
            // It shows nothing about routes.
            Err(errno) => return Err(Error::Kernel(errno)),
            Ok(found) => found.index.and_then(name).map(|dev| match found {
                Found { is_local: true, .. } => WayExit::Local { local: dev },
                Found {
                    gateway: via,
                    table,
                    ..
                } => WayExit::Link { dev, via, table },
            }),
        };
        ways.extend(exit.map(|exit| PacketWay { packet, exit }));
    }
    Ok(ways)
}

/// Where a packet to `to` leaves the socket's namespace; the kernel's errno if it does not.
pub fn lookup(
    socket: &mut Socket,
    to: IpAddr,
    selector: Selector,
) -> Result<Result<Found, Errno>, Error> {
    let found = look_up(socket, vec![question(to, selector)])?.pop();
    Ok(found.unwrap_or(Err(Errno::EIO)))
}

/// The kernel's answers, in the order of the questions.
fn look_up(
    socket: &mut Socket,
    questions: Vec<RouteNetlinkMessage>,
) -> Result<Vec<Result<Found, Errno>>, Error> {
    let found = socket.get_all(questions)?.into_iter();
    let found = found.map(|answer| match answer? {
        RouteNetlinkMessage::NewRoute(message) => Ok(read(&message)),
        _ => Err(Errno::EIO),
    });
    Ok(found.collect())
}

/// Whether it is the answer of a route or rule, or of the lack of one; `EXDEV` is that of `rp_filter`.
pub fn is_refusal(errno: Errno) -> bool {
    use Errno::{EACCES, EHOSTUNREACH, EINVAL, ENETUNREACH, EXDEV};
    matches!(errno, ENETUNREACH | EHOSTUNREACH | EACCES | EINVAL | EXDEV)
}

/// `IPPROTO_TCP`: rules can be for one protocol.
const TCP: u8 = 6;

fn question(to: IpAddr, selector: Selector) -> RouteNetlinkMessage {
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
    header.flags |= RouteFlags::LookupTable;
    let attributes = &mut message.attributes;
    attributes.push(RouteAttribute::Destination(to.into()));
    if let Some(source) = selector.source {
        header.source_prefix_length = bits;
        attributes.push(RouteAttribute::Source(source.into()));
    }
    // Without it IPv4 takes it for UDP.
    attributes.push(RouteAttribute::IpProto(TCP));
    attributes.extend(selector.bound.map(RouteAttribute::Oif));
    attributes.extend(selector.received.map(RouteAttribute::Iif));
    attributes.extend(selector.mark.map(RouteAttribute::Mark));
    RouteNetlinkMessage::GetRoute(message)
}

fn read(message: &RouteMessage) -> Found {
    let mut found = Found {
        is_local: message.header.kind == RouteType::Local,
        ..Found::default()
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => found.index = Some(*index),
            RouteAttribute::Table(table) => found.table = Some(*table),
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
