//! What stays, or is to stay, when a NIC goes and when it flaps.

use super::{assert_settled, comes_back_with_late_carrier, prepared, restore_with_late_carrier};
use crate::common::{Node, Pod, background::wait_until, tool};

fn is_down(pod: &Pod<'_>) -> bool {
    pod.ip("link show dev eth0").contains("state DOWN")
}

fn hold_down(pod: &Pod<'_>) {
    pod.ip("link set eth0 protodown on");
    assert!(wait_until(|| is_down(pod)));
}

#[test]
fn proxy_entries_outlive_a_loss_of_carrier_after_a_restore() {
    let node = Node::new();
    let pod = prepared(
        &node,
        &[
            "neigh add proxy 10.88.0.77 dev eth0",
            "-6 addr add fd10::5/64 dev eth0",
            "neigh add proxy fd10::77 dev eth0",
        ],
    );
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    let before = pod.ip("neigh show proxy");
    for carrier in ["down", "up"] {
        node.gateway.ip(&format!("link set up0 {carrier}"));
        let has_it = || pod.ip("link show dev eth0").contains("LOWER_UP") == (carrier == "up");
        assert!(wait_until(has_it));
    }
    assert_eq!(pod.ip("neigh show proxy"), before);
    assert!(before.contains("fd10::77"), "{before}");
}

#[test]
fn a_link_that_is_held_down_stays_so_when_its_nic_gets_carrier() {
    let node = Node::new();
    let pod = node.pod("web");
    // Without carrier no IPv6 address becomes usable.
    pod.ns.set_sysctl("ipv6/conf/default/disable_ipv6", "1");
    let pod = pod.simple();
    hold_down(&pod);
    let before = pod.capture();
    // It is named before a loss.
    let run = node.snapshot().errors(&[]);
    run.names("unsupported", pod.name(), &["eth0", "protodown"]);
    restore_with_late_carrier(&node, "", || pod.has_eth0());
    pod.assert_same_as(&before);
    // A flap of the NIC does the same.
    node.ns.ip("link set eth0 down");
    node.ns.ip("link set eth0 up");
    assert!(wait_until(|| !is_down(&pod)));
    node.restore();
    pod.assert_same_as(&before);
    assert_settled(&node);
}

#[test]
fn a_link_without_carrier_gets_its_route_for_groups_back() {
    let node = Node::new();
    let pod = prepared(&node, &["-6 addr add fd10::5/64 dev eth0"]);
    hold_down(&pod);
    node.snapshot();
    let groups = || pod.ip("-6 route show table local type multicast");
    let before = groups();
    pod.ip("-6 route del multicast ff00::/8 dev eth0 table local");
    node.restore();
    assert_eq!(groups(), before);
    assert!(before.contains("ff00::/8"), "{before}");
    assert_settled(&node);
}

#[test]
fn managed_neighbours_come_back_when_carrier_comes_late() {
    let node = Node::new();
    let pod = prepared(
        &node,
        &[
            "-6 addr add fd88::10/64 dev eth0",
            "neigh add fd88::50 dev eth0 managed",
            "neigh add 10.88.0.50 dev eth0 managed",
        ],
    );
    comes_back_with_late_carrier(&node, &pod);
}

#[test]
fn a_filter_whose_target_was_lost_sends_to_it_again() {
    let node = Node::new();
    let pod = prepared(&node, &["link add va type veth peer name vb"]);
    pod.ip("link set va up");
    pod.ip("link set vb up");
    pod.tc("qdisc add dev va clsact");
    for filter in [
        "pref 5 protocol all u32 match u32 0 0",
        "pref 7 protocol ip u32 match u32 0 0",
    ] {
        let action = "action mirred egress redirect dev eth0";
        pod.tc(&format!("filter add dev va ingress {filter} {action}"));
    }
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    let harmed = before.differences(&pod.capture());
    assert!(
        harmed.iter().any(|it| it.contains("traffic")),
        "{harmed:#?}"
    );
    node.restore();
    pod.assert_same_as(&before);
    assert_settled(&node);
}

#[test]
fn an_action_without_a_filter_that_sends_to_a_lost_link_is_named_before_a_loss() {
    let node = Node::new();
    let pod = prepared(&node, &["link add va type veth peer name vb"]);
    pod.tc("actions add action mirred egress redirect dev va index 6");
    node.snapshot();
    pod.tc("actions add action mirred egress redirect dev eth0 index 7");
    let run = node.netfix("snapshot").exits(5);
    run.names(
        "unsupported",
        pod.name(),
        &["action mirred index 7 to eth0"],
    );
    node.lose_and_reload();
    let run = node.netfix("restore").exits(5);
    run.names(
        "unsupported",
        pod.name(),
        &["action mirred index 7 to eth0"],
    );
}

#[test]
fn a_filter_of_a_host_link_that_sends_to_a_nic_is_named_before_and_after_a_loss() {
    let node = Node::new();
    let _pod = prepared(&node, &[]);
    node.ns.ip("link add br7 type bridge");
    node.ns.ip("link set br7 up");
    let tc = |words: &str| tool::run(node.ns.exec("tc").args(words.split(' ')));
    tc("qdisc add dev br7 clsact");
    tc(
        "filter add dev br7 ingress pref 5 protocol all u32 match u32 0 0 action mirred egress redirect dev eth0",
    );
    let named = ["br7", "u32", "eth0"];
    node.netfix("snapshot")
        .exits(5)
        .names("unsupported", "", &named);
    node.netfix("check")
        .exits(2)
        .names("unsupported", "", &named);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .names("unsupported", "", &named);
}
