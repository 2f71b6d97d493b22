//! What a restore from libcni's cache recreates, and what it leaves unchanged.

use serde_json::json;

use super::{Subject, macvlan, restore, with, words};
use crate::common::Node;
use crate::common::background::Monitor;
use crate::common::cni::static_ipam;
use crate::common::libcni::Network;
use crate::common::traffic::reaches;

#[test]
fn pods_are_restored_from_libcnis_cache_alone() {
    let node = Node::new();
    let many = [
        "10.88.2.10/16",
        "10.88.2.9/16",
        "fd88::2:10/64",
        "fd88::2:9/64",
    ];
    let pods = [
        Subject::plain(&node, "web", &many),
        Subject::plain(&node, "api", &["10.88.2.20/16"]),
    ];
    node.lose_and_reload();
    assert!(
        pods.iter().all(|it| !it.pod.has_eth0()),
        "a pod kept its eth0 over the loss"
    );
    let run = restore(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", "", &["ifindex"]);
    // Once for the run, not for each pod.
    assert_eq!(run.coded("partial-source").len(), 1, "{}", run.transcript());
    for it in &pods {
        it.assert_back(&run);
    }
    for target in ["10.88.0.1:9", "[fd88::1]:9"] {
        assert!(
            reaches(&pods[0].pod, target),
            "no way to {target}\n{}",
            run.transcript()
        );
    }
}

#[test]
fn a_second_restore_and_a_restore_without_loss_change_nothing() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16", "fd88::2:10/64"]);
    // Later additions are not in the cache, so netfix does not compare them.
    it.pod.ip("addr add 10.88.2.77/16 dev eth0");
    it.pod.ip("route add 198.51.100.0/24 via 10.88.0.3");
    it.pod.ip("link set eth0 mtu 1400");
    it.pod.ns.set_sysctl("ipv4/conf/eth0/rp_filter", "2");
    is_left_alone(&node, &it);
    node.lose_and_reload();
    restore(&node).exits(0);
    is_left_alone(&node, &it);
}

fn is_left_alone(node: &Node, it: &Subject<'_>) {
    let (before, host) = (it.pod.capture(), node.capture());
    let (in_pod, on_node) = (Monitor::of(&it.pod.ns, node), Monitor::of(&node.ns, node));
    let trace = node.netfix_traced(&words(node, "restore"));
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    assert!(trace.netlink_queries() > 0, "the trace shows nothing");
    assert!(
        trace.netlink_changes().is_empty(),
        "{:#?}",
        trace.netlink_changes()
    );
    assert_eq!(
        [in_pod.heard(), on_node.heard()],
        ["", ""],
        "something changed"
    );
    before.assert_same(&it.pod.capture(), it.pod.name());
    host.assert_same(&node.capture(), "the node");
}

#[test]
fn a_partial_repair_by_hand_is_completed() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16", "10.88.2.9/16"]);
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let mac = it.before.link("eth0")["address"]
        .as_str()
        .expect("its MAC")
        .to_owned();
    it.pod.macvlan("mode vepa", &format!("address {mac}"));
    it.pod.ip("link set eth0 up");
    it.pod.ip("addr add 10.88.2.10/16 brd + dev eth0");
    let run = restore(&node).exits(0);
    // The plugin's setting is the only one that a link that is up does not get.
    let rest = it.unexplained();
    assert!(
        rest.iter().all(|line| line.contains("arp_notify")),
        "{rest:#?}\n{}",
        run.transcript()
    );
    it.attached[0]
        .check(&node, &it.pod)
        .unwrap_or_else(|e| panic!("CHECK: {e}"));
}

/// Where a runtime has disabled IPv6 and the plugin has enabled it for its interface, it is enabled again.
#[test]
fn interfaces_of_every_mode_with_an_mtu_with_detection_ipv6_and_without_addresses_are_restored() {
    let node = Node::new();
    let modes = ["bridge", "private", "vepa"];
    let network = |at: usize| {
        let plugin = macvlan(&static_ipam(&[&format!("10.88.2.{}/16", 10 + at)]));
        let keys = json!({"mode": modes[at], "mtu": 1400 + at});
        Network::new(&node, "lab", &[with(plugin, &keys)])
    };
    let mut pods: Vec<_> = (0..3)
        .map(|at| Subject::new(&node, modes[at], &[&network(at)]))
        .collect();
    // Duplicate address detection runs as for any new interface.
    let detecting = node.pod_with_dad("detecting");
    let disabled = node.pod("disabled");
    disabled.ns.set_sysctl("ipv6/conf/all/disable_ipv6", "1");
    disabled
        .ns
        .set_sysctl("ipv6/conf/default/disable_ipv6", "1");
    pods.extend([
        Subject::plain_of(&node, detecting, &["10.88.2.20/16", "fd88::2:20/64"]),
        Subject::plain_of(&node, disabled, &["10.88.2.30/16", "fd88::2:30/64"]),
        Subject::new(
            &node,
            "bare",
            &[&Network::new(&node, "lab", &[macvlan(&json!({}))])],
        ),
    ]);
    assert_eq!(pods[4].pod.ns.sysctl("ipv6/conf/eth0/disable_ipv6"), "0");
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    for it in &pods {
        it.assert_back(&run);
    }
}

#[test]
fn an_mtu_above_that_of_the_parent_is_reported_with_the_remedy() {
    let node = Node::new();
    node.ns.ip("link set eth0 mtu 9000");
    let jumbo = with(
        macvlan(&static_ipam(&["10.88.2.10/16"])),
        &json!({"mtu": 9000}),
    );
    let jumbo = Subject::new(&node, "jumbo", &[&Network::new(&node, "lab", &[jumbo])]);
    let usual = Subject::plain(&node, "usual", &["10.88.2.20/16"]);
    node.lose_and_reload();
    restore(&node)
        .exits(5)
        .errors(&[("failed", jumbo.pod.name())])
        .names("failed", jumbo.pod.name(), &["ip link set eth0 mtu 9000"]);
    assert!(!jumbo.pod.has_eth0() && usual.pod.has_eth0());
    node.ns.ip("link set eth0 mtu 9000");
    let run = restore(&node).exits(0);
    jumbo.assert_back(&run);
}

#[test]
fn routes_are_restored_as_the_plugin_created_them() {
    let node = Node::new();
    let ipam = json!({
        "type": "static",
        "addresses": [
            {"address": "10.88.2.10/16", "gateway": "10.88.0.1"}, {"address": "fd88::2:10/64", "gateway": "fd88::1"},
        ],
        "routes": [
            {"dst": "0.0.0.0/0"}, {"dst": "0.0.0.0/0", "gw": "10.88.0.3"}, {"dst": "172.16.0.0/12"},
            {"dst": "::/0"}, {"dst": "::/0", "gw": "fd88::3"}, {"dst": "fd99::/48", "gw": "fd88::4"},
        ],
    });
    let by_gateways = Subject::new(
        &node,
        "via",
        &[&Network::new(&node, "lab", &[macvlan(&ipam)])],
    );
    let direct = json!({
        "type": "static", "addresses": [{"address": "10.88.2.20/16"}], "routes": [{"dst": "198.51.100.0/24"}],
    });
    let direct = Subject::new(
        &node,
        "direct",
        &[&Network::new(&node, "lab", &[macvlan(&direct)])],
    );
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    // The plugin's CHECK fails for such routes in every pod, lost or not.
    for it in [by_gateways, direct] {
        assert!(
            it.unexplained().is_empty(),
            "{:#?}\n{}",
            it.unexplained(),
            run.transcript()
        );
    }
}

#[test]
fn an_early_result_without_a_mac_is_reported_and_the_mac_chosen_once() {
    let node = Node::new();
    let network = Network::new(
        &node,
        "lab",
        &[macvlan(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]))],
    );
    let it = Subject::new(&node, "web", &[&network.version("0.2.0")]);
    node.lose_and_reload();
    let run = restore(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", it.pod.name(), &["MAC"]);
    let is_mac = |line: &String| {
        ["address", "fe80", "route6"]
            .iter()
            .any(|word| line.contains(word))
    };
    let rest: Vec<_> = it
        .unexplained()
        .into_iter()
        .filter(|line| !is_mac(line))
        .collect();
    assert!(rest.is_empty(), "{rest:#?}\n{}", run.transcript());
    let mac = it.pod.capture().link("eth0")["address"].clone();
    node.lose_and_reload();
    restore(&node).exits(0);
    assert_eq!(
        mac,
        it.pod.capture().link("eth0")["address"],
        "another MAC in the second run"
    );
    assert!(reaches(&it.pod, "10.88.0.1:9"));
}
