//! Adding, changing and deleting routes.

use netlink_packet_core::{
    DefaultNla, NLA_F_NESTED, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags,
};

use crate::kernel::codec::text;
use crate::kernel::{Errno, Request};
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::{Hop, Metric, Position, Remaining};
use crate::model::{IfName, Route};

/// The destination, which a default route has not, and the nested attribute of an encapsulation (linux/rtnetlink.h).
const RTA_DST: u16 = 1;
const RTA_ENCAP: u16 = 22;

/// `ip route add`, which the kernel refuses with `EEXIST` where another route has destination, table and metric; `ip route
/// prepend` or `append`. `index` returns the ifindex of an interface.
pub fn add(
    route: &Route,
    position: Position,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    let flags = match position {
        Position::Only => NLM_F_EXCL,
        Position::First => 0,
        Position::Last => NLM_F_APPEND,
    };
    let message = RouteNetlinkMessage::NewRoute(message(route, index)?);
    Ok(Request::new(message, NLM_F_CREATE | flags))
}

/// `ip route change`: a version of the route is in its place.
pub fn change(
    route: &Route,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    let message = RouteNetlinkMessage::NewRoute(message(route, index)?);
    // IPv6 appends the other hops to the first one, which needs NLM_F_CREATE.
    Ok(Request::new(message, NLM_F_CREATE | NLM_F_REPLACE))
}

/// `ip route del`: only of a route that is added again at once, or that this run has brought about.
pub fn del(
    route: &Route,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    let message = RouteNetlinkMessage::DelRoute(message(route, index)?);
    Ok(Request::new(message, 0))
}

fn header(route: &Route) -> RouteHeader {
    RouteHeader {
        address_family: route.dst.addr().into(),
        destination_prefix_length: route.dst.prefix_len(),
        source_prefix_length: route.src.map_or(0, |src| src.prefix_len()),
        tos: route.tos,
        table: u8::try_from(route.table).unwrap_or_default(),
        protocol: route.protocol.into(),
        scope: route.scope.into(),
        kind: route.kind.into(),
        flags: RouteFlags::empty(),
    }
}

fn message(
    route: &Route,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteMessage, Errno> {
    let mut header = header(route);
    let own = route.attributes();
    let own = own.filter(|raw| raw.number != RTA_DST || route.dst.prefix_len() != 0);
    let mut attributes = vec![RouteAttribute::Table(route.table)];
    attributes.extend(sent(own));
    let expires = route.expires;
    attributes.extend(expires.map(|Remaining(seconds)| RouteAttribute::Expires(seconds)));
    let metrics = route.metrics.iter();
    let metrics: Vec<_> = metrics
        .map(|(key, value)| sent_metric(*key, *value))
        .chain(route.congctl.clone().map(RouteMetric::CcAlgo))
        .collect();
    attributes.extend((!metrics.is_empty()).then_some(RouteAttribute::Metrics(metrics)));
    attributes.extend(sent(route.extra.iter().cloned()));
    attributes.extend(route.nexthop.map(RouteAttribute::NhId));
    match route.hops.as_slice() {
        // The object has the hops.
        _ if route.nexthop.is_some() => {}
        [] => {}
        [hop] => {
            let dev = hop.dev.as_ref().map(index).transpose()?;
            attributes.extend(of_hop(hop).chain(dev.map(RouteAttribute::Oif)));
            header.flags.set(RouteFlags::Onlink, hop.onlink);
        }
        several => {
            let hops: Result<_, Errno> = several.iter().map(|hop| build_hop(hop, index)).collect();
            attributes.push(RouteAttribute::MultiPath(hops?));
        }
    }
    let mut message = RouteMessage::default();
    (message.header, message.attributes) = (header, attributes);
    Ok(message)
}

fn sent_metric(key: Metric, value: u32) -> RouteMetric {
    RouteMetric::Other(DefaultNla::new(key as u16, value.to_ne_bytes().to_vec()))
}

fn build_hop(
    hop: &Hop,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteNextHop, Errno> {
    let mut built = RouteNextHop::default();
    built.hops = hop.weight;
    built.interface_index = hop.dev.as_ref().map(index).transpose()?.unwrap_or_default();
    built.flags.set(RouteNextHopFlags::Onlink, hop.onlink);
    built.attributes.extend(of_hop(hop));
    Ok(built)
}

fn of_hop(hop: &Hop) -> impl Iterator<Item = RouteAttribute> {
    sent(hop.attributes().chain(hop.extra.iter().cloned()))
}

fn sent(attributes: impl Iterator<Item = RawAttribute>) -> impl Iterator<Item = RouteAttribute> {
    attributes.map(|raw| {
        let flags = if raw.number == RTA_ENCAP {
            NLA_F_NESTED
        } else {
            0
        };
        RouteAttribute::Other(text::restored(&raw, flags))
    })
}
