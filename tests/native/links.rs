//! The macvlan: every mode, and every property that ip(8) shows.

use crate::common::{Node, Pod};

/// A pod whose macvlan was created with these arguments.
fn made<'n>(node: &'n Node, name: &str, kind: &str, link: &str) -> Pod<'n> {
    let pod = node.pod(name);
    pod.macvlan(kind, link);
    pod.up_with_address();
    pod
}

#[test]
fn pods_of_every_mode_come_back_side_by_side() {
    let node = Node::new();
    let pods = ["bridge", "private", "vepa", "source", "source"]
        .map(|mode| made(&node, mode, &format!("mode {mode}"), ""));
    // The other one has an empty list.
    for mac in ["02:00:00:88:00:01", "02:00:00:99:00:07"] {
        pods[3].ip(&format!("link set dev eth0 type macvlan macaddr add {mac}"));
    }
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn mode_passthru_comes_back_with_the_parents_mac() {
    let node = Node::new();
    node.assert_all_survive_a_loss(&[made(&node, "web", "mode passthru", "")]);
}

#[test]
fn mode_passthru_without_promiscuity_comes_back() {
    let node = Node::new();
    node.assert_all_survive_a_loss(&[made(&node, "web", "mode passthru nopromisc", "")]);
}

#[test]
fn each_pod_keeps_its_requested_broadcast_queue_length() {
    let node = Node::new();
    let pods = [
        made(&node, "web", "mode bridge bcqueuelen 4000", ""),
        made(&node, "api", "mode bridge bcqueuelen 2000", ""),
        made(&node, "db", "mode bridge", ""),
    ];
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn index_mtu_names_flags_and_state_come_back() {
    let node = Node::new();
    let parent = format!("index {}", node.ns.index_of("eth0"));
    let mut pods = vec![
        made(&node, "index", "mode bridge", "index 7777"),
        made(&node, "parent", "mode bridge", &parent),
        made(
            &node,
            "mtu",
            "mode bridge",
            "mtu 1400 txqueuelen 77 group 5",
        ),
    ];
    let names = [
        "link set dev eth0 alias uplink-of-web",
        "link property add dev eth0 altname front altname a-name-that-is-longer-than-fifteen-bytes",
    ];
    let flags = [
        "link set dev eth0 promisc on",
        "link set dev eth0 allmulticast on",
        "link set dev eth0 arp off",
    ];
    for (name, lines) in [("names", &names[..]), ("flags", &flags)] {
        let pod = node.pod(name);
        pod.macvlan("mode bridge", "");
        for line in lines {
            pod.ip(*line);
        }
        pod.up_with_address();
        pods.push(pod);
    }
    let down = node.pod("down");
    down.macvlan("mode bridge", "");
    down.ip(&format!("addr add {}/16 dev eth0", down.address()));
    pods.push(down);
    node.assert_all_survive_a_loss(&pods);
}

#[test]
fn several_macvlans_in_one_pod_come_back_with_their_names() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let name = pod.name();
    node.ns.ip(&format!("link add link eth0 name net1 netns {name} address 02:00:00:88:02:01 index 9 type macvlan mode private"));
    node.ns.ip(&format!("link add link eth0 name net1.3 netns {name} address 02:00:00:88:02:02 type macvlan mode bridge"));
    pod.ip("link set net1 up");
    pod.ip("addr add 172.20.0.5/24 dev net1");
    pod.ip("link set net1.3 up");
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn jumbo_frames_come_back_on_the_parent_and_in_the_pod() {
    let node = Node::new();
    node.ns.ip("link set eth0 mtu 9000");
    node.assert_all_survive_a_loss(&[made(&node, "web", "mode bridge", "mtu 8900")]);
}
