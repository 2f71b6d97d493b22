//! The parents of the interfaces.

use serde_json::{Value, json};

use super::{Subject, macvlan, restore, with, words};
use crate::common::Node;
use crate::common::cni::static_ipam;
use crate::common::libcni::Network;
use crate::common::node::PARENT_MAC;

fn on<'n>(node: &'n Node, master: Option<&str>, address: &str) -> Network<'n> {
    let plugin = macvlan(&static_ipam(&[address]));
    Network::new(
        node,
        "lab",
        &[with(
            plugin,
            &json!({"master": master.map_or(Value::from(""), Value::from)}),
        )],
    )
}

/// A second device of the node; `link del` removes it.
fn second_device(node: &Node) {
    let gateway = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth1 address 02:00:00:88:00:12 type veth peer name up1 address 02:00:00:88:00:11 netns {gateway}"
    ));
    node.gateway.ip("link set up1 up");
    node.ns.ip("link set eth1 up");
}

#[test]
fn pods_on_several_masters_are_restored_each_on_its_own() {
    let node = Node::new();
    second_device(&node);
    let pods = [
        Subject::new(&node, "a", &[&on(&node, Some("eth0"), "10.88.2.10/16")]),
        Subject::new(&node, "b", &[&on(&node, Some("eth1"), "10.88.2.20/16")]),
        Subject::new(
            &node,
            "c",
            &[
                &on(&node, Some("eth1"), "10.88.2.30/16"),
                &Network::new(&node, "l2", &[macvlan(&json!({}))]),
            ],
        ),
    ];
    node.ns.ip("link del eth1");
    node.lose_and_reload();
    second_device(&node);
    // The option is for interfaces without a parent; these all have one.
    let run = node.netfix(&words(&node, "restore --parent eth0")).exits(0);
    for it in &pods {
        it.assert_back(&run);
    }
}

#[test]
fn a_missing_master_is_reported_and_the_other_pods_are_restored() {
    let node = Node::new();
    second_device(&node);
    let lost = Subject::new(&node, "a", &[&on(&node, Some("eth1"), "10.88.2.10/16")]);
    let back = Subject::new(&node, "b", &[&on(&node, Some("eth0"), "10.88.2.20/16")]);
    node.ns.ip("link del eth1");
    node.lose_and_reload();
    let run = node
        .netfix(&words(&node, "restore --nic-wait 1s"))
        .exits(5)
        .errors(&[("parent-missing", ""), ("parent-missing", lost.pod.name())])
        .names("parent-missing", "", &["eth1"])
        .names("parent-missing", lost.pod.name(), &["eth1"]);
    back.assert_back(&run);
    assert!(!lost.pod.has_eth0());
    second_device(&node);
    let run = restore(&node).exits(0);
    lost.assert_back(&run);
}

#[test]
fn restore_waits_for_a_late_nic_and_keeps_its_mtu() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    node.lose();
    let mut command =
        node.netfix_command(&["timeout", "600"], &words(&node, "restore --nic-wait 30s"));
    let running = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let running = running.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    std::thread::sleep(std::time::Duration::from_millis(500));
    let gateway = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth0 mtu 1600 address {PARENT_MAC} type veth peer name up0 netns {gateway}"
    ));
    node.give_carrier();
    let output = running.wait_with_output().expect("netfix's end");
    let run = crate::common::Run::from_output(format!("{command:?}"), &output).exits(0);
    // The MTU is not recorded anywhere, so the device keeps its new MTU, and the pod has the same.
    let mtu = |capture: &crate::common::capture::Capture| capture.link("eth0")["mtu"].clone();
    assert_eq!(
        (mtu(&node.capture()), mtu(&it.pod.capture())),
        (json!(1600), json!(1600)),
        "{}",
        run.transcript()
    );
    it.attached[0]
        .check(&node, &it.pod)
        .unwrap_or_else(|e| panic!("CHECK: {e}"));
}

#[test]
fn without_a_master_the_user_or_the_hosts_default_route_selects_the_parent() {
    let node = Node::new();
    let it = Subject::new(&node, "web", &[&on(&node, None, "10.88.2.10/16")]);
    node.lose_and_reload();
    // The default route is gone and not recorded anywhere.
    let run = restore(&node)
        .exits(1)
        .errors(&[("parent-missing", it.pod.name())])
        .names("parent-missing", it.pod.name(), &["--parent"]);
    assert!(!it.pod.has_eth0(), "{}", run.transcript());
    node.netfix(&words(&node, "restore --parent eth7"))
        .exits(4)
        .errors(&[("parent-missing", "")])
        .names("parent-missing", "", &["eth7"]);
    let run = node.netfix(&words(&node, "restore --parent eth0")).exits(0);
    // CHECK would expect the default route, which is not recorded anywhere.
    assert!(
        it.unexplained().is_empty(),
        "{:#?}\n{}",
        it.unexplained(),
        run.transcript()
    );
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    node.ns.ip("route add default via 10.88.0.1");
    let run = restore(&node)
        .exits(0)
        .errors(&[])
        .names("partial-source", "", &["eth0"]);
    it.assert_back(&run);
}

#[test]
fn a_stored_node_state_supplements_the_cache() {
    let node = Node::new();
    let it = Subject::new(&node, "web", &[&on(&node, None, "10.88.2.10/16")]);
    let host = node.capture();
    node.snapshot();
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    it.assert_back(&run);
    node.assert_same_as(&host);
}
