//! netfix's files, read and used like `i40e_net_fix` does.

use serde_json::Value;

use crate::common::cni::static_ipam;
use crate::common::traffic::reaches;
use crate::common::{Node, Pod};
use crate::reader::OriginCheckpoint;

/// Addresses and gateway routes as `i40e_net_fix` could record them.
fn essence(pod: &Pod<'_>) -> Vec<String> {
    let capture = pod.capture();
    let links = capture
        .section("addr")
        .as_array()
        .into_iter()
        .flatten()
        .filter(|link| link["ifname"] == "eth0");
    let addresses =
        links.flat_map(|link| link["addr_info"].as_array().cloned().unwrap_or_default());
    let own = addresses.filter(|address| address["scope"] == "global");
    let mut essence: Vec<_> = own
        .map(|address| format!("{}/{}", address["local"], address["prefixlen"]))
        .collect();
    for family in ["route4", "route6"] {
        let routes = capture
            .section(family)
            .as_array()
            .into_iter()
            .flatten()
            .filter(|route| route["gateway"].is_string());
        essence.extend(routes.map(|route| format!("{} via {}", route["dst"], route["gateway"])));
    }
    essence.push(capture.link("eth0")["address"].to_string());
    essence
}

/// After a loss the steps of `i40e_net_fix`, with netfix's file alone, restore everything that `i40e_net_fix` can
/// restore.
fn i40e_net_fix_restores(node: &Node, pod: &Pod<'_>) {
    let before = essence(pod);
    node.snapshot();
    let checkpoint = OriginCheckpoint::read(&node.checkpoint_of(pod));
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    checkpoint.restore(node);
    assert_eq!(before, essence(pod), "restored from {checkpoint:#?}");
    assert!(reaches(pod, "10.88.0.1:9"), "no way to the gateway");
}

#[test]
fn i40e_net_fix_restores_an_ipv4_pod_from_our_file() {
    let node = Node::new();
    let pod = node.pod("web").attach(&static_ipam(&["10.88.2.10/16"]));
    i40e_net_fix_restores(&node, &pod);
}

#[test]
fn i40e_net_fix_restores_a_dual_stack_pod_from_our_file() {
    let node = Node::new();
    let pod = node
        .pod("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    i40e_net_fix_restores(&node, &pod);
}

#[test]
fn i40e_net_fix_restores_several_addresses_in_order_from_our_file() {
    let node = Node::new();
    let pod = node
        .pod("web")
        .attach(&static_ipam(&["10.88.2.10/16", "10.88.2.9/16"]));
    i40e_net_fix_restores(&node, &pod);
}

#[test]
fn i40e_net_fix_restores_a_route_by_another_gateway_from_our_file() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip("route add 172.16.0.0/12 via 10.88.0.3");
    i40e_net_fix_restores(&node, &pod);
}

#[test]
fn i40e_net_fix_restores_its_part_of_a_complex_pod_from_our_file() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let before = essence(&pod);
    // None of this may be in the keys of `i40e_net_fix` in a way that makes it do something wrong.
    pod.ip("route add blackhole 192.0.2.0/24");
    pod.ip("route add 198.51.100.0/24 dev eth0 scope link");
    pod.ip("addr add 10.77.7.7/32 dev lo");
    node.snapshot();
    let checkpoint = OriginCheckpoint::read(&node.checkpoint_of(&pod));
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    checkpoint.restore(&node);
    assert_eq!(before, essence(&pod), "restored from {checkpoint:#?}");
}

#[test]
fn i40e_net_fix_restores_several_ipv6_addresses_in_order_from_our_file() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip("addr add fd88::2:7/64 dev eth0");
    pod.ip("addr add fd88::2:3/64 dev eth0");
    i40e_net_fix_restores(&node, &pod);
}

#[test]
fn our_file_has_no_route_at_which_i40e_net_fix_would_stop() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip("route add 192.0.2.0/24 dev eth0");
    pod.ip("route add 10.98.0.0/16 via 192.0.2.1");
    pod.ip("route add 10.99.0.0/16 via 10.88.0.9");
    node.snapshot();
    let checkpoint = OriginCheckpoint::read(&node.checkpoint_of(&pod));
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    checkpoint.restore(&node);
    let routes = pod.ip("route show");
    assert!(routes.contains("10.99.0.0/16 via 10.88.0.9"), "{routes}");
    assert!(!routes.contains("10.98.0.0/16"), "{routes}");
}

#[test]
fn the_main_interface_is_a_macvlan_also_behind_a_veth_with_the_default_route() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 down name net1");
    pod.ip("link set net1 up");
    pod.ip(&format!("addr add {}/16 dev net1", pod.address()));
    pod.ip("link add eth0 type veth peer name peer0");
    pod.ip("link set peer0 up");
    pod.ip("link set eth0 up");
    pod.ip("addr add 172.20.0.5/24 dev eth0");
    pod.ip("route add default via 172.20.0.1");
    node.snapshot();
    let checkpoint = OriginCheckpoint::read(&node.checkpoint_of(&pod));
    assert_eq!(
        (checkpoint.ifname.as_str(), &checkpoint.mac),
        ("net1", &pod.mac())
    );
}

#[test]
fn the_pods_main_interface_is_the_first() {
    let node = Node::new();
    let pod = node.pod("web");
    let name = pod.name();
    node.ns.ip(&format!(
        "link add link eth0 name net1 netns {name} address 02:00:00:88:02:01 type macvlan mode bridge"
    ));
    pod.ip("link set net1 up");
    pod.ip("addr add 172.20.0.5/24 dev net1");
    let pod = pod.simple();
    node.snapshot();
    let checkpoint = OriginCheckpoint::read(&node.checkpoint_of(&pod));
    assert_eq!(
        (checkpoint.ifname.as_str(), &checkpoint.mac),
        ("eth0", &pod.mac())
    );
    let addresses: Vec<_> = checkpoint.ips.iter().map(|ip| ip.address.clone()).collect();
    assert_eq!(
        addresses,
        [format!("{}/16", pod.address())],
        "addresses of another interface than the first"
    );
}

#[test]
fn our_file_adds_one_key_to_those_of_i40e_net_fix() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let text = std::fs::read_to_string(node.checkpoint_of(&pods[0])).expect("the checkpoint");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    let keys: Vec<_> = value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let mut sorted = keys.clone();
    sorted.sort_unstable();
    assert_eq!(
        sorted,
        ["ifname", "netfix", "netns", "podname", "result", "sandbox"]
    );
    let inside: Vec<_> = value["result"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    for key in ["interfaces", "ips", "routes", "dns"] {
        assert!(
            inside.iter().any(|found| found == key),
            "no {key} in the result"
        );
    }
}
