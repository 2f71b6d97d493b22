//! Link-local IPv6 addresses: the kernel's own, and those that were added by hand.

use super::{is_repaired, is_repaired_by, is_repaired_by_from, prepared};
use crate::common::{Node, Pod};

fn derived(pod: &Pod<'_>) -> String {
    let mac = pod.mac();
    let last = mac.rsplit(':').next().expect("a MAC");
    format!("fe80::ff:fe88:1{last}")
}

#[test]
fn the_kernels_address_comes_back_to_a_link_that_kept_its_carrier() {
    is_repaired(&[], &["-6 addr flush dev eth0"]);
}

#[test]
fn a_stable_privacy_address_comes_back_to_a_link_that_kept_its_carrier() {
    let node = Node::new();
    let pod = prepared(&node, &[]);
    pod.ip("link set eth0 down");
    pod.ns
        .set_sysctl("ipv6/conf/eth0/stable_secret", "2001:db8::1");
    pod.ip("link set eth0 up");
    pod.ip("route replace default via 10.88.0.1");
    let before = pod.capture();
    node.snapshot();
    pod.ip("-6 addr flush dev eth0");
    node.restore();
    pod.assert_same_as(&before);
}

#[test]
fn an_address_that_looks_derived_and_was_added_by_hand_comes_back() {
    let node = Node::new();
    let pods: Vec<_> = ["web", "db", "api"]
        .iter()
        .map(|name| node.pod(name))
        .collect();
    for (pod, words) in pods.iter().zip(["/64 nodad", "/128 metric 9 nodad", "/64"]) {
        pod.macvlan("mode bridge", "");
        pod.ip("link set eth0 addrgenmode none");
        pod.up_with_address();
        let (address, length) = (derived(pod), words);
        pod.ip(&format!("addr add {address}{length} dev eth0"));
    }
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn a_link_made_by_hand_with_another_mac_gets_the_address_of_its_own_mac() {
    let node = Node::new();
    let pod = prepared(&node, &[]);
    let before = pod.capture();
    let index = before.link("eth0")["ifindex"].clone();
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    pod.macvlan(
        "mode bridge",
        &format!("address 02:00:00:88:99:99 index {index}"),
    );
    pod.ip("link set eth0 up");
    node.restore();
    let addresses = pod.ip("-6 addr show dev eth0");
    assert!(addresses.contains(&derived(&pod)), "{addresses}");
}

#[test]
fn a_link_that_is_down_gets_no_address_with_its_mode() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 addrgenmode random");
    pod.ip("addr add 10.88.1.10/16 dev eth0");
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn another_mode_of_a_link_that_is_up_is_set_back() {
    is_repaired_by(&[], |pod| {
        pod.ns.set_sysctl("ipv6/conf/eth0/addr_gen_mode", "1");
        pod.ip("-6 addr flush dev eth0");
    });
}

#[test]
fn a_link_local_address_without_its_route_comes_back_without_it() {
    let lines = [
        "-6 route add fe80::/64 dev eth0 table 100 proto kernel metric 256",
        "-6 route del fe80::/64 dev eth0 table main",
    ];
    super::comes_back(&lines);
    super::is_repaired(
        &lines,
        &["-6 route add fe80::/64 dev eth0 proto kernel metric 256"],
    );
}

/// A smaller MTU takes a link's IPv6 with all its settings; with a larger one it begins anew.
const TOO_SMALL: &str = "link set eth0 mtu 1200";

const OWN_ADDRESS: &str = "-6 addr add 2001:db8::5/64 dev eth0 nodad";

#[test]
fn ipv6_that_went_with_the_mtu_comes_back_with_its_settings() {
    fn with_settings(node: &Node) -> Pod<'_> {
        let pod = prepared(node, &[OWN_ADDRESS]);
        for (key, value) in [
            ("conf/eth0/accept_ra", "0"),
            ("conf/eth0/dad_transmits", "3"),
            ("neigh/eth0/base_reachable_time_ms", "77000"),
        ] {
            pod.ns.set_sysctl(&format!("ipv6/{key}"), value);
        }
        pod
    }
    is_repaired_by_from(with_settings, |pod| {
        pod.ip(TOO_SMALL);
    });
}

#[test]
fn ipv6_that_went_with_the_mtu_of_the_nic_comes_back() {
    let node = Node::new();
    let pod = prepared(&node, &[OWN_ADDRESS]);
    let before = pod.capture();
    node.snapshot();
    node.ns.ip(TOO_SMALL);
    node.restore();
    pod.assert_same_as(&before);
}

#[test]
fn no_address_comes_with_the_mtu_to_a_link_that_had_none() {
    is_repaired(
        &["link set eth0 addrgenmode none", "-6 addr flush dev eth0"],
        &[TOO_SMALL],
    );
    is_repaired(&["-6 addr flush dev eth0"], &[TOO_SMALL]);
}

#[test]
fn no_address_comes_to_a_link_that_had_none_when_its_ipv6_goes_on() {
    is_repaired_by(&["-6 addr flush dev eth0"], |pod| {
        pod.ns.set_sysctl("ipv6/conf/eth0/disable_ipv6", "1");
    });
}

#[test]
fn the_loopback_address_that_went_with_the_mtu_comes_back() {
    is_repaired(&[], &["link set lo mtu 1000"]);
}

#[test]
fn an_address_of_the_kernel_on_a_link_that_had_none_is_told() {
    let node = Node::new();
    let pod = prepared(&node, &["-6 addr flush dev eth0"]);
    node.snapshot();
    for mtu in ["1200", "1500"] {
        pod.ip(&format!("link set eth0 mtu {mtu}"));
    }
    let diff = node.netfix("diff -v");
    let said = diff.transcript();
    assert!(said.contains("fe80:") && said.contains("surplus"), "{said}");
}
