//! Routes and rules: lost ones are restored, existing ones are not added a second time.

use crate::common::{Node, Pod, ReportedProblem};

fn pod_with<'n>(node: &'n Node, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    for line in lines {
        pod.ip(line);
    }
    pod
}

fn comes_back(lines: &[&str]) {
    let node = Node::new();
    let pod = pod_with(&node, lines);
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn metric_scope_source_and_protocol_come_back() {
    comes_back(&[
        "addr add 10.88.1.200/16 dev eth0",
        "route add 172.16.0.0/12 via 10.88.0.1 metric 50 src 10.88.1.200 proto static",
        "route add 172.16.0.0/12 via 10.88.0.3 metric 60",
        "route add 192.168.50.0/24 dev eth0 scope link src 10.88.1.200",
        "route add 192.168.51.1 dev eth0 scope link proto 200",
        "route add fd50::/64 via fd88::1 metric 50 proto static",
        "route add fd51::/64 dev eth0 metric 60",
    ]);
}

#[test]
fn a_gateway_behind_another_route_comes_back() {
    comes_back(&[
        "route add 203.0.113.1 dev eth0 scope link",
        "route add 198.51.100.0/24 via 203.0.113.1",
    ]);
}

#[test]
fn onlink_routes_come_back() {
    comes_back(&[
        "route add 198.51.100.0/24 via 203.0.113.1 dev eth0 onlink",
        "route add fd51::/64 via fd52::1 dev eth0 onlink",
        "route add fd53::/64 via fe80::1 dev eth0",
    ]);
}

#[test]
fn routes_in_other_tables_come_back() {
    comes_back(&[
        "route add default via 10.88.0.3 table 100",
        "route add 10.88.0.0/16 dev eth0 scope link table 100",
        "route add 172.16.0.0/12 via 10.88.0.1 table 70000",
        "route add default via fd88::3 table 100",
    ]);
}

#[test]
fn mtu_and_other_metrics_of_a_route_come_back() {
    comes_back(&[
        "route add 172.16.0.0/12 via 10.88.0.1 mtu 1400 advmss 1360",
        "route add 172.32.0.0/16 via 10.88.0.1 mtu lock 1300 initcwnd 20",
        "route add fd50::/64 via fd88::1 mtu 1400 hoplimit 33",
    ]);
}

#[test]
fn type_of_service_and_preference_come_back() {
    comes_back(&[
        "route add 172.16.0.0/12 via 10.88.0.1 tos 0x10",
        "route add fd50::/64 via fd88::1 pref high",
    ]);
}

#[test]
fn an_ipv4_route_by_an_ipv6_gateway_comes_back_or_is_reported() {
    comes_back_or_is_reported(
        &["route add 172.16.0.0/12 via inet6 fd88::1 dev eth0"],
        "172.16.0.0/12",
    );
}

#[test]
fn routes_without_a_device_survive_and_are_not_duplicated() {
    comes_back(&[
        "route add blackhole 192.0.2.0/24",
        "route add unreachable 198.51.100.0/24 metric 7",
        "route add prohibit 203.0.113.0/24 table 100",
        "route add blackhole fd66::/64",
        "route add unreachable default metric 4278198272 table 100",
    ]);
}

#[test]
fn rules_survive_and_are_not_duplicated() {
    comes_back(&[
        "rule add from 10.88.1.10 table 100 priority 1000",
        "rule add iif eth0 table 100 priority 1001",
        "rule add oif eth0 table 100 priority 1002",
        "rule add fwmark 0x7/0xff table 100 priority 1003",
        "-6 rule add from fd88::1:10 table 100 priority 1000",
        "-6 rule add iif eth0 table 100 priority 1001",
        "route add default via 10.88.0.3 table 100",
    ]);
}

#[test]
fn a_missing_rule_and_a_missing_blackhole_route_are_restored() {
    let node = Node::new();
    let pod = pod_with(
        &node,
        &[
            "rule add from 10.88.1.10 table 100 priority 1000",
            "route add blackhole 192.0.2.0/24",
        ],
    );
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    pod.ip("rule del priority 1000");
    pod.ip("route del blackhole 192.0.2.0/24");
    node.restore();
    pod.assert_same_as(&before);
}

/// What netfix cannot restore it must report with the code `unsupported` and exit 5 or 1; it must never skip it
/// silently.
fn comes_back_or_is_reported(lines: &[&str], object: &str) {
    let node = Node::new();
    let pod = pod_with(&node, lines);
    let before = pod.capture();
    let snapshot = node.netfix_json("snapshot");
    node.lose_and_reload();
    let restore = node.netfix_json("restore");
    if before.differences(&pod.capture()).is_empty() {
        return;
    }
    let reported = snapshot
        .coded("unsupported")
        .into_iter()
        .chain(restore.coded("unsupported"));
    let is_it = |problem: ReportedProblem| {
        problem.has(object) && problem.pod.as_deref() == Some(pod.name())
    };
    let named = reported.into_iter().any(is_it);
    assert!(
        named && restore.code != Some(0),
        "{object} is lost in silence\n{}\n{}",
        snapshot.transcript(),
        restore.transcript()
    );
}

#[test]
fn a_multipath_route_comes_back_or_is_reported() {
    comes_back_or_is_reported(
        &["route add 172.16.0.0/12 nexthop via 10.88.0.1 weight 1 nexthop via 10.88.0.3 weight 2"],
        "172.16.0.0/12",
    );
}

#[test]
fn a_nexthop_object_comes_back_or_is_reported() {
    comes_back_or_is_reported(
        &[
            "nexthop add id 77 via 10.88.0.1 dev eth0",
            "route add 172.16.0.0/12 nhid 77",
        ],
        "172.16.0.0/12",
    );
}
