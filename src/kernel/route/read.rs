//! Reading routes: from the kernel's messages to the model.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use netlink_packet_core::Nla;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteCacheInfo, RouteFlags, RouteHeader, RouteLwEnCapType,
    RouteMessage, RouteMetric, RouteNextHop, RouteNextHopFlags, RouteVia,
};

use super::Family;
use crate::kernel::admission;
use crate::kernel::codec::text;
use crate::model::fidelity::ROUTE;
use crate::model::fidelity::form::U32;
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::{Hop, KIND_BLACKHOLE, KIND_UNICAST, Metric, Remaining, RouteOf};
use crate::model::{IfName, Route};

/// Reads one route of a dump.
///
/// `None` for one that is not read ([`admission::is_route`]); an error for a route that the model cannot hold (an
/// encapsulation that refers to another object).
pub(in crate::kernel) fn parse(
    message: &RouteMessage,
    name: impl Fn(u32) -> Option<IfName>,
) -> Result<Option<Route>, String> {
    let family = message.header.address_family;
    if !admission::is_route(family, message.header.flags.bits()) {
        return Ok(None);
    }
    let route = match family {
        AddressFamily::Inet => parse_family(message, &name).map(Route::V4),
        _ => parse_family(message, &name).map(Route::V6),
    };
    route
        .map(Some)
        .map_err(|what| format!("route {}: {what}", describe(message)))
}

/// Destination and table of a route that the model cannot hold.
fn describe(message: &RouteMessage) -> String {
    let destination = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            RouteAttribute::Destination(RouteAddress::Inet(ip)) => Some(ip.to_string()),
            RouteAttribute::Destination(RouteAddress::Inet6(ip)) => Some(ip.to_string()),
            _ => None,
        });
    let RouteHeader {
        destination_prefix_length,
        table,
        ..
    } = message.header;
    match destination {
        Some(ip) => format!("{ip}/{destination_prefix_length} table {table}"),
        None => format!("default table {table}"),
    }
}

fn parse_family<A: Family>(
    message: &RouteMessage,
    name: &impl Fn(u32) -> Option<IfName>,
) -> Result<RouteOf<A, A::Net>, String> {
    let header = &message.header;
    let bad = |what: &str| what.to_owned();
    let dst = A::UNSPECIFIED.net(header.destination_prefix_length);
    let mut route = RouteOf {
        table: header.table.into(),
        protocol: header.protocol.into(),
        scope: header.scope.into(),
        kind: header.kind.into(),
        tos: header.tos,
        ..RouteOf::bare(dst.ok_or_else(|| bad("prefix length"))?)
    };
    let mut single = Hop::bare(header.flags.contains(RouteFlags::Onlink));
    let address =
        |of: &RouteAddress| A::from_route(of).ok_or_else(|| bad("an address of another family"));
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(ip) => {
                route.dst = address(ip)?
                    .net(header.destination_prefix_length)
                    .ok_or_else(|| bad("destination"))?;
            }
            RouteAttribute::Source(ip) => route.src = address(ip)?.net(header.source_prefix_length),
            RouteAttribute::PrefSource(ip) => route.prefsrc = Some(address(ip)?),
            RouteAttribute::Gateway(ip) => single.gateway = Some(address(ip)?),
            RouteAttribute::Oif(index) => single.dev = name(*index),
            RouteAttribute::Priority(priority) => route.priority = Some(*priority),
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Via(via) => single.via = Some(ipv6_gateway(via)?),
            RouteAttribute::Metrics(metrics) => {
                (route.metrics, route.congctl) = parse_metrics(metrics)?;
            }
            RouteAttribute::Preference(preference) => {
                route.preference = Some(u8::from(*preference)).filter(|value| *value != 0);
            }
            RouteAttribute::MultiPath(hops) => {
                route.hops = hops
                    .iter()
                    .map(|hop| parse_hop(hop, name))
                    .collect::<Result<_, _>>()?;
            }
            RouteAttribute::CacheInfo(info) => route.expires = expires(info),
            RouteAttribute::Expires(_) => {}
            RouteAttribute::NhId(id) => route.nexthop = Some(*id),
            other => route.extra.push(uninterpreted(other)?),
        }
    }
    // The kernel reports the type of the object here, and finds the route by its own (`fib_dump_info`).
    if route.nexthop.is_some() && route.kind == KIND_BLACKHOLE {
        route.kind = KIND_UNICAST;
    }
    if route.hops.is_empty() && (single.gateway().is_some() || single.dev.is_some()) {
        route.hops.push(single);
    }
    Ok(route)
}

/// The remaining lifetime, from `rta_expires` in `USER_HZ`; 0 is none.
fn expires(info: &RouteCacheInfo) -> Option<Remaining> {
    const USER_HZ: u32 = 100;
    let ticks = Some(info.expires).filter(|ticks| *ticks != 0 && ticks.cast_signed() > 0);
    ticks.map(|ticks| Remaining(ticks.div_ceil(USER_HZ)))
}

fn parse_hop<A: Family>(
    hop: &RouteNextHop,
    name: &impl Fn(u32) -> Option<IfName>,
) -> Result<Hop<A>, String> {
    let mut parsed = Hop {
        gateway: None,
        dev: name(hop.interface_index),
        onlink: hop.flags.contains(RouteNextHopFlags::Onlink),
        weight: hop.hops,
        via: None,
        extra: Vec::new(),
    };
    for attribute in &hop.attributes {
        match attribute {
            RouteAttribute::Gateway(ip) => {
                parsed.gateway = Some(A::from_route(ip).ok_or("a hop of another family")?);
            }
            RouteAttribute::Via(via) => parsed.via = Some(ipv6_gateway(via)?),
            other => parsed.extra.push(uninterpreted(other)?),
        }
    }
    Ok(parsed)
}

fn ipv6_gateway(via: &RouteVia) -> Result<Ipv6Addr, String> {
    match via {
        RouteVia::Inet6(ip) => Ok(*ip),
        other => Err(format!("gateway {other:?}")),
    }
}

/// An attribute that has the same bytes in a request as in a dump: realms (`RTA_FLOW`), and the encapsulations that refer to no
/// interface and no program.
fn uninterpreted(attribute: &RouteAttribute) -> Result<RawAttribute, String> {
    use RouteLwEnCapType::{Ila, Ioam6, Ip, Ip6, Mpls, Rpl, Seg6};
    let is_portable = match attribute {
        RouteAttribute::EncapType(kind) => {
            matches!(kind, Ila | Ioam6 | Ip | Ip6 | Mpls | Rpl | Seg6)
        }
        other => ROUTE.is_sent_back(other.kind()),
    };
    if is_portable {
        Ok(text::stored(attribute))
    } else {
        Err(format!("attribute {attribute:?}"))
    }
}

type Metrics = (BTreeMap<Metric, u32>, Option<String>);

fn parse_metrics(metrics: &[RouteMetric]) -> Result<Metrics, String> {
    let (mut numbers, mut congctl) = (BTreeMap::new(), None);
    for metric in metrics {
        if let RouteMetric::CcAlgo(name) = metric {
            congctl = Some(name.clone());
        } else {
            let value = (U32.read)(&text::stored(metric).value);
            let known = Metric::of(metric.kind()).zip(value);
            numbers.extend([known.ok_or_else(|| format!("metric {metric:?}"))?]);
        }
    }
    Ok((numbers, congctl))
}
