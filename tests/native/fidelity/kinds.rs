//! Kinds of links in pods. ipvlan, VLANs, devices and ports of VRFs are tried in virtual machines.

use crate::common::{Node, Pod};

/// A pod with a macvtap `eth0`.
fn with_macvtap<'n>(node: &'n Node, options: &str) -> Pod<'n> {
    let pod = node.pod("web");
    let (name, mac) = (pod.name().to_owned(), pod.mac());
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {name} address {mac} type macvtap {options}"
    ));
    pod.ip("link set new0 name eth0");
    pod.up_with_address();
    pod
}

#[test]
fn macvtaps_come_back_are_repaired_in_place_and_are_not_left_down_without_their_mac() {
    let node = Node::new();
    let modes = ["mode bridge", "mode private", "mode vepa bcqueuelen 2000"];
    let pods = modes.map(|options| with_macvtap(&node, options));
    node.snapshot();
    node.lose_and_reload();
    // A new one has the default qdisc of its namespace.
    node.netfix("diff").exits(3).errors(&[]);
    node.restore();
    node.assert_all_survive_a_loss(&pods);
    assert_another_mode_is_repaired(&node, &pods[0]);
    assert_a_theft_is_reported(&node, &pods[0]);
}

fn assert_another_mode_is_repaired(node: &Node, pod: &Pod<'_>) {
    let before = pod.capture();
    node.snapshot();
    pod.ip("link set eth0 type macvtap mode private");
    node.netfix("diff").exits(3);
    node.restore();
    pod.assert_same_as(&before);
}

/// Another pod takes the MAC.
fn assert_a_theft_is_reported(node: &Node, pod: &Pod<'_>) {
    node.snapshot();
    node.lose_and_reload();
    let thief = node.pod("thief");
    thief.macvlan("mode bridge", &format!("address {}", pod.mac()));
    thief.ip("link set eth0 up");
    node.netfix(&format!("restore --pod {}", pod.name()))
        .exits(1)
        .names("mac-conflict", pod.name(), &["eth0"]);
    let links = pod.ip("-br link");
    assert!(!links.contains("eth0"), "{links}");
}
