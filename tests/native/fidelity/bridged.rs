//! What a port has in the tables of its bridge, in a pod and on the host, and pods behind a bridge that has lost its uplink.

use std::fs;

use serde_json::Value;

use super::{all_are_repaired, prepared};
use crate::common::namespace::Namespace;
use crate::common::{Node, Pod};

const BRIDGED: &[&str] = &[
    "addr flush dev eth0",
    "link add br0 type bridge mcast_snooping 1",
    "link set br0 up",
    "link set eth0 master br0",
    "addr add 10.88.1.10/16 dev br0",
    "route add default via 10.88.0.1",
];

const ENTRIES: [&str; 4] = [
    "fdb add 02:00:00:00:00:99 dev eth0 master static",
    "fdb add 02:00:00:00:00:98 dev eth0 master static sticky",
    "mdb add dev br0 port eth0 grp 239.1.1.1 permanent",
    "mdb add dev br0 port eth0 grp ff0e::1 permanent",
];

fn bridge(ns: &Namespace, words: &str) -> String {
    let output = ns.exec("bridge").args(words.split(' ')).output();
    let output = output.expect("bridge(8)");
    assert!(output.status.success(), "bridge {words}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was added to the port's tables.
fn added(ns: &Namespace, port: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for words in ["fdb show", "mdb show"] {
        let text = bridge(ns, words);
        let own = text.lines().filter(|line| {
            let is_of_port = line.split_whitespace().any(|word| word == port);
            let is_added =
                line.contains("static") || (line.contains("grp") && line.contains("permanent"));
            is_of_port && is_added
        });
        lines.extend(own.map(str::to_owned));
    }
    lines.sort();
    lines
}

#[test]
fn entries_of_a_port_are_added_again_alone_and_with_their_link() {
    let node = Node::new();
    let pod = prepared(&node, BRIDGED);
    for words in ENTRIES {
        bridge(&pod.ns, words);
    }
    let before = added(&pod.ns, "eth0");
    assert_eq!(before.len(), ENTRIES.len(), "{before:?}");
    let state = pod.capture();
    node.snapshot();
    bridge(&pod.ns, "fdb del 02:00:00:00:00:99 dev eth0 master");
    bridge(&pod.ns, "mdb del dev br0 port eth0 grp 239.1.1.1 permanent");
    // One that was added later stays.
    bridge(&pod.ns, "fdb add 02:00:00:00:00:97 dev eth0 master static");
    node.netfix("diff")
        .exits(3)
        .stdout_has(&["02:00:00:00:00:99", "239.1.1.1"]);
    node.restore();
    let mut now = added(&pod.ns, "eth0");
    now.retain(|line| !line.contains("02:00:00:00:00:97"));
    assert_eq!(now, before);
    assert_eq!(added(&pod.ns, "eth0").len(), before.len() + 1);
    node.lose_and_reload();
    node.restore();
    pod.assert_same_as(&state);
    assert_eq!(added(&pod.ns, "eth0"), before);
    node.netfix("diff").exits(0);
}

#[test]
fn a_mac_in_the_filter_of_a_link_comes_back_with_it() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode passthru", "");
    pod.ip("link set eth0 up");
    let entries = [
        (&node.ns, "02:77:00:00:00:01"),
        (&pod.ns, "02:77:00:00:00:02"),
        (&pod.ns, "01:00:5e:7f:00:01"),
    ];
    for (ns, mac) in entries {
        bridge(ns, &format!("fdb add {mac} dev eth0 self permanent"));
    }
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    for (ns, mac) in entries {
        assert!(bridge(ns, "fdb show dev eth0").contains(mac), "{mac}");
    }
    // The links on it add their MACs by themselves.
    let text = fs::read_to_string(node.state_dir().join("node.json")).expect("node.json");
    let node_state: Value = serde_json::from_str(&text).expect("JSON");
    let links = node_state["state"]["links"].as_array().expect("links");
    let eth0 = links.iter().find(|link| link["name"] == "eth0");
    assert_eq!(eth0.expect("eth0")["fdb"].as_array().map(Vec::len), Some(1));
    let diff = node.netfix("diff");
    assert_eq!(diff.code, Some(0), "{}", diff.transcript());
}

/// The link with another MAC is a port with learning off; a bridge that is down has its name and MAC of before, and the address.
#[test]
fn a_macvlan_under_a_bridge_for_a_virtual_machine_comes_back() {
    let node = Node::new();
    let lines = [
        "addr flush dev eth0",
        "link set eth0 down",
        "link set eth0 name 1647-nic",
        "link set 1647-nic address 02:00:5a:00:00:f1",
        "link set 1647-nic up",
        "link add k6t-1647 address 02:00:00:00:00:10 type bridge",
        "link set 1647-nic master k6t-1647",
        "link set 1647-nic type bridge_slave learning off",
        "addr add 169.254.75.10/32 dev k6t-1647",
        "link set k6t-1647 up",
        "tuntap add tap1647 mode tap",
        "link set tap1647 master k6t-1647 up",
        "link set tap1647 type bridge_slave isolated on",
        "link add eth0 address 02:00:5a:00:00:01 type bridge",
        "addr add 10.88.1.10/16 dev eth0",
    ];
    all_are_repaired(&node, &[prepared(&node, &lines)], |_, pod| {
        pod.ip("link del 1647-nic");
    });
}

/// A bridge of the node whose uplink is on the parent, with its own MAC, and a pod behind it by a veth.
fn behind<'n>(node: &'n Node, name: &str) -> Pod<'n> {
    let pod = node.pod(name);
    if !node.ns.has_link("br0") {
        for line in [
            "link add br0 type bridge mcast_snooping 1",
            "link add link eth0 name up1 address 02:00:00:88:77:01 type macvlan mode bridge",
            "link set up1 master br0",
            "link set up1 type bridge_slave cost 77",
            "link set up1 up",
            "link set br0 up",
            "addr add 10.99.0.1/24 dev br0",
        ] {
            node.ns.ip(line);
        }
        bridge(&node.ns, "fdb add 02:00:00:00:00:99 dev up1 master static");
        bridge(&node.ns, "mdb add dev br0 port up1 grp 239.1.1.1 permanent");
    }
    node.ns.ip(&format!(
        "link add to{name} type veth peer name eth0 netns {}",
        pod.name()
    ));
    node.ns.ip(&format!("link set to{name} master br0 up"));
    pod.ip("link set eth0 up");
    pod.ip("addr add 10.99.0.9/24 dev eth0");
    pod
}

#[test]
fn the_uplink_of_a_bridge_is_restored_for_pods_that_keep_their_links() {
    let node = Node::new();
    let pod = behind(&node, "web");
    let (host, state) = (node.capture(), pod.capture());
    let before = added(&node.ns, "up1");
    assert_eq!(before.len(), 2, "{before:?}");
    node.snapshot();
    node.netfix("check").has_no("degraded").lacks("CRITICAL");
    node.lose_and_reload();
    let lost = || {
        node.netfix("check")
            .exits(2)
            .errors(&[("degraded", pod.name())])
            .names("degraded", pod.name(), &["uplink"])
    };
    lost();
    // What a snapshot then finds does not make it healthy.
    assert_ne!(node.netfix("snapshot").code, Some(0));
    lost();
    node.netfix("diff").exits(3).stdout_has(&["up1"]);
    node.restore();
    node.assert_same_as(&host);
    pod.assert_same_as(&state);
    assert_eq!(added(&node.ns, "up1"), before);
    node.netfix("check").has_no("degraded").lacks("CRITICAL");
    node.netfix("diff").exits(0);
}

#[test]
fn a_port_that_stays_has_the_lost_uplink_as_its_backup_again() {
    let node = Node::new();
    let _pod = behind(&node, "web");
    for line in [
        "link add v9 type veth peer name x9",
        "link set v9 master br0 up",
    ] {
        node.ns.ip(line);
    }
    for port in ["toweb", "v9"] {
        bridge(&node.ns, &format!("link set dev {port} backup_port up1"));
    }
    node.snapshot();
    node.lose_and_reload();
    node.netfix("diff").exits(3).stdout_has(&["up1"]);
    node.restore();
    let port = node.ns.ip("-d link show dev toweb");
    assert!(port.contains("backup_port up1"), "{port}");
    node.netfix("diff").exits(0);
    // Ports of pods come and go: nothing misses one.
    node.ns.ip("link del v9");
    node.lose_and_reload();
    node.restore();
    node.netfix("diff").exits(0).lacks("v9");
}

#[test]
fn a_pod_whose_bridge_does_not_get_its_uplink_back_is_not_called_restored() {
    let node = Node::new();
    let pod = behind(&node, "web");
    node.snapshot();
    node.lose();
    node.netfix("restore --nic-wait 0")
        .exits(1)
        .names("uplink-lost", pod.name(), &["bridge"]);
    let run = node.netfix_json("restore --nic-wait 0").exits(1);
    assert_eq!(run.pod(&pod)["state"], "failed", "{}", run.transcript());
}

/// Whatever a person or a program did to it on the host: the pod has all of its own.
#[test]
fn the_end_of_a_pair_that_carries_no_packets_is_a_loss_through_snapshots_until_it_is_restored() {
    let node = Node::new();
    let pod = behind(&node, "web");
    node.snapshot();
    for change in [
        "link set toweb down",
        "link set toweb nomaster",
        "link set br0 down",
    ] {
        node.ns.ip(change);
        node.netfix("snapshot").exits(1);
        let run = node.netfix("check").exits(2);
        run.names("degraded", pod.name(), &["on the host"]);
        node.netfix("diff").exits(3).stdout_has(&["host"]);
        node.restore();
        let link = node.ns.ip("-o link show dev toweb");
        assert!(
            link.contains("master br0") && link.contains(",UP"),
            "{change}: {link}"
        );
        node.netfix("check").exits(0);
    }
}

#[test]
fn a_bridge_of_pods_alone_has_no_uplink_to_lose() {
    let node = Node::new();
    let pod = behind(&node, "web");
    node.ns.ip("link del up1");
    let macvlan = node.pod("api").simple();
    node.snapshot();
    node.lose_and_reload();
    node.netfix("check")
        .exits(2)
        .errors(&[("degraded", macvlan.name())]);
    node.restore();
    let run = node.netfix_json("restore").exits(0);
    assert_eq!(run.pod(&pod)["state"], "in-sync", "{}", run.transcript());
}

/// Its MAC and MTU are those of its ports: one that is set would not follow them any more.
#[test]
fn a_bridge_that_follows_its_ports_is_not_given_an_old_mac_or_mtu() {
    let node = Node::new();
    let _pod = behind(&node, "web");
    node.snapshot();
    let other = node.pod("api");
    node.ns.ip(&format!(
        "link add toapi address 02:00:00:00:00:01 mtu 1400 type veth peer name eth0 netns {}",
        other.name()
    ));
    node.ns.ip("link set toapi master br0 up");
    node.lose_and_reload();
    node.restore();
    let bridge = node.ns.ip("link show dev br0");
    assert!(bridge.contains("02:00:00:00:00:01"), "{bridge}");
    assert!(bridge.contains("mtu 1400"), "{bridge}");
    node.ns.ip("link del toapi");
    let bridge = node.ns.ip("link show dev br0");
    assert!(bridge.contains("mtu 1500"), "{bridge}");
}

#[test]
fn what_was_added_to_the_end_of_a_pair_is_named_and_not_recorded() {
    let node = Node::new();
    let _pod = behind(&node, "web");
    let port = "toweb";
    node.netfix("snapshot").exits(0).lacks("not recorded");
    bridge(
        &node.ns,
        &format!("mdb add dev br0 port {port} grp 239.1.1.2 permanent"),
    );
    bridge(
        &node.ns,
        &format!("fdb add 02:00:00:00:00:97 dev {port} master static"),
    );
    let before = added(&node.ns, port);
    assert_eq!(before.len(), 2, "{before:?}");
    node.netfix("snapshot")
        .exits(0)
        .stderr_has(&["1 in bridge fdb, 1 in bridge mdb"]);
    node.lose_and_reload();
    node.restore();
    assert_eq!(added(&node.ns, port), before);
}
