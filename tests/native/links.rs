//! The macvlan: every mode, and every property that ip(8) shows.

use crate::common::{Node, Pod};

/// A pod whose macvlan was created with these arguments.
fn made<'n>(node: &'n Node, name: &str, kind: &str, link: &str) -> Pod<'n> {
    let pod = node.pod(name);
    pod.macvlan(kind, link);
    pod.up_with_address();
    pod
}

/// A pod of each mode.
fn of_every_mode(node: &Node) -> Vec<Pod<'_>> {
    let pods = ["bridge", "private", "vepa", "source", "source"]
        .map(|mode| made(node, mode, &format!("mode {mode}"), ""));
    // The other one has an empty list.
    for mac in ["02:00:00:88:00:01", "02:00:00:99:00:07"] {
        pods[3].ip(&format!("link set dev eth0 type macvlan macaddr add {mac}"));
    }
    pods.into()
}

/// Pods with an index, an MTU, names and flags, and one whose link is down.
fn with_properties(node: &Node) -> Vec<Pod<'_>> {
    let parent = format!("index {}", node.ns.index_of("eth0"));
    let mut pods = vec![
        made(node, "index", "mode bridge", "index 7777"),
        made(node, "parent", "mode bridge", &parent),
        made(node, "mtu", "mode bridge", "mtu 1400 txqueuelen 77 group 5"),
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
    pods
}

/// A pod with three macvlans.
fn with_several_macvlans(node: &Node) -> Pod<'_> {
    let pod = node.pod("several").simple();
    let name = pod.name();
    node.ns.ip(&format!("link add link eth0 name net1 netns {name} address 02:00:00:88:02:01 index 9 type macvlan mode private"));
    node.ns.ip(&format!("link add link eth0 name net1.3 netns {name} address 02:00:00:88:02:02 type macvlan mode bridge"));
    pod.ip("link set net1 up");
    pod.ip("addr add 172.20.0.5/24 dev net1");
    pod.ip("link set net1.3 up");
    pod
}

/// The NIC gets a large MTU, and a new pod has one, too.
fn with_jumbo_frames(node: &Node) -> Pod<'_> {
    node.ns.ip("link set eth0 mtu 9000");
    made(node, "jumbo", "mode bridge", "mtu 8900")
}

#[test]
fn links_of_every_mode_and_property_come_back_side_by_side() {
    let node = Node::new();
    let mut pods = of_every_mode(&node);
    pods.extend([
        // Each keeps the length of the broadcast queue that it requests.
        made(&node, "web", "mode bridge bcqueuelen 4000", ""),
        made(&node, "api", "mode bridge bcqueuelen 2000", ""),
        made(&node, "db", "mode bridge", ""),
    ]);
    pods.extend(with_properties(&node));
    pods.push(with_several_macvlans(&node));
    pods.push(with_jumbo_frames(&node));
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
