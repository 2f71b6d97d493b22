//! Ports of a bridge inside a pod.

use super::{Victim, pods_with, victims};
use crate::common::{Node, Pod};

pub const BRIDGED: &[&str] = &[
    "addr flush dev eth0",
    "link add br0 type bridge",
    "link set br0 up",
    "link set eth0 master br0",
    "link set eth0 type bridge_slave cost 77 priority 9 hairpin on guard on learning off isolated on",
    "addr add 10.88.1.NN/16 dev br0",
    "route add default via 10.88.0.1",
];

/// In the second pod a port that stays and a lost one are each other's backup.
pub fn ports_and_backups(node: &Node) -> Vec<Pod<'_>> {
    let backups = [
        "tuntap add d0 mode tap",
        "link set d0 up",
        "link set d0 master br0",
        "link set d0 type bridge_slave backup_port eth0",
        "link set eth0 type bridge_slave backup_port d0",
    ];
    let rows: [&[&str]; 2] = [BRIDGED, &[BRIDGED, &backups].concat()];
    pods_with(node, "ports", &rows)
}

pub fn ports_taken_out_or_changed(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 2] = [
        (BRIDGED, &["link set eth0 nomaster"]),
        (
            BRIDGED,
            &["link set eth0 type bridge_slave learning on hairpin off"],
        ),
    ];
    victims(node, "ports", &rows)
}

pub fn move_to_another_bridge(pod: &Pod<'_>) {
    pod.ip("link add br1 type bridge");
    pod.ip("link set eth0 nomaster");
    pod.ip("link set eth0 master br1");
}

pub fn assert_is_at_the_other_bridge(pod: &Pod<'_>) {
    let link = pod.ip("link show dev eth0");
    assert!(link.contains("master br1"), "{link}");
}
