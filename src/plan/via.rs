//! Routes as CNI plugins add them: one after the other, by what a result says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::checkpoint::CniRoute;
use crate::model::route::{Hop, KIND_UNICAST, Metric, RouteOf, SCOPE_UNIVERSE, TABLE_MAIN};
use crate::model::{IfName, Route};

/// `RTPROT_BOOT`: what programs that do not care say.
const PROTOCOL_BOOT: u8 = 3;
/// The metric of an IPv6 route for which none is given (`IP6_RT_PRIO_USER`).
const METRIC_V6: u32 = 1024;

/// What the kernel has once all of them are added, and in words those that it would refuse.
///
/// Of two IPv4 routes in one place the later one comes first; two IPv6 routes become one with several hops.
pub(super) fn routes(dev: &IfName, wanted: &[CniRoute]) -> (Vec<Route>, Vec<String>) {
    let (mut routes, mut impossible) = (Vec::<Route>::new(), Vec::new());
    for entry in wanted {
        let Some(route) = route(dev, entry) else {
            impossible.push(format!(
                "route {} via {}",
                entry.dst,
                entry.gw.map(|gw| gw.to_string()).unwrap_or_default()
            ));
            continue;
        };
        let same_place = routes.iter().position(|other| other.shares_place_with(&route));
        match (same_place, route) {
            (Some(at), Route::V6(more)) if let Route::V6(first) = &mut routes[at] => {
                first.hops.extend(more.hops);
            }
            (Some(at), route) => routes.insert(at, route),
            (None, route) => routes.push(route),
        }
    }
    (routes, impossible)
}

/// Same destination, same hops, same table, whoever made it.
pub(super) fn goes_the_same_way(a: &Route, b: &Route) -> bool {
    match (a, b) {
        (Route::V4(a), Route::V4(b)) => (a.dst, &a.hops, a.table) == (b.dst, &b.hops, b.table),
        (Route::V6(a), Route::V6(b)) => (a.dst, &a.hops, a.table) == (b.dst, &b.hops, b.table),
        _ => false,
    }
}

fn route(dev: &IfName, entry: &CniRoute) -> Option<Route> {
    Some(match (entry.dst, entry.gw) {
        (IpNet::V4(dst), None) => Route::V4(plain(dev, dst.trunc(), None, entry)),
        (IpNet::V4(dst), Some(IpAddr::V4(gw))) => Route::V4(plain(dev, dst.trunc(), Some(gw), entry)),
        (IpNet::V6(dst), gw @ (None | Some(IpAddr::V6(_)))) => {
            let gw = if let Some(IpAddr::V6(gw)) = gw { Some(gw) } else { None };
            let mut route = plain(dev, dst.trunc(), gw, entry);
            // IPv6 routes have no scope and always a metric.
            route.scope = SCOPE_UNIVERSE;
            route.priority = route.priority.or(Some(METRIC_V6));
            Route::V6(route)
        }
        _ => return None,
    })
}

fn plain<A, N>(dev: &IfName, dst: N, gateway: Option<A>, entry: &CniRoute) -> RouteOf<A, N> {
    let CniRoute { dst: _, gw: _, mtu, advmss, priority, table, scope } = entry;
    let given = |value: &Option<u32>| value.filter(|value| *value != 0);
    let metrics = [(Metric::Mtu, given(mtu)), (Metric::Advmss, given(advmss))];
    RouteOf {
        dst,
        src: None,
        table: given(table).unwrap_or(TABLE_MAIN),
        protocol: PROTOCOL_BOOT,
        scope: scope.unwrap_or(SCOPE_UNIVERSE),
        kind: KIND_UNICAST,
        tos: 0,
        priority: given(priority),
        prefsrc: None,
        hops: vec![Hop { gateway, dev: Some(dev.clone()), onlink: false, weight: 0 }],
        metrics: metrics
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect::<BTreeMap<_, _>>(),
        preference: None,
    }
}
