//! Link-local IPv6 addresses: the kernel's own, and those that were added by hand.

use super::{STABLE_SECRET, Victim, named, prepared, victims};
use crate::common::{Node, Pod};

fn derived(pod: &Pod<'_>) -> String {
    let mac = pod.mac();
    let last = mac.rsplit(':').next().expect("a MAC");
    format!("fe80::ff:fe88:1{last}")
}

/// A smaller MTU takes a link's IPv6 with all its settings; with a larger one it begins anew.
const TOO_SMALL: &str = "link set eth0 mtu 1200";

const OWN_ADDRESS: &str = "-6 addr add 2001:db8::5/64 dev eth0 nodad";

const FLUSH: &str = "-6 addr flush dev eth0";

/// A link-local address without its route, which is in another table.
const WITHOUT_ROUTE: [&str; 2] = [
    "-6 route add fe80::/64 dev eth0 table 100 proto kernel metric 256",
    "-6 route del fe80::/64 dev eth0 table main",
];

/// As before, on a link that stays.
pub fn a_link_local_address_or_none(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 7] = [
        (&[], &[FLUSH]),
        (&STABLE_SECRET, &[FLUSH]),
        (&[], &["sysctl ipv6/conf/eth0/addr_gen_mode 1", FLUSH]),
        (
            &WITHOUT_ROUTE,
            &["-6 route add fe80::/64 dev eth0 proto kernel metric 256"],
        ),
        (&["link set eth0 addrgenmode none", FLUSH], &[TOO_SMALL]),
        (&[FLUSH], &[TOO_SMALL]),
        (&[FLUSH], &["sysctl ipv6/conf/eth0/disable_ipv6 1"]),
    ];
    victims(node, "local", &rows)
}

/// It comes back with its settings; the last one is that of the loopback device.
pub fn ipv6_that_went_with_the_mtu(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 2] = [
        (
            &[
                OWN_ADDRESS,
                "sysctl ipv6/conf/eth0/accept_ra 0",
                "sysctl ipv6/conf/eth0/dad_transmits 3",
                "sysctl ipv6/neigh/eth0/base_reachable_time_ms 77000",
            ],
            &[TOO_SMALL],
        ),
        (&[], &["link set lo mtu 1000"]),
    ];
    victims(node, "mtu", &rows)
}

/// The link that is down gets no address with its mode.
pub fn addresses_by_hand_and_a_link_that_is_down(node: &Node) -> Vec<Pod<'_>> {
    let mut pods: Vec<_> = ["web", "db", "api"]
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
    let down = node.pod("down");
    down.macvlan("mode bridge", "");
    down.ip("link set eth0 addrgenmode random");
    down.ip(&format!("addr add {}/16 dev eth0", down.address()));
    pods.extend([down, named(node, "routeless", &WITHOUT_ROUTE)]);
    pods
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
