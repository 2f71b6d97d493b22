//! Routes: their order in one place, lost hops, lifetimes, and routes that the kernel accepts only by a detour.

use super::{Victim, named, pods_with, prepared, victims};
use crate::common::{Node, Pod, node::OTHER_NIC};

/// The kernel takes a gateway only behind a direct route, here one of the same place; the CNI plugin sbr moves connected routes to
/// another table.
pub fn in_order_with_a_lifetime_in_other_tables_or_of_rare_attributes(node: &Node) -> Vec<Pod<'_>> {
    let rows: [&[&str]; 4] = [
        &[
            "route del default",
            "route add default dev eth0",
            "route prepend default via 10.88.0.1 dev eth0",
            "route append default via 10.88.0.3 dev eth0",
        ],
        &[
            "addr add fd10:NN::5/64 dev eth0",
            "route add fd50::/32 via fd10:NN::1 dev eth0 expires 5000",
            "route add fd51::/32 via fd10:NN::1 dev eth0",
        ],
        &[
            "addr add 10.9.NN.5/24 dev eth0",
            "addr add fd10:NN::5/64 dev eth0",
            "route del 10.9.NN.0/24 dev eth0",
            "route del fd10:NN::/64 dev eth0",
            "rule add from 10.9.NN.5 table 100",
            "-6 rule add from fd10:NN::5 table 100",
            "route add 10.9.NN.0/24 dev eth0 proto kernel scope link src 10.9.NN.5 table 100",
            "route add 10.7.0.0/24 via 10.9.NN.1 dev eth0 table 100",
            "route add fd10:NN::/64 dev eth0 proto kernel metric 256 table 100",
        ],
        &[
            "addr add fd88::9/64 dev eth0",
            "route add 172.16.0.0/12 via 10.88.0.1 realms 4/7",
            "route add 172.17.0.0/16 via 10.88.0.1 congctl lock cubic",
            "route add 172.18.0.0/16 encap ip id 77 dst 10.88.0.9 dev eth0",
            "route add 172.19.0.0/16 nexthop via inet6 fd88::1 dev eth0 nexthop via 10.88.0.1 realms 5",
            "route add 172.20.0.0/16 via inet6 fd88::1 dev eth0",
            "route add 172.21.0.0/16 via 10.88.0.1 proto redirect",
            "route add 172.22.0.0/16 via 10.88.0.1 proto kernel",
        ],
    ];
    pods_with(node, "routes", &rows)
}

pub fn gateways_where_later_rules_lead_elsewhere(node: &Node) -> Vec<Pod<'_>> {
    let rules = [
        "rule add pref 101 from all prohibit",
        "rule add pref 101 from all blackhole",
        "rule del pref 32766",
    ];
    let pods = (1..).zip(rules).map(|(row, rule)| {
        let lines = [
            "addr add fd10:NN::5/64 dev eth0",
            "route add 10.9.0.0/16 via 10.88.0.1 dev eth0",
            "route add 10.8.0.0/16 nexthop via 10.88.0.1 dev eth0 nexthop via 10.88.0.3 dev eth0",
            "route add fd50::/32 via fd10:NN::1 dev eth0",
            rule,
            &format!("-6 {rule}"),
        ];
        named(node, &format!("gateways{row}-"), &lines)
    });
    pods.collect()
}

/// The first of routes in one place is the first again. The last gateway is in a subnet whose connected route was moved to another
/// table.
pub fn first_routes_and_a_gateway(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 3] = [
        (
            &["route append default via 10.88.0.3"],
            &["route del default via 10.88.0.1"],
        ),
        (
            &[
                "route append default via 10.88.0.3",
                "route append default via 10.88.0.4",
            ],
            &["route del default via 10.88.0.3"],
        ),
        (
            &[
                "addr add 10.9.NN.5/24 dev eth0",
                "route add 172.16.0.0/12 via 10.9.NN.1 dev eth0",
                "route del 10.9.NN.0/24 dev eth0",
                "route add 10.9.NN.0/24 dev eth0 proto kernel scope link src 10.9.NN.5 table 100",
            ],
            &["route del 172.16.0.0/12 via 10.9.NN.1"],
        ),
    ];
    victims(node, "first", &rows)
}

pub fn other_attributes(node: &Node) -> Vec<Victim<'_>> {
    let rows = [
        (
            "172.16.0.0/12 via 10.88.0.1",
            "172.16.0.0/12 via 10.88.0.1 mtu 1300",
        ),
        (
            "172.16.0.0/12 via 10.88.0.1 proto static",
            "172.16.0.0/12 via 10.88.0.1",
        ),
        (
            "172.16.0.0/12 via 10.88.0.1 src 10.88.1.NN",
            "172.16.0.0/12 via 10.88.0.1",
        ),
        ("fd50::/64 dev eth0", "fd50::/64 dev eth0 expires 5000"),
        ("fd50::/64 dev eth0 mtu 1400", "fd50::/64 dev eth0"),
    ];
    let rows = (1..).zip(rows).map(|(row, (wanted, other))| {
        let line = format!("route add {wanted}");
        let pod = named(node, &format!("routes{row}-"), &[&line]);
        (pod, vec![format!("route replace {other}")])
    });
    rows.collect()
}

#[test]
fn an_ipv6_route_over_two_links_gets_the_lost_hop_back() {
    let node = Node::new();
    let pod = prepared(&node, &["addr add fd10::5/64 dev eth0"]);
    let second = || {
        for line in OTHER_NIC.lines() {
            node.ns.ip(line.trim_start_matches("ip "));
        }
    };
    second();
    node.ns.ip(&format!(
        "link add link other name new0 index 99 address 02:00:00:88:77:01 netns {} type macvlan mode bridge",
        pod.name()
    ));
    pod.ip("link set new0 name net1");
    pod.ip("link set net1 up");
    pod.ip("addr add fd11::5/64 dev net1");
    pod.ip("route add default nexthop via fd10::1 dev eth0 weight 2 nexthop via fd11::1 dev net1");
    let before = pod.capture();
    node.snapshot();
    node.ns.ip("link del other");
    second();
    node.restore();
    pod.assert_same_as(&before);
}
