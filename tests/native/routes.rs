//! Routes and rules: lost ones are restored, existing ones are not added a second time.

use crate::common::{Node, Pod};

fn pod_with<'n>(node: &'n Node, name: &str, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod(name).simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    for line in lines {
        pod.ip(*line);
    }
    pod
}

const BY_ATTRIBUTES: [&str; 12] = [
    "addr add 10.88.1.200/16 dev eth0",
    "route add 172.16.0.0/12 via 10.88.0.1 metric 50 src 10.88.1.200 proto static",
    "route add 172.16.0.0/12 via 10.88.0.3 metric 60",
    "route add 192.168.50.0/24 dev eth0 scope link src 10.88.1.200",
    "route add 192.168.51.1 dev eth0 scope link proto 200",
    "route add fd50::/64 via fd88::1 metric 50 proto static",
    "route add fd51::/64 dev eth0 metric 60",
    "route add 172.32.0.0/16 via 10.88.0.1 mtu 1400 advmss 1360",
    "route add 172.33.0.0/16 via 10.88.0.1 mtu lock 1300 initcwnd 20",
    "route add fd54::/64 via fd88::1 mtu 1400 hoplimit 33",
    "route add 172.34.0.0/16 via 10.88.0.1 tos 0x10",
    "route add fd55::/64 via fd88::1 pref high",
];

/// A gateway behind another route, on a link without a route to it, in other tables, of another family, and several.
const BY_GATEWAYS: [&str; 13] = [
    "route add 203.0.113.1 dev eth0 scope link",
    "route add 198.51.100.0/24 via 203.0.113.1",
    "route add 198.51.101.0/24 via 203.0.114.1 dev eth0 onlink",
    "route add fd51::/64 via fd52::1 dev eth0 onlink",
    "route add fd53::/64 via fe80::1 dev eth0",
    "route add default via 10.88.0.3 table 100",
    "route add 10.88.0.0/16 dev eth0 scope link table 100",
    "route add 172.16.0.0/12 via 10.88.0.1 table 70000",
    "route add default via fd88::3 table 100",
    "route add 172.35.0.0/16 via inet6 fd88::1 dev eth0",
    "route add 172.36.0.0/16 nexthop via 10.88.0.1 weight 1 nexthop via 10.88.0.3 weight 2",
    "nexthop add id 77 via 10.88.0.1 dev eth0",
    "route add 172.37.0.0/16 nhid 77",
];

/// They survive the loss, and are not duplicated.
const WITHOUT_A_DEVICE: [&str; 5] = [
    "route add blackhole 192.0.2.0/24",
    "route add unreachable 198.51.100.0/24 metric 7",
    "route add prohibit 203.0.113.0/24 table 100",
    "route add blackhole fd66::/64",
    "route add unreachable default metric 4278198272 table 100",
];

/// They survive too. The first pod has the address of the first rule.
const RULES: [&str; 7] = [
    "rule add from 10.88.1.10 table 100 priority 1000",
    "rule add iif eth0 table 100 priority 1001",
    "rule add oif eth0 table 100 priority 1002",
    "rule add fwmark 0x7/0xff table 100 priority 1003",
    "-6 rule add from fd88::1:10 table 100 priority 1000",
    "-6 rule add iif eth0 table 100 priority 1001",
    "route add default via 10.88.0.3 table 100",
];

#[test]
fn routes_and_rules_of_every_kind_come_back() {
    let node = Node::new();
    let pods = [
        pod_with(&node, "rules", &RULES),
        pod_with(&node, "attributes", &BY_ATTRIBUTES),
        pod_with(&node, "gateways", &BY_GATEWAYS),
        pod_with(&node, "without", &WITHOUT_A_DEVICE),
    ];
    node.assert_all_survive_a_loss(&pods);
}
