//! netfix reports every object that it cannot restore, by pod and object.

use crate::common::{Node, Pod};

/// A pod with a VXLAN on the node's parent: it is lost with the parent, and is not a macvlan.
fn pod_with_vxlan<'n>(node: &'n Node, name: &str) -> Pod<'n> {
    let pod = node.pod(name);
    node.ns
        .ip("link add vx7 type vxlan id 7 dstport 4789 remote 10.88.0.1 dev eth0");
    node.ns.ip(&format!("link set vx7 netns {}", pod.name()));
    pod.ip("link set vx7 up");
    pod.ip("addr add 172.20.0.5/24 dev vx7");
    pod
}

#[test]
fn an_unsupported_kind_is_reported_and_the_other_pods_are_restored() {
    let node = Node::new();
    let strange = pod_with_vxlan(&node, "strange");
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.netfix("snapshot");
    node.lose_and_reload();
    assert!(!strange.ns.has_link("vx7"), "the VXLAN outlived its parent");
    node.netfix("restore")
        .exits(5)
        .errors(&[("unsupported", strange.name())])
        .names("unsupported", strange.name(), &["vx7", "vxlan"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let run = node
        .netfix_json("restore")
        .exits(5)
        .errors(&[("unsupported", strange.name())]);
    assert_ne!(
        run.pod(&strange)["state"],
        run.pod(&pods[0])["state"],
        "{}",
        run.transcript()
    );
}

#[test]
fn an_unsupported_kind_that_was_not_lost_is_not_an_error() {
    let node = Node::new();
    let _strange = pod_with_vxlan(&node, "strange");
    let pods = node.simple_pods(1);
    let before = pods[0].capture();
    node.netfix("snapshot");
    pods[0].ip("link del eth0");
    node.restore();
    pods[0].assert_same_as(&before);
}
