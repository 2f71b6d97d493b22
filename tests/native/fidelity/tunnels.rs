//! Links that name their lower device in the data of their kind. Only a vxlan is tried here; tests/vm/scenarios/tunnels.sh has the
//! others.

use super::{all_are_repaired, pods_with, prepared};
use crate::common::namespace::Namespace;
use crate::common::{Node, Pod, tool};

/// The forwarding entries of a link, without the order of the kernel's hash table.
fn forwarding(ns: &Namespace, link: &str) -> Vec<String> {
    let entries = tool::run(ns.exec("bridge").args(["fdb", "show", "dev", link]));
    let mut lines: Vec<_> = entries.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn fdb(ns: &Namespace, words: &str) {
    tool::run(ns.exec("bridge").arg("fdb").args(words.split(' ')));
}

/// What flannel makes on a node.
fn flannel(node: &Node) {
    for words in [
        "link add flannel.1 mtu 1450 address 02:fa:00:00:00:10 type vxlan id 1 local 10.88.0.2 dev eth0 dstport 8472 nolearning",
        "addr add 10.42.0.0/32 dev flannel.1",
        "link set flannel.1 up",
        "route add 10.42.1.0/24 via 10.42.1.0 dev flannel.1 onlink",
        "neigh add 10.42.1.0 lladdr 02:fa:00:00:00:11 nud permanent dev flannel.1",
    ] {
        node.ns.ip(words);
    }
    fdb(
        &node.ns,
        "append 02:fa:00:00:00:11 dev flannel.1 dst 10.88.0.3 self permanent",
    );
}

#[test]
fn the_hosts_vxlan_comes_back_with_its_entries_neighbours_and_routes() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    flannel(&node);
    let (index, entries) = (
        node.ns.index_of("flannel.1"),
        forwarding(&node.ns, "flannel.1"),
    );
    assert_eq!(entries.len(), 1, "{entries:?}");
    node.snapshot().errors(&[]);
    node.netfix("check").exits(0);
    let (host, before) = (node.capture(), pods[0].capture());
    node.lose_and_reload();
    assert!(!node.ns.has_link("flannel.1"), "it outlived its device");
    node.netfix("check").exits(2);
    let plan = node.netfix("plan").exits(0).transcript();
    assert!(plan.contains("+ vxlan flannel.1 on eth0"), "{plan}");
    node.restore();
    node.assert_same_as(&host);
    pods[0].assert_same_as(&before);
    assert_eq!(forwarding(&node.ns, "flannel.1"), entries);
    assert_eq!(node.ns.index_of("flannel.1"), index);
    node.netfix("diff").exits(0);
    // Its loss alone is one of the host.
    node.ns.ip("link del flannel.1");
    node.netfix("check").exits(2);
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("degraded", "")])
        .names("degraded", "", &["flannel.1"]);
    node.restore();
    node.assert_same_as(&host);
}

#[test]
fn vxlans_with_every_attribute_come_back() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    for words in [
        "link add vx1 type vxlan id 71 group 239.7.7.7 dev eth0 dstport 4789 ttl inherit tos 16 ageing 77 maxaddress 500 \
         srcport 40000 50000 proxy rsc l2miss l3miss noudpcsum df set gbp",
        "link set vx1 up",
        "link add vx2 type vxlan id 72 remote fd00:88::9 local fd00:88::2 dev eth0 dstport 4789 udp6zerocsumtx udp6zerocsumrx \
         ttl 9 flowlabel 5 learning",
        "link set vx2 up",
        "link add vx3 type vxlan external dev eth0 dstport 4799",
        "link set vx3 up",
    ] {
        node.ns.ip(words);
    }
    for words in [
        "append 00:00:00:00:00:00 dev vx1 dst 10.88.0.3 via eth0 self permanent",
        "append 00:00:00:00:00:00 dev vx1 dst 10.88.0.4 port 4790 vni 99 self permanent",
        "add 02:00:00:00:07:01 dev vx1 dst 10.88.0.4 self static",
        "add 02:00:00:00:07:02 dev vx3 dst 10.88.0.4 src_vni 5 self permanent",
    ] {
        fdb(&node.ns, words);
    }
    let entries = ["vx1", "vx2", "vx3"].map(|link| forwarding(&node.ns, link));
    node.assert_all_survive_a_loss(&pods);
    assert_eq!(
        ["vx1", "vx2", "vx3"].map(|link| forwarding(&node.ns, link)),
        entries
    );
}

#[test]
fn a_vxlan_in_a_pod_on_the_hosts_nic_comes_back() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.ns
        .ip("link add vx7 type vxlan id 7 dstport 4789 remote 10.88.0.1 dev eth0");
    node.ns.ip(&format!("link set vx7 netns {}", pod.name()));
    pod.ip("link set vx7 up");
    pod.ip("addr add 172.20.0.5/24 dev vx7");
    let (addresses, entries) = (pod.ip("-br addr show dev vx7"), forwarding(&pod.ns, "vx7"));
    node.snapshot().errors(&[]);
    node.lose_and_reload();
    assert!(!pod.ns.has_link("vx7"), "it outlived its device");
    node.restore();
    assert_eq!(pod.ip("-br addr show dev vx7"), addresses);
    let (link, index) = (pod.ip("-d link show dev vx7"), node.ns.index_of("eth0"));
    let via = format!("via ifindex {index} ");
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| entry.replace("via ifindex 2 ", &via))
        .collect();
    assert_eq!(forwarding(&pod.ns, "vx7"), entries);
    assert!(link.contains(&format!("dev if{index} ")), "{link}");
    node.netfix("diff").exits(0);
}

#[test]
fn an_entry_that_was_deleted_is_added_again() {
    let node = Node::new();
    let pod: Pod<'_> = prepared(
        &node,
        &[
            "link add vx0 type vxlan id 42 dev eth0 dstport 4789",
            "link set vx0 up",
        ],
    );
    let entry = "02:00:00:00:42:01 dev vx0 dst 10.88.0.4 self permanent";
    fdb(&pod.ns, &format!("add {entry}"));
    let before = forwarding(&pod.ns, "vx0");
    node.snapshot();
    fdb(&pod.ns, &format!("del {entry}"));
    let diff = node.netfix("diff").exits(3).transcript();
    assert!(diff.contains("+ fdb 02:00:00:00:42:01"), "{diff}");
    node.restore();
    assert_eq!(forwarding(&pod.ns, "vx0"), before);
    node.netfix("diff").exits(0);
}

pub fn a_vxlan_on_the_pods_own_link(node: &Node) -> Vec<Pod<'_>> {
    let row: &[&str] = &[
        "link add vx0 type vxlan id 42 dev eth0 dstport 4789 remote 10.88.0.1",
        "link set vx0 up",
        "addr add 172.16.0.2/24 dev vx0",
        "route add 172.17.0.0/16 via 172.16.0.1",
    ];
    pods_with(node, "tunnels", &[row])
}

#[test]
fn a_vxlan_without_a_lower_device_stays_and_nothing_is_said_of_it() {
    let node = Node::new();
    let lines = [
        "link add vx9 type vxlan id 43 dstport 4790 local 10.88.1.10 remote 10.88.0.1",
        "link set vx9 up",
    ];
    let pods = [prepared(&node, &lines)];
    all_are_repaired(&node, &pods, |_, pod| {
        pod.ip("link set eth0 txqueuelen 77");
    });
    node.lose_and_reload();
    assert!(pods[0].ns.has_link("vx9"));
    node.restore();
}
