//! Ports of a bridge inside a pod.

use super::{comes_back, is_repaired, prepared};
use crate::common::Node;

const BRIDGED: &[&str] = &[
    "addr flush dev eth0",
    "link add br0 type bridge",
    "link set br0 up",
    "link set eth0 master br0",
    "link set eth0 type bridge_slave cost 77 priority 9 hairpin on guard on learning off isolated on",
    "addr add 10.88.1.10/16 dev br0",
    "route add default via 10.88.0.1",
];

#[test]
fn a_port_of_a_bridge_is_one_again_with_its_settings() {
    comes_back(BRIDGED);
}

#[test]
fn a_port_that_was_taken_out_or_changed_is_repaired_in_place() {
    is_repaired(BRIDGED, &["link set eth0 nomaster"]);
    is_repaired(
        BRIDGED,
        &["link set eth0 type bridge_slave learning on hairpin off"],
    );
}

#[test]
fn a_port_that_stays_and_a_lost_one_have_each_other_as_backup_again() {
    let backups = [
        "tuntap add d0 mode tap",
        "link set d0 up",
        "link set d0 master br0",
        "link set d0 type bridge_slave backup_port eth0",
        "link set eth0 type bridge_slave backup_port d0",
    ];
    comes_back(&[BRIDGED, &backups].concat());
}

#[test]
fn a_port_of_another_bridge_stays_there_and_is_reported() {
    let node = Node::new();
    let pod = prepared(&node, BRIDGED);
    node.snapshot();
    pod.ip("link add br1 type bridge");
    pod.ip("link set eth0 nomaster");
    pod.ip("link set eth0 master br1");
    node.netfix("restore")
        .exits(1)
        .names("link-conflict", pod.name(), &["br0", "br1"]);
    let link = pod.ip("link show dev eth0");
    assert!(link.contains("master br1"), "{link}");
}
