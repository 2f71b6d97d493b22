//! Reading routes: from the kernel's messages to the model.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::Nla;
use netlink_packet_route::AddressFamily;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteCacheInfo, RouteFlags, RouteHeader, RouteLwEnCapType,
    RouteMessage, RouteMetric, RouteNextHop, RouteNextHopFlags,
};

use crate::kernel::admission;
use crate::kernel::codec::text;
use crate::model::fidelity::ROUTE;
use crate::model::fidelity::form::U32;
use crate::model::net::raw::RawAttribute;
use crate::model::net::route::{Hop, KIND_BLACKHOLE, KIND_UNICAST, Metric, Remaining};
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
    read(message, &name)
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

/// All addresses are of the family of the message, for so netlink-packet-route reads them.
fn read(message: &RouteMessage, name: &impl Fn(u32) -> Option<IfName>) -> Result<Route, String> {
    let header = &message.header;
    let any: IpAddr = match header.address_family {
        AddressFamily::Inet => Ipv4Addr::UNSPECIFIED.into(),
        _ => Ipv6Addr::UNSPECIFIED.into(),
    };
    let mut route = Route {
        table: header.table.into(),
        protocol: header.protocol.into(),
        scope: header.scope.into(),
        kind: header.kind.into(),
        tos: header.tos,
        ..Route::bare(any)
    };
    let mut single = Hop {
        onlink: header.flags.contains(RouteFlags::Onlink),
        ..Hop::default()
    };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Oif(index) => single.dev = name(*index),
            RouteAttribute::Metrics(metrics) => {
                (route.metrics, route.congctl) = parse_metrics(metrics)?;
            }
            RouteAttribute::MultiPath(hops) => {
                let hops = hops.iter().map(|hop| parse_hop(hop, name));
                route.hops = hops.collect::<Result<_, _>>()?;
            }
            RouteAttribute::CacheInfo(info) => route.expires = expires(info),
            RouteAttribute::Expires(_) => {}
            RouteAttribute::NhId(id) => route.nexthop = Some(*id),
            other => {
                let raw = text::stored(other);
                let read = route.read(raw.number, &raw.value);
                let read = read.or_else(|| single.read(raw.number, &raw.value));
                keep(other, raw, read, &mut route.extra)?;
            }
        }
    }
    let prefix = |net: IpNet, length| IpNet::new(net.addr(), length).ok();
    route.dst = prefix(route.dst, header.destination_prefix_length).ok_or("prefix length")?;
    let source = route.src;
    route.src = source.and_then(|source| prefix(source, header.source_prefix_length));
    // The kernel does not report the default.
    route.preference = route.preference.filter(|value| *value != 0);
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

fn parse_hop(hop: &RouteNextHop, name: &impl Fn(u32) -> Option<IfName>) -> Result<Hop, String> {
    let mut parsed = Hop {
        dev: name(hop.interface_index),
        onlink: hop.flags.contains(RouteNextHopFlags::Onlink),
        weight: hop.hops,
        ..Hop::default()
    };
    for attribute in &hop.attributes {
        let raw = text::stored(attribute);
        let read = parsed.read(raw.number, &raw.value);
        keep(attribute, raw, read, &mut parsed.extra)?;
    }
    Ok(parsed)
}

/// Keeps an attribute that no field has been `read` from, if it has the same bytes in a request as in a dump: realms (`RTA_FLOW`),
/// and the encapsulations that refer to no interface and no program.
fn keep(
    attribute: &RouteAttribute,
    raw: RawAttribute,
    read: Option<bool>,
    extra: &mut Vec<RawAttribute>,
) -> Result<(), String> {
    use RouteLwEnCapType::{Ila, Ioam6, Ip, Ip6, Mpls, Rpl, Seg6};
    let is_portable = match attribute {
        RouteAttribute::EncapType(kind) => {
            matches!(kind, Ila | Ioam6 | Ip | Ip6 | Mpls | Rpl | Seg6)
        }
        _ => ROUTE.is_sent_back(raw.number),
    };
    match read {
        Some(true) => {}
        None if is_portable => extra.push(raw),
        _ => return Err(format!("attribute {attribute:?}")),
    }
    Ok(())
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
