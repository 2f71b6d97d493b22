//! Link-local addresses: their order, and how the kernel makes its own.

use super::{assert_settled, comes_back_with_late_carrier, prepared};
use crate::common::{Node, Pod};

/// Several on one link, in one of the orders that they can have.
fn several<'n>(node: &'n Node, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.up_with_address();
    for line in lines {
        pod.ip(line);
    }
    pod
}

/// One whose address the kernel derives from this secret.
fn with_secret<'n>(node: &'n Node, secret: &str) -> Pod<'n> {
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ns.set_sysctl("ipv6/conf/eth0/stable_secret", secret);
    pod.up_with_address();
    pod
}

const OTHERS: [&str; 2] = [
    "-6 addr add fe80::1/64 dev eth0",
    "-6 addr add fe80::2/64 dev eth0",
];

#[test]
fn several_link_local_addresses_keep_their_order_when_carrier_comes_late() {
    let node = Node::new();
    let pod = several(&node, &OTHERS);
    comes_back_with_late_carrier(&node, &pod);
}

#[test]
fn the_kernels_address_and_that_of_a_secret_keep_their_places_among_others() {
    let node = Node::new();
    let behind = node.pod("behind");
    behind.macvlan("mode bridge", "");
    behind.ip("link set eth0 addrgenmode none");
    behind.up_with_address();
    for line in OTHERS {
        behind.ip(line);
    }
    behind.ns.set_sysctl("ipv6/conf/eth0/addr_gen_mode", "0");
    let between = node.pod("between");
    between.macvlan("mode bridge", "");
    between
        .ns
        .set_sysctl("ipv6/conf/eth0/stable_secret", "2001:db8::b13");
    between.ip("addr add fe80::5/64 dev eth0");
    between.up_with_address();
    between.ip("addr add fe80::4/10 dev eth0");
    let mut pods = vec![behind, between];
    // Links that make other addresses by now.
    for (mode, secret) in [("eui64", "2001:db8::b11"), ("none", "2001:db8::b12")] {
        let pod = with_secret(&node, secret);
        pod.ip(&format!("link set eth0 addrgenmode {mode}"));
        let addresses = pod.ip("-6 addr show dev eth0");
        assert!(addresses.contains("stable-privacy"), "{addresses}");
        pods.push(pod);
    }
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn the_kernels_address_comes_back_to_a_link_that_makes_none_any_more() {
    let node = Node::new();
    let pods = ["none", "random"].map(|mode| {
        let pod = prepared(&node, &[]);
        pod.ip(&format!("link set eth0 addrgenmode {mode}"));
        pod
    });
    let before = pods.each_ref().map(Pod::capture);
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert_settled(&node);
}

#[test]
fn an_address_of_its_mac_is_named_and_a_link_made_by_hand_without_its_secret_gets_none() {
    let node = Node::new();
    let pod = with_secret(&node, "2001:db8::b10");
    node.snapshot();
    // The recorded mode would not make it.
    pod.ns.set_sysctl("ipv6/conf/eth0/addr_gen_mode", "1");
    pod.ns.set_sysctl("ipv6/conf/eth0/addr_gen_mode", "0");
    let diff = node.netfix_json("diff");
    diff.names("surplus", pod.name(), &["fe80::ff:fe88:1"]);
    let index = pod.ns.index_of("eth0");
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let link = format!("address 02:00:00:88:99:99 index {index}");
    pod.macvlan("mode bridge", &link);
    pod.ip("link set eth0 up");
    node.restore();
    let addresses = pod.ip("-6 addr show dev eth0 scope link");
    let last = pod.mac();
    let last = last.rsplit(':').next().expect("a MAC");
    assert!(
        !addresses.contains(&format!("fe80::ff:fe88:1{last}/64")),
        "{addresses}"
    );
    assert!(addresses.contains("stable-privacy"), "{addresses}");
    let diff = node.netfix_json("diff");
    diff.names("surplus", pod.name(), &["fe80::ff:fe88:9999"]);
}
