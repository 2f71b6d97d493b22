//! The routes that CNI plugins add for the routes of a result.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use crate::model::net::limits;
use crate::model::net::route::{Hop, Metric, SCOPE_UNIVERSE, TABLE_MAIN};
use crate::model::pod::cni_result::CniRoute;
use crate::model::{IfName, Route};

/// The metric of an IPv6 route for which none is given (`IP6_RT_PRIO_USER`).
const METRIC_V6: u32 = 1024;

/// The kernel's routes after all are added, and the text of those that it would refuse.
///
/// Of two IPv4 routes with the same destination, table and metric, the later one comes first; two such IPv6 routes become one
/// with several hops.
pub(crate) fn routes(dev: &IfName, wanted: &[CniRoute]) -> (Vec<Route>, Vec<String>) {
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
        let same_place = routes
            .iter()
            .position(|other| other.shares_place_with(&route));
        match (same_place.map(|at| (at, &mut routes[at])), route) {
            (Some((_, first)), more) if more.is_ipv6() => {
                if first.hops.len() < limits::hops(size_of::<Ipv6Addr>()) {
                    first.hops.extend(more.hops);
                } else {
                    let text = format!(
                        "route {}: more next hops than the kernel can have",
                        more.dst
                    );
                    impossible.retain(|known| *known != text);
                    impossible.push(text);
                }
            }
            (Some((at, _)), route) => routes.insert(at, route),
            (None, route) => routes.push(route),
        }
    }
    (routes, impossible)
}

/// Whether destination, hops and table are equal.
pub(crate) fn goes_the_same_way(a: &Route, b: &Route) -> bool {
    (a.dst, &a.hops, a.table) == (b.dst, &b.hops, b.table)
}

fn route(dev: &IfName, entry: &CniRoute) -> Option<Route> {
    let CniRoute {
        dst,
        gw,
        mtu,
        advmss,
        priority,
        table,
        scope,
    } = entry;
    let is_ipv6 = dst.addr().is_ipv6();
    if gw.is_some_and(|gw| gw.is_ipv6() != is_ipv6) {
        return None;
    }
    let given = |value: &Option<u32>| value.filter(|value| *value != 0);
    let metrics = [(Metric::Mtu, given(mtu)), (Metric::Advmss, given(advmss))];
    // IPv6 routes have no scope and always a metric.
    let (scope, metric) = if is_ipv6 {
        (None, Some(METRIC_V6))
    } else {
        (*scope, None)
    };
    Some(Route {
        table: given(table).unwrap_or(TABLE_MAIN),
        scope: scope.unwrap_or(SCOPE_UNIVERSE),
        priority: given(priority).or(metric),
        hops: vec![Hop {
            gateway: *gw,
            ..Hop::direct(dev.clone())
        }],
        metrics: metrics
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect::<BTreeMap<_, _>>(),
        ..Route::bare(dst.trunc())
    })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use crate::plan::cni::routes::*;

    fn one(entry: serde_json::Value) -> Route {
        let entry: CniRoute = serde_json::from_value(entry).unwrap();
        let (mut routes, impossible) = routes(&"eth0".parse().unwrap(), &[entry]);
        assert!(impossible.is_empty() && routes.len() == 1, "{impossible:?}");
        routes.remove(0)
    }

    #[test]
    fn a_route_has_no_more_next_hops_than_fit_into_a_message() {
        let to = |at: u32| {
            let gw = IpAddr::V6(Ipv6Addr::from(u128::from(at) + (0xfd00 << 112)));
            CniRoute::via("::/0".parse().unwrap(), Some(gw))
        };
        let wanted: Vec<CniRoute> = (1..=3000).map(to).collect();
        let (routes, impossible) = routes(&"eth0".parse().unwrap(), &wanted);
        let [route] = &*routes else {
            panic!("not one route")
        };
        assert_eq!(
            (route.hops.len(), impossible.len()),
            (2340, 1),
            "{impossible:?}"
        );
    }

    #[test]
    fn every_attribute_of_a_result_is_in_the_route() {
        let all = serde_json::json!({
            "dst": "172.16.1.2/12", "gw": "10.0.0.1", "mtu": 1400, "advmss": 1360, "priority": 50, "table": 200,
            "scope": 253,
        });
        let route = one(all);
        assert_eq!(
            (route.dst, route.table, route.priority, route.scope),
            ("172.16.0.0/12".parse().unwrap(), 200, Some(50), 253)
        );
        assert_eq!(
            route.metrics,
            [(Metric::Mtu, 1400), (Metric::Advmss, 1360)].into()
        );
    }

    #[test]
    fn an_absent_attribute_is_the_kernels_default() {
        let v4 = one(serde_json::json!({"dst": "198.51.100.0/24"}));
        assert_eq!(
            (v4.table, v4.priority, v4.scope, v4.hops[0].gateway),
            (TABLE_MAIN, None, SCOPE_UNIVERSE, None)
        );
        let v6 = one(serde_json::json!({"dst": "::/0", "gw": "fd00::1", "scope": 253}));
        assert_eq!(
            (v6.table, v6.priority, v6.scope),
            (TABLE_MAIN, Some(METRIC_V6), SCOPE_UNIVERSE)
        );
        assert!(v4.metrics.is_empty() && v6.metrics.is_empty());
    }
}
