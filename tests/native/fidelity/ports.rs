//! Ports of a bridge inside a pod.

use super::{are_repaired, come_back, numbered};
use crate::common::Node;

const BRIDGED: &[&str] = &[
    "addr flush dev eth0",
    "link add br0 type bridge",
    "link set br0 up",
    "link set eth0 master br0",
    "link set eth0 type bridge_slave cost 77 priority 9 hairpin on guard on learning off isolated on",
    "addr add 10.88.1.NN/16 dev br0",
    "route add default via 10.88.0.1",
];

/// In the second pod a port that stays and a lost one are each other's backup.
#[test]
fn a_port_of_a_bridge_is_one_again_with_its_settings_and_as_a_backup() {
    let backups = [
        "tuntap add d0 mode tap",
        "link set d0 up",
        "link set d0 master br0",
        "link set d0 type bridge_slave backup_port eth0",
        "link set eth0 type bridge_slave backup_port d0",
    ];
    come_back(&[BRIDGED, &[BRIDGED, &backups].concat()]);
}

#[test]
fn a_port_that_was_taken_out_or_changed_is_repaired_in_place() {
    are_repaired(&[
        (BRIDGED, &["link set eth0 nomaster"]),
        (
            BRIDGED,
            &["link set eth0 type bridge_slave learning on hairpin off"],
        ),
    ]);
}

#[test]
fn a_port_of_another_bridge_stays_there_and_is_reported() {
    let node = Node::new();
    let pod = numbered(&node, 1, BRIDGED);
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
