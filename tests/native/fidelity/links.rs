//! Attributes of links that few pods have.

use super::{Victim, pods_with, victims};
use crate::common::{Node, Pod};

const BROADCAST: &[&str] = &["link set eth0 broadcast 01:00:5e:00:00:99"];
const JOINED: &[&str] = &[
    "maddr add 33:33:00:00:00:77 dev eth0",
    "maddr add 01:00:5e:00:00:77 dev eth0",
];

/// A broadcast address, limits of offload and a token.
pub fn attributes_and_groups_joined_by_hand(node: &Node) -> Vec<Pod<'_>> {
    let rows: [&[&str]; 3] = [
        BROADCAST,
        &[
            "link set eth0 gso_max_size 30000 gso_max_segs 20 gro_max_size 40000",
            "token set ::99 dev eth0",
        ],
        JOINED,
    ];
    pods_with(node, "links", &rows)
}

pub fn other_broadcast_addresses_and_groups(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 3] = [
        (BROADCAST, &["link set eth0 broadcast 01:00:5e:00:00:77"]),
        (&[], BROADCAST),
        (JOINED, &["maddr del 33:33:00:00:00:77 dev eth0"]),
    ];
    victims(node, "links", &rows)
}

/// A daemon declares a dormant link operational: its state is not compared.
#[test]
fn a_link_that_is_held_down_or_dormant_is_so_again() {
    let node = Node::new();
    let pods = ["web", "db"].map(|name| node.pod(name));
    for (pod, word) in pods.iter().zip(["protodown on", "mode dormant"]) {
        pod.macvlan("mode bridge", "");
        pod.ip(&format!("link set eth0 {word}"));
        pod.up_with_address();
    }
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    for (pod, word) in pods.iter().zip(["protodown on", "mode DORMANT"]) {
        let link = pod.ip("-d link show dev eth0");
        assert!(link.contains(word), "{link}");
    }
}
