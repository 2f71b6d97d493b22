//! The node: the addresses and routes of the parent are restored, and what was not lost stays unchanged.

use crate::common::Node;
use crate::common::background::Monitor;

#[test]
fn addresses_routes_and_settings_of_the_parent_come_back_and_other_links_stay() {
    let node = Node::new();
    node.ns.ip("addr add 10.88.0.7/16 dev eth0");
    node.ns.ip("addr add 172.30.0.2/24 dev eth0");
    node.ns
        .ip("route add 192.168.0.0/16 via 10.88.0.3 metric 30 src 10.88.0.7");
    node.ns
        .ip("route add 198.51.100.0/24 dev eth0 scope link table 200");
    node.ns.ip("rule add from 10.88.0.7 table 200 priority 900");
    node.ns
        .ip("neigh add 10.88.0.99 lladdr 02:00:00:99:00:01 nud permanent dev eth0");
    node.ns.set_sysctl("ipv4/conf/eth0/rp_filter", "2");
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.ns.ip("link set dev eth0 alias uplink");
    let pods = node.simple_pods(1);
    let name = pods[0].name();
    node.ns.ip(&format!(
        "link add veth0 type veth peer name net1 netns {name}"
    ));
    node.ns.ip("addr add 172.31.0.1/24 dev veth0");
    node.ns.ip("link set veth0 up");
    pods[0].ip("addr add 172.31.0.2/24 dev net1");
    pods[0].ip("link set net1 up");
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn a_parent_without_addresses_gets_none() {
    let node = Node::without_addresses();
    let pods = node.simple_pods(2);
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn parts_that_a_network_manager_already_restored_are_not_an_error() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (host, before) = (node.capture(), pods[0].capture());
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    node.ns.ip("route add default via 10.88.0.1");
    node.restore();
    node.assert_same_as(&host);
    pods[0].assert_same_as(&before);
}

#[test]
fn creating_a_pods_eth0_does_not_change_the_nodes_eth0() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let before = pod.capture();
    let (host, index) = (node.capture(), node.ns.index_of("eth0"));
    node.snapshot();
    pod.ip("link del eth0");
    let monitor = Monitor::of(&node.ns, &node);
    node.restore();
    let heard = monitor.heard();
    assert_eq!(
        index,
        node.ns.index_of("eth0"),
        "the node's eth0 is not the device it was"
    );
    node.assert_same_as(&host);
    let lost: Vec<&str> = heard
        .lines()
        .filter(|line| line.starts_with("Deleted"))
        .collect();
    assert!(lost.is_empty(), "the node lost {lost:?} meanwhile");
    pod.assert_same_as(&before);
}

#[test]
fn an_eth0_of_another_kind_on_the_node_does_not_block_a_restore() {
    let node = Node::new();
    node.ns.ip("link add name br0 type bridge");
    // Without a port its address would stay tentative.
    node.ns.set_sysctl("ipv6/conf/br0/disable_ipv6", "1");
    node.ns.ip("link set br0 up");
    let pod = node.pod("web");
    node.ns.ip(&format!(
        "link add link eth0 name br0 netns {} address {} type macvlan mode bridge",
        pod.name(),
        pod.mac()
    ));
    pod.ip("link set br0 up");
    pod.ip(&format!("addr add {}/16 dev br0", pod.address()));
    let (host, before) = (node.capture(), pod.capture());
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    assert_eq!(
        host.link("br0"),
        node.capture().link("br0"),
        "the node's br0 is not the device it was"
    );
    pod.assert_same_as(&before);
}

#[test]
fn an_interface_of_the_node_with_a_pods_index_does_not_block_a_restore() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "index 777");
    pod.up_with_address();
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    node.ns
        .ip("link add other0 index 777 address 02:00:00:00:00:01 type ifb");
    node.restore();
    pod.assert_same_as(&before);
    let other = node.ns.ip("-o link show dev other0");
    assert!(
        other.starts_with("777:") && other.contains("02:00:00:00:00:01"),
        "{other}"
    );
}
