//! The host itself: its devices come back also where no pod needs them, and what cannot come back is named.

use std::thread;
use std::time::Duration;

use crate::common::Node;
use crate::common::run::Run;

/// A link of the host on its NIC, with an address and a route.
fn with_own_link(node: &Node) {
    node.ns
        .ip("link add link eth0 name mv0 address 02:00:00:00:07:01 type macvlan mode bridge");
    node.ns.ip("link set mv0 up");
    node.ns.ip("addr add 172.30.7.2/24 dev mv0");
    node.ns
        .ip("route add 198.51.100.0/24 via 172.30.7.1 dev mv0");
}

/// Another NIC of the host, under no pod, with a link on it.
fn other_nic(node: &Node) {
    let gateway = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth1 address 02:00:00:00:08:01 type veth peer name up1 netns {gateway}"
    ));
    node.gateway.ip("link set up1 up");
}

fn last(run: &Run) -> &str {
    run.out.lines().last().unwrap_or_default()
}

#[test]
fn a_host_without_pods_gets_everything_on_its_nic_back() {
    let node = Node::new();
    with_own_link(&node);
    let before = node.capture();
    node.netfix_alone("snapshot").exits(0);
    node.netfix_alone("check").exits(0);
    node.lose_and_reload();
    node.netfix_alone("check").exits(2);
    let diff = node.netfix_alone("diff").exits(3);
    assert!(diff.out.contains("mv0"), "{}", diff.transcript());
    let restored = node.netfix_alone("restore").exits(0);
    assert!(
        last(&restored).starts_with("host restored in "),
        "{}",
        restored.transcript()
    );
    node.assert_same_as(&before);
    for command in ["restore", "diff"] {
        let run = node.netfix_alone(command).exits(0);
        assert!(
            last(&run).contains("the host is correct; no pod with a checkpoint is running"),
            "{}",
            run.transcript()
        );
    }
    node.netfix_alone("check").exits(0);
}

#[test]
fn a_host_that_has_no_record_is_not_called_correct() {
    let node = Node::new();
    for (command, exit) in [("restore", 4), ("diff", 4)] {
        let run = node.netfix_alone(command).exits(exit);
        assert!(!run.out.contains("correct"), "{}", run.transcript());
    }
}

#[test]
fn a_nic_that_no_pod_needs_is_restored_with_the_whole_host_and_named_otherwise() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    other_nic(&node);
    node.ns.ip("link set eth1 up");
    node.ns
        .ip("link add link eth1 name mv1 address 02:00:00:00:08:02 type macvlan mode bridge");
    node.ns.ip("link set mv1 up");
    node.ns.ip("addr add 172.30.8.2/24 dev mv1");
    let pod = pods[0].capture();
    node.snapshot();
    let run = node.netfix("diff").exits(0);
    assert!(
        last(&run).contains("1 selected pod and the host's links under them are correct"),
        "{}",
        run.transcript()
    );
    node.ns.ip("link del eth1");
    other_nic(&node);
    node.lose_and_reload();
    // The selected pods' part of the host.
    node.restore().names("not-selected", "", &["eth1"]);
    pods[0].assert_same_as(&pod);
    assert!(!node.ns.has_link("mv1"));
    node.netfix("diff").names("not-selected", "", &["eth1"]);
    node.netfix("check").exits(2);
    // The whole host.
    node.netfix_alone("restore").exits(0);
    let own = node.ns.ip("-o addr show dev mv1");
    assert!(own.contains("172.30.8.2/24"), "{own}");
    let own = node.ns.ip("-o link show dev mv1");
    assert!(
        own.contains("UP") && own.contains("02:00:00:00:08:02"),
        "{own}"
    );
    node.netfix("restore").exits(0).lacks("eth1");
}

#[test]
fn what_a_restore_leaves_of_the_host_is_drift_as_in_a_pod() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let pod = pods[0].capture();
    node.ns.ip("-6 route add fd77::/64 dev eth0 expires 2");
    node.snapshot();
    node.lose_and_reload();
    thread::sleep(Duration::from_secs(2));
    node.restore().names("unsupported", "", &["fd77::/64"]);
    pods[0].assert_same_as(&pod);
    assert!(!node.ns.ip("-6 route").contains("fd77::/64"));
    node.netfix("diff")
        .exits(3)
        .names("unsupported", "", &["fd77::/64"]);
}

#[test]
fn what_the_host_loses_for_good_is_an_error_before_the_loss_and_after_it() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    // On the other end of the wire, which goes with the NIC.
    node.gateway
        .ip("link add mv7 link up0 type macvlan mode bridge");
    node.gateway
        .ip(&format!("link set mv7 netns {}", node.ns.name()));
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("unsupported", "")])
        .names("unsupported", "", &["macvlan mv7"]);
    node.netfix("check")
        .exits(2)
        .names("unsupported", "", &["mv7"]);
    node.netfix("diff")
        .exits(0)
        .names("unsupported", "", &["mv7"]);
    node.lose_and_reload();
    assert!(!node.ns.has_link("mv7"), "the link outlived its parent");
    let run = node
        .netfix("restore")
        .exits(5)
        .names("unsupported", "", &["mv7"]);
    let last = last(&run);
    assert!(
        last.contains("partly restored in ") && last.contains("1 not (mv7)"),
        "{}",
        run.transcript()
    );
    assert!(pods[0].has_eth0());
    for command in ["restore", "diff"] {
        node.netfix(command)
            .exits(5)
            .names("unsupported", "", &["mv7"]);
    }
    // No snapshot turns that into health.
    node.netfix("check")
        .exits(2)
        .names("unsupported", "", &["mv7"]);
    node.netfix("snapshot").names("degraded", "", &["mv7"]);
    node.netfix("check")
        .exits(2)
        .names("unsupported", "", &["mv7"]);
    node.netfix("snapshot --accept host").exits(0);
    node.netfix("check").exits(0);
}

#[test]
fn an_object_of_the_host_that_is_removed_without_a_loss_is_no_finding() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.gateway
        .ip("link add mv7 link up0 type macvlan mode bridge");
    node.gateway
        .ip(&format!("link set mv7 netns {}", node.ns.name()));
    node.netfix("snapshot").exits(5);
    node.ns.ip("link del mv7");
    node.netfix("check").exits(0);
    node.netfix("restore").exits(0);
    node.snapshot();
}
