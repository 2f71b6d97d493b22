//! The order of routes that come with addresses, among several links: the kernel uses the first.

use super::{assert_settled, has_address, restore_with_late_carrier};
use crate::common::{Node, Pod, background::wait_until, namespace::Namespace};

/// The second NIC, on a wire of its own.
fn second_nic(node: &Node) {
    node.ns.ip(&format!(
        "link add eth1 address 02:00:00:88:00:12 type veth peer name up1 netns {}",
        node.gateway.name()
    ));
    node.gateway.ip("link set up1 up");
    node.ns.ip("link set eth1 up");
}

fn with_two_links(node: &Node) -> Pod<'_> {
    second_nic(node);
    let pod = node.pod("web").simple();
    net1(node, &pod);
    for line in [
        "addr add 10.88.2.61/16 dev net1",
        "-6 addr add fd85::51/64 dev eth0",
        "-6 addr add fd85::61/64 dev net1",
        "-6 route add default via fd85::1 dev net1",
    ] {
        pod.ip(line);
    }
    pod
}

fn net1(node: &Node, pod: &Pod<'_>) {
    node.ns.ip(&format!(
        "link add link eth1 name new1 index 98 address {} netns {} type macvlan mode bridge",
        pod.mac().replace("88:01", "88:77"),
        pod.name()
    ));
    pod.ip("link set new1 name net1 up");
}

/// The routes in the kernel's order, and which it uses.
fn order(ns: &Namespace, to: [&str; 2]) -> [String; 7] {
    [
        ns.ip("-4 route show 10.88.0.0/16"),
        ns.ip("-4 route show table local type broadcast"),
        ns.ip("-6 route show fd85::/64"),
        ns.ip(&format!("route get {}", to[0])),
        ns.ip(&format!("-6 route get {}", to[1])),
        ns.ip("-6 route show table local type multicast"),
        ns.ip("-6 route get ff02::fb"),
    ]
}

/// Pods with a route before a connected one, and behind it.
fn beside_a_connected_route(node: &Node) -> [Pod<'_>; 2] {
    ["prepend", "append"].map(|position| {
        let pod = node.pod(position).simple();
        net1(node, &pod);
        pod.ip(&format!(
            "route {position} 10.88.0.0/16 dev net1 scope link"
        ));
        pod
    })
}

#[test]
fn connected_routes_of_a_pods_links_and_those_beside_them_keep_their_order_whichever_nic_is_lost() {
    let node = Node::new();
    let pod = with_two_links(&node);
    let beside = beside_a_connected_route(&node);
    let of_pod = || order(&pod.ns, ["10.88.0.99", "fd85::99"]);
    let of_others = || {
        beside
            .each_ref()
            .map(|pod| pod.ip("route show 10.88.0.0/16"))
    };
    let (state, before, others) = (pod.capture(), of_pod(), of_others());
    node.snapshot();
    for lost in [&["eth0"][..], &["eth1"], &["eth1", "eth0"]] {
        for nic in lost {
            if *nic == "eth0" {
                node.lose_and_reload();
                node.ns.ip("link set eth0 up");
            } else {
                node.ns.ip("link del eth1");
                second_nic(&node);
            }
        }
        node.restore();
        pod.assert_same_as(&state);
        assert_eq!(of_pod(), before, "{lost:?} lost");
        assert_eq!(of_others(), others, "{lost:?} lost");
        assert_settled(&node);
    }
}

#[test]
fn connected_routes_of_the_hosts_links_keep_their_order() {
    let node = Node::new();
    second_nic(&node);
    node.ns.ip("addr add 10.88.0.12/16 dev eth1");
    node.ns.ip("-6 addr add fd85::2/64 dev eth0");
    node.ns.ip("-6 addr add fd85::12/64 dev eth1");
    let pod = node.pod("web").simple();
    // A veth with nothing on it would be the end of a pod's.
    net1(&node, &pod);
    let of_host = || order(&node.ns, ["10.88.0.99", "fd85::99"]);
    let (state, before) = (node.capture(), of_host());
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    assert!(pod.has_eth0());
    assert_eq!(of_host(), before);
    node.assert_same_as(&state);
    assert_settled(&node);
}

/// Routes of one place: the first is made anew with its link and must come before the second, which is not lost.
#[test]
fn routes_that_rules_forbid_now_or_without_a_direct_route_are_put_in_order() {
    let node = Node::new();
    second_nic(&node);
    let own = |pod: &Pod<'_>| pod.address().replace("10.88.1.", "10.99.0.");
    let pods = ["prohibit", "unreachable", "blackhole", "gateway"].map(|name| {
        let pod = node.pod(name).simple();
        net1(&node, &pod);
        pod.ip(&format!("addr add {}/24 dev net1", own(&pod)));
        pod.ip("route append 172.17.0.0/16 via 10.88.0.4 dev eth0");
        if name == "gateway" {
            pod.ip("route append 172.17.0.0/16 via 10.99.0.1 dev net1");
            pod.ip("route del 10.99.0.0/24 dev net1");
        } else {
            pod.ip("route append 172.17.0.0/16 dev net1");
            pod.ip(&format!("rule add pref 102 not fwmark 9 {name}"));
        }
        pod
    });
    let routes = || {
        pods.each_ref()
            .map(|pod| pod.ip("route show 172.17.0.0/16"))
    };
    let (states, before) = (pods.each_ref().map(Pod::capture), routes());
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    assert_eq!(routes(), before);
    for (pod, state) in pods.iter().zip(&states) {
        pod.assert_same_as(state);
    }
    assert_settled(&node);
}

#[test]
fn routes_that_come_with_late_carrier_are_put_in_order() {
    let node = Node::new();
    let pod = with_two_links(&node);
    // Nothing else of it waits for carrier.
    pod.ip("link set eth0 addrgenmode none");
    pod.ip("-6 addr flush dev eth0");
    let groups = || groups(&pod.ns);
    let (state, before) = (pod.capture(), groups());
    node.snapshot();
    restore_with_late_carrier(&node, "--conflict-probe off", || has_address(&pod));
    assert_eq!(groups(), before);
    pod.assert_same_as(&state);
    assert_settled(&node);
}

/// A veth pair of a pod that is not on the NIC.
fn veth(node: &Node, pod: &Pod<'_>, name: &str) {
    node.ns.ip(&format!(
        "link add {name} type veth peer name {name} netns {}",
        pod.name()
    ));
    pod.ip(&format!("link set {name} up"));
    node.ns.ip(&format!("link set {name} up"));
    let has_groups = || groups(&node.ns).contains(&format!("dev {name} "));
    assert!(wait_until(has_groups), "{name}");
}

fn groups(ns: &Namespace) -> String {
    ns.ip("-6 route show table local type multicast")
}

#[test]
fn the_hosts_route_for_groups_keeps_its_place_among_those_of_pods_veths() {
    for first in [false, true] {
        let node = Node::new();
        let pod = node.pod("web").simple();
        let other = node.bystander("other");
        let again = || {
            node.ns.ip("link set eth0 down");
            node.ns.ip("link set eth0 up");
        };
        veth(&node, &other, "va");
        if !first {
            // Its route was there before those of the NIC.
            again();
            assert!(wait_until(|| groups(&node.ns).contains("eth0")));
        }
        veth(&node, &other, "vb");
        let before = groups(&node.ns);
        node.snapshot();
        node.assert_rehearsed(1);
        // This one comes later than the record.
        veth(&node, &other, "vc");
        let before = [&before, groups(&node.ns).lines().last().unwrap_or_default()].join("");
        node.lose_and_reload();
        node.restore();
        assert_eq!(groups(&node.ns).trim(), before.trim(), "first: {first}");
        assert!(pod.has_eth0());
        assert_settled(&node);
    }
}
