//! The fixture itself: a loss removes everything that it should, and a capture shows every difference that a careless
//! repair leaves, and no other.

use crate::common::cni::static_ipam;
use crate::common::{GATEWAY4, Node};

#[test]
fn losing_the_parent_removes_every_pods_interface_and_the_nodes_addresses() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.lose_and_reload();
    for pod in &pods {
        assert!(!pod.has_eth0(), "{} kept its eth0", pod.name());
    }
    let host = node.ns.ip("addr show dev eth0");
    assert!(
        host.contains("state DOWN") && !host.contains("10.88.0.2"),
        "the reloaded NIC is not bare: {host}"
    );
}

#[test]
fn two_captures_of_an_untouched_pod_are_the_same() {
    let node = Node::new();
    let pod = node
        .pod_with_dad("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    pod.cni_check().expect("a fresh pod passes CHECK");
    pod.capture().assert_same(&pod.capture(), pod.name());
    node.capture().assert_same(&node.capture(), "the node");
}

#[test]
fn the_capture_shows_the_gaps_of_a_naive_restore() {
    let node = Node::new();
    let pod = node
        .pod_with_dad("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    let before = pod.capture();
    let mac = before.link("eth0")["address"]
        .as_str()
        .expect("the pod's MAC")
        .to_owned();
    let index = before.link("eth0")["ifindex"].clone();
    node.lose_and_reload();
    pod.cni_check().expect_err("CHECK of a lost pod fails");
    node.ns.ip("link set eth0 up");
    pod.macvlan("mode bridge", &format!("address {mac} index {index}"));
    pod.ip("link set eth0 up");
    pod.ip("addr add 10.88.2.10/16 dev eth0");
    pod.ip("addr add fd88::2:10/64 dev eth0");
    pod.ip(&format!("route add default via {GATEWAY4} dev eth0"));
    pod.ip("route add default via fd88::1 dev eth0");
    let lines = before.differences(&pod.capture());
    for forgotten in [
        "txqlen",
        "ipv4/conf/eth0/arp_notify",
        "ipv6/conf/eth0/ndisc_notify",
    ] {
        assert!(
            lines.iter().any(|line| line.contains(forgotten)),
            "{forgotten} was not seen:\n{}",
            lines.join("\n")
        );
    }
}

#[test]
fn a_complete_repair_by_hand_equals_the_former_state() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let (before, host) = (pod.capture(), node.capture());
    let index = before.link("eth0")["ifindex"].clone();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    node.ns.ip("addr add fd88::2/64 dev eth0");
    node.ns.ip(&format!("route add default via {GATEWAY4}"));
    node.ns.ip("route add default via fd88::1");
    pod.macvlan("mode bridge", &format!("index {index}"));
    pod.up_with_address();
    pod.assert_same_as(&before);
    node.assert_same_as(&host);
}
