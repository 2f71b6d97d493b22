//! Adding, changing and deleting routes.

use netlink_packet_core::{
    DefaultNla, NLA_F_NESTED, NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE,
};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RoutePreference, RouteVia,
};

use super::Family;
use crate::kernel::codec::text;
use crate::kernel::{Errno, Request};
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::{Hop, Metric, Position, Remaining, RouteOf};
use crate::model::{IfName, Route};

/// The nested attribute of an encapsulation (linux/rtnetlink.h).
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

fn message(
    route: &Route,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteMessage, Errno> {
    match route {
        Route::V4(route) => build(route, index),
        Route::V6(route) => build(route, index),
    }
}

fn header<A: Family>(route: &RouteOf<A, A::Net>) -> RouteHeader {
    RouteHeader {
        address_family: A::FAMILY,
        destination_prefix_length: A::split(route.dst).1,
        source_prefix_length: route.src.map_or(0, |src| A::split(src).1),
        tos: route.tos,
        table: u8::try_from(route.table).unwrap_or_default(),
        protocol: route.protocol.into(),
        scope: route.scope.into(),
        kind: route.kind.into(),
        flags: RouteFlags::empty(),
    }
}

fn build<A: Family>(
    route: &RouteOf<A, A::Net>,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteMessage, Errno> {
    let RouteOf {
        dst,
        src,
        table,
        protocol: _,
        scope: _,
        kind: _,
        tos: _,
        priority,
        prefsrc,
        hops,
        metrics,
        preference,
        congctl,
        extra,
        nexthop,
        expires,
    } = route;
    let (dst, dst_len) = A::split(*dst);
    let src = src.map(A::split);
    let (mut header, mut attributes) = (header(route), vec![RouteAttribute::Table(*table)]);
    if dst_len > 0 {
        attributes.push(RouteAttribute::Destination(dst.into_route()));
    }
    attributes.extend(src.map(|(ip, _)| RouteAttribute::Source(ip.into_route())));
    attributes.extend(priority.map(RouteAttribute::Priority));
    attributes.extend(prefsrc.map(|ip| RouteAttribute::PrefSource(ip.into_route())));
    attributes
        .extend(preference.map(|value| RouteAttribute::Preference(RoutePreference::from(value))));
    attributes.extend(expires.map(|Remaining(seconds)| RouteAttribute::Expires(seconds)));
    let metrics: Vec<_> = metrics
        .iter()
        .map(|(key, value)| sent_metric(*key, *value))
        .chain(congctl.clone().map(RouteMetric::CcAlgo))
        .collect();
    attributes.extend((!metrics.is_empty()).then_some(RouteAttribute::Metrics(metrics)));
    attributes.extend(sent(extra));
    attributes.extend(nexthop.map(RouteAttribute::NhId));
    match hops.as_slice() {
        // The object has the hops.
        _ if nexthop.is_some() => {}
        [] => {}
        [hop] => {
            attributes.extend(build_single(hop, index)?);
            header.flags.set(RouteFlags::Onlink, hop.onlink);
        }
        several => {
            let hops: Result<_, Errno> = several.iter().map(|hop| build_hop(hop, index)).collect();
            attributes.push(RouteAttribute::MultiPath(hops?));
        }
    }
    let mut message = RouteMessage::default();
    message.header = header;
    message.attributes = attributes;
    Ok(message)
}

fn sent_metric(key: Metric, value: u32) -> RouteMetric {
    RouteMetric::Other(DefaultNla::new(key as u16, value.to_ne_bytes().to_vec()))
}

/// The attributes of a route with one hop.
fn build_single<A: Family>(
    hop: &Hop<A>,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<impl Iterator<Item = RouteAttribute>, Errno> {
    let dev = hop.dev.as_ref().map(index).transpose()?;
    let attributes = gateway(hop).into_iter().chain(sent(&hop.extra));
    Ok(attributes.chain(dev.map(RouteAttribute::Oif)))
}

fn build_hop<A: Family>(
    hop: &Hop<A>,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteNextHop, Errno> {
    let mut built = RouteNextHop::default();
    built.hops = hop.weight;
    built.interface_index = hop.dev.as_ref().map(index).transpose()?.unwrap_or_default();
    built.flags.set(RouteNextHopFlags::Onlink, hop.onlink);
    built.attributes.extend(gateway(hop));
    built.attributes.extend(sent(&hop.extra));
    Ok(built)
}

fn gateway<A: Family>(hop: &Hop<A>) -> Option<RouteAttribute> {
    let own = hop
        .gateway
        .map(|ip| RouteAttribute::Gateway(ip.into_route()));
    own.or_else(|| Some(RouteAttribute::Via(RouteVia::Inet6(hop.via?))))
}

fn sent(extra: &[RawAttribute]) -> impl Iterator<Item = RouteAttribute> {
    extra.iter().map(|raw| {
        let flags = if raw.number == RTA_ENCAP {
            NLA_F_NESTED
        } else {
            0
        };
        RouteAttribute::Other(text::restored(raw, flags))
    })
}
