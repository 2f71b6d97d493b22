//! Routes: their order in one place, lost hops, lifetimes, and routes that the kernel accepts only by a detour.

use super::{all_are_repaired, are_repaired, come_back, numbered, prepared};
use crate::common::{Node, node::OTHER_NIC};

/// The kernel takes a gateway only behind a direct route, here one of the same place; the CNI plugin sbr moves connected routes to
/// another table.
#[test]
fn routes_in_order_with_a_lifetime_in_other_tables_or_of_rare_attributes_come_back() {
    come_back(&[
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
            "addr add 10.9.0.5/24 dev eth0",
            "addr add fd10::5/64 dev eth0",
            "route del 10.9.0.0/24 dev eth0",
            "route del fd10::/64 dev eth0",
            "rule add from 10.9.0.5 table 100",
            "-6 rule add from fd10::5 table 100",
            "route add 10.9.0.0/24 dev eth0 proto kernel scope link src 10.9.0.5 table 100",
            "route add 10.7.0.0/24 via 10.9.0.1 dev eth0 table 100",
            "route add fd10::/64 dev eth0 proto kernel metric 256 table 100",
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
    ]);
}

#[test]
fn gateways_come_back_although_rules_that_were_added_later_lead_elsewhere() {
    let node = Node::new();
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
        numbered(&node, row, &lines)
    });
    node.assert_all_survive_a_loss(&pods.collect::<Vec<_>>());
}

/// The last gateway is in a subnet whose connected route was moved to another table.
#[test]
fn the_first_of_routes_in_one_place_is_the_first_again_and_a_gateway_comes_back() {
    are_repaired(&[
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
                "addr add 10.9.0.5/24 dev eth0",
                "route add 172.16.0.0/12 via 10.9.0.1 dev eth0",
                "route del 10.9.0.0/24 dev eth0",
                "route add 10.9.0.0/24 dev eth0 proto kernel scope link src 10.9.0.5 table 100",
            ],
            &["route del 172.16.0.0/12 via 10.9.0.1"],
        ),
    ]);
}

#[test]
fn a_route_with_other_attributes_gets_its_own_back() {
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
    let node = Node::new();
    let pods = (1..).zip(rows).map(|(row, (wanted, _))| {
        let line = format!("route add {wanted}");
        numbered(&node, row, &[&line])
    });
    all_are_repaired(&node, &pods.collect::<Vec<_>>(), |row, pod| {
        super::own(pod, &format!("route replace {}", rows[row].1));
    });
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

#[test]
fn a_lifetime_continues_and_does_not_begin_anew() {
    let node = Node::new();
    let pod = prepared(&node, &["route add fd50::/32 dev eth0 expires 5000"]);
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    let routes = pod.ip("-6 route show fd50::/32");
    let left = routes.split("expires ").nth(1).unwrap_or_default();
    let left: u32 = left
        .split("sec")
        .next()
        .unwrap_or_default()
        .parse()
        .expect("seconds");
    assert!((4000..5000).contains(&left), "{routes}");
}
