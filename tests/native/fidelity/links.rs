//! Attributes of links that few pods have.

use super::{comes_back, is_repaired};

#[test]
fn a_link_layer_broadcast_address_comes_back() {
    let set = "link set eth0 broadcast 01:00:5e:00:00:99";
    comes_back(&[set]);
    is_repaired(&[set], &["link set eth0 broadcast 01:00:5e:00:00:77"]);
    is_repaired(&[], &[set]);
}

#[test]
fn limits_of_offload_and_a_token_come_back() {
    comes_back(&[
        "link set eth0 gso_max_size 30000 gso_max_segs 20 gro_max_size 40000",
        "token set ::99 dev eth0",
    ]);
}

/// A daemon declares a dormant link operational: its state is not compared.
#[test]
fn a_link_that_is_held_down_or_dormant_is_so_again() {
    let node = crate::common::Node::new();
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

#[test]
fn a_group_that_was_joined_by_hand_is_joined_again() {
    let join = [
        "maddr add 33:33:00:00:00:77 dev eth0",
        "maddr add 01:00:5e:00:00:77 dev eth0",
    ];
    comes_back(&join);
    is_repaired(&join, &["maddr del 33:33:00:00:00:77 dev eth0"]);
}
