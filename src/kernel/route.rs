//! Routes: between rtnetlink messages and the model (`ip route`).

use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteNextHop,
    RouteNextHopFlags, RoutePreference,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Errno, Request};
use crate::model::route::{Hop, Metric, RouteOf};
use crate::model::{IfName, Route};

/// An IP family; the type keeps addresses of both families apart.
trait Family: Sized + Copy + Hash {
    type Net: Copy;
    const UNSPECIFIED: Self;
    const FAMILY: AddressFamily;
    fn from_route(address: &RouteAddress) -> Option<Self>;
    fn into_route(self) -> RouteAddress;
    fn net(self, len: u8) -> Option<Self::Net>;
    fn split(net: Self::Net) -> (Self, u8);
}

macro_rules! family {
    ($address:ident, $net:ident, $variant:ident) => {
        impl Family for $address {
            type Net = $net;
            const UNSPECIFIED: Self = $address::UNSPECIFIED;
            const FAMILY: AddressFamily = AddressFamily::$variant;

            fn from_route(address: &RouteAddress) -> Option<Self> {
                match address {
                    RouteAddress::$variant(ip) => Some(*ip),
                    _ => None,
                }
            }

            fn into_route(self) -> RouteAddress {
                RouteAddress::$variant(self)
            }

            fn net(self, len: u8) -> Option<$net> {
                $net::new(self, len).ok()
            }

            fn split(net: $net) -> (Self, u8) {
                (net.addr(), net.prefix_len())
            }
        }
    };
}

family!(Ipv4Addr, Ipv4Net, Inet);
family!(Ipv6Addr, Ipv6Net, Inet6);

/// Reads one route of a dump.
///
/// `None` for cached routes and families other than IP; an error for a route that the model cannot hold (nexthop objects,
/// tunnels, a gateway of the other family).
pub(super) fn parse(
    message: &RouteMessage,
    name: impl Fn(u32) -> Option<IfName>,
) -> Result<Option<Route>, String> {
    if message.header.flags.contains(RouteFlags::Cloned) {
        return Ok(None);
    }
    let route = match message.header.address_family {
        AddressFamily::Inet => parse_family(message, &name).map(Route::V4),
        AddressFamily::Inet6 => parse_family(message, &name).map(Route::V6),
        _ => return Ok(None),
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
    let unspecified = |len: u8| A::UNSPECIFIED.net(len);
    let mut route = RouteOf {
        dst: unspecified(header.destination_prefix_length).ok_or_else(|| bad("prefix length"))?,
        src: None,
        table: header.table.into(),
        protocol: header.protocol.into(),
        scope: header.scope.into(),
        kind: header.kind.into(),
        tos: header.tos,
        priority: None,
        prefsrc: None,
        hops: Vec::new(),
        metrics: BTreeMap::new(),
        preference: None,
    };
    let mut single = Hop {
        gateway: None,
        dev: None,
        onlink: header.flags.contains(RouteFlags::Onlink),
        weight: 0,
    };
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
            RouteAttribute::Metrics(metrics) => route.metrics = parse_metrics(metrics)?,
            RouteAttribute::Preference(preference) => {
                route.preference = Some(u8::from(*preference)).filter(|value| *value != 0);
            }
            RouteAttribute::MultiPath(hops) => {
                route.hops = hops
                    .iter()
                    .map(|hop| parse_hop(hop, name))
                    .collect::<Result<_, _>>()?;
            }
            RouteAttribute::CacheInfo(_) | RouteAttribute::Expires(_) => {}
            RouteAttribute::NhId(id) => return Err(bad(&format!("nexthop object {id}"))),
            other => return Err(bad(&format!("attribute {other:?}"))),
        }
    }
    if route.hops.is_empty() && (single.gateway.is_some() || single.dev.is_some()) {
        route.hops.push(single);
    }
    Ok(route)
}

fn parse_hop<A: Family>(
    hop: &RouteNextHop,
    name: &impl Fn(u32) -> Option<IfName>,
) -> Result<Hop<A>, String> {
    let mut gateway = None;
    for attribute in &hop.attributes {
        match attribute {
            RouteAttribute::Gateway(ip) => {
                gateway = Some(A::from_route(ip).ok_or("a hop of another family")?);
            }
            other => return Err(format!("hop attribute {other:?}")),
        }
    }
    let onlink = hop.flags.contains(RouteNextHopFlags::Onlink);
    Ok(Hop {
        gateway,
        dev: name(hop.interface_index),
        onlink,
        weight: hop.hops,
    })
}

fn parse_metrics(metrics: &[RouteMetric]) -> Result<BTreeMap<Metric, u32>, String> {
    let pair = |metric| pair(metric).ok_or_else(|| format!("metric {metric:?}"));
    metrics.iter().map(pair).collect()
}

/// Both directions between the kernel's metrics and the model's.
macro_rules! metrics {
    ($($kernel:ident = $model:ident),+ $(,)?) => {
        fn pair(metric: &RouteMetric) -> Option<(Metric, u32)> {
            match metric {
                $(RouteMetric::$kernel(value) => Some((Metric::$model, *value)),)+
                _ => None,
            }
        }

        fn metric(key: Metric, value: u32) -> RouteMetric {
            match key {
                $(Metric::$model => RouteMetric::$kernel(value),)+
            }
        }
    };
}

metrics! {
    Lock = Lock,
    Mtu = Mtu,
    Window = Window,
    Rtt = Rtt,
    RttVar = Rttvar,
    SsThresh = Ssthresh,
    Cwnd = Cwnd,
    Advmss = Advmss,
    Reordering = Reordering,
    Hoplimit = Hoplimit,
    InitCwnd = Initcwnd,
    Features = Features,
    RtoMin = RtoMin,
    InitRwnd = Initrwnd,
    QuickAck = Quickack,
    FastopenNoCookie = FastopenNoCookie,
}

/// `ip route add`, which the kernel refuses with `EEXIST` where another route has destination, table and metric; or, with
/// `append`, `ip route append`, which puts it after the others. `index` returns the ifindex of an interface.
pub fn add(
    route: &Route,
    append: bool,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<Request, Errno> {
    let message = match route {
        Route::V4(route) => build(route, index)?,
        Route::V6(route) => build(route, index)?,
    };
    let flags = if append {
        NLM_F_CREATE | NLM_F_APPEND
    } else {
        NLM_F_CREATE | NLM_F_EXCL
    };
    Ok(Request::new(RouteNetlinkMessage::NewRoute(message), flags))
}

fn build<A: Family>(
    route: &RouteOf<A, A::Net>,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteMessage, Errno> {
    let RouteOf {
        dst,
        src,
        table,
        protocol,
        scope,
        kind,
        tos,
        priority,
        prefsrc,
        hops,
        metrics,
        preference,
    } = route;
    let (dst, dst_len) = A::split(*dst);
    let src = src.map(A::split);
    let mut header = RouteHeader {
        address_family: A::FAMILY,
        destination_prefix_length: dst_len,
        source_prefix_length: src.map_or(0, |(_, len)| len),
        tos: *tos,
        table: u8::try_from(*table).unwrap_or_default(),
        protocol: (*protocol).into(),
        scope: (*scope).into(),
        kind: (*kind).into(),
        flags: RouteFlags::empty(),
    };
    let mut attributes = vec![RouteAttribute::Table(*table)];
    if dst_len > 0 {
        attributes.push(RouteAttribute::Destination(dst.into_route()));
    }
    attributes.extend(src.map(|(ip, _)| RouteAttribute::Source(ip.into_route())));
    attributes.extend(priority.map(RouteAttribute::Priority));
    attributes.extend(prefsrc.map(|ip| RouteAttribute::PrefSource(ip.into_route())));
    attributes
        .extend(preference.map(|value| RouteAttribute::Preference(RoutePreference::from(value))));
    if !metrics.is_empty() {
        attributes.push(RouteAttribute::Metrics(
            metrics.iter().map(|(k, v)| metric(*k, *v)).collect(),
        ));
    }
    match hops.as_slice() {
        [] => {}
        [hop] => {
            attributes.extend(
                hop.gateway
                    .map(|ip| RouteAttribute::Gateway(ip.into_route())),
            );
            let dev = hop.dev.as_ref().map(index).transpose()?;
            attributes.extend(dev.map(RouteAttribute::Oif));
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

fn build_hop<A: Family>(
    hop: &Hop<A>,
    index: &impl Fn(&IfName) -> Result<u32, Errno>,
) -> Result<RouteNextHop, Errno> {
    let mut built = RouteNextHop::default();
    built.hops = hop.weight;
    built.interface_index = hop.dev.as_ref().map(index).transpose()?.unwrap_or_default();
    built.flags.set(RouteNextHopFlags::Onlink, hop.onlink);
    built.attributes.extend(
        hop.gateway
            .map(|ip| RouteAttribute::Gateway(ip.into_route())),
    );
    Ok(built)
}
