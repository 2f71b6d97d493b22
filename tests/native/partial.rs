//! If a part is missing, netfix changes only that part; if nothing is missing, nothing.

use crate::common::background::Monitor;
use crate::common::cni::static_ipam;
use crate::common::{Node, Pod};

fn captures(pods: &[Pod<'_>]) -> Vec<crate::common::capture::Capture> {
    pods.iter().map(Pod::capture).collect()
}

#[test]
fn a_second_restore_changes_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = captures(&pods);
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    let monitor = Monitor::of(&pods[0].ns, &node);
    let on_node = Monitor::of(&node.ns, &node);
    let trace = node.netfix_traced("restore");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    assert!(
        trace.netlink_changes().is_empty(),
        "a second restore requested {:#?}",
        trace.netlink_changes()
    );
    assert_eq!(monitor.heard(), "", "the second restore changed the pod");
    assert_eq!(on_node.heard(), "", "the second restore changed the node");
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_restore_without_loss_changes_nothing() {
    let node = Node::new();
    let pod = node
        .pod_with_dad("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    let (before, host) = (pod.capture(), node.capture());
    node.snapshot();
    let (in_pod, on_node) = (Monitor::of(&pod.ns, &node), Monitor::of(&node.ns, &node));
    let trace = node.netfix_traced("restore");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    assert!(
        trace.netlink_queries() > 0,
        "the trace shows no netlink question, so it would show no change either"
    );
    assert!(
        trace.netlink_changes().is_empty(),
        "nothing was lost, yet: {:#?}",
        trace.netlink_changes()
    );
    assert!(
        trace.writes_outside(&[&node.state_dir()]).is_empty(),
        "{:#?}",
        trace.writes_outside(&[&node.state_dir()])
    );
    assert_eq!(in_pod.heard(), "", "the restore changed the pod");
    assert_eq!(on_node.heard(), "", "the restore changed the node");
    pod.assert_same_as(&before);
    node.assert_same_as(&host);
}

#[test]
fn snapshot_plan_diff_and_list_change_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let monitor = Monitor::of(&pods[0].ns, &node);
    let on_node = Monitor::of(&node.ns, &node);
    for words in ["snapshot", "plan", "diff", "list"] {
        let trace = node.netfix_traced(words);
        assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
        assert!(
            trace.netlink_changes().is_empty(),
            "{words} requested {:#?}",
            trace.netlink_changes()
        );
    }
    assert_eq!(monitor.heard(), "", "the pod was changed");
    assert_eq!(on_node.heard(), "", "the node was changed");
}

#[test]
fn a_pod_repaired_by_hand_stays_unchanged_and_the_others_are_restored() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before = captures(&pods);
    let index = before[1].link("eth0")["ifindex"].clone();
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    pods[1].macvlan("mode bridge", &format!("index {index}"));
    pods[1].up_with_address();
    let monitor = Monitor::of(&pods[1].ns, &node);
    node.restore();
    assert_eq!(monitor.heard(), "", "the pod that was right was changed");
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn an_interface_created_by_hand_is_completed_and_stays_the_same_device() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    let before = pod.capture();
    let index = before.link("eth0")["ifindex"].clone();
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    pod.macvlan("mode bridge", &format!("index {index}"));
    let monitor = Monitor::of(&pod.ns, &node);
    node.restore();
    let heard = monitor.heard();
    assert!(
        !heard.contains("Deleted"),
        "the restore deleted something:\n{heard}"
    );
    pod.assert_same_as(&before);
}

#[test]
fn an_interface_created_by_hand_with_another_index_is_kept_and_reported() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    pod.macvlan("mode bridge", "index 4321");
    let run = node.netfix("restore");
    let link = pod.ip("-o addr show dev eth0");
    assert!(
        link.contains("4321: eth0") && link.contains(&pod.address()),
        "{link}\n{}",
        run.transcript()
    );
    assert!(
        pod.ip("route").contains("default via 10.88.0.1"),
        "no default route\n{}",
        run.transcript()
    );
    run.exits(0)
        .errors(&[])
        .names("ifindex-differs", pod.name(), &["4321"]);
}

#[test]
fn additions_to_a_pod_are_kept_and_reported() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let lost = pods[1].capture();
    node.snapshot();
    pods[0].ip("addr add 10.88.99.99/16 dev eth0");
    pods[0].ip("route add 198.51.100.0/24 via 10.88.0.1");
    pods[0].ip("rule add from 10.88.99.99 table 100 priority 1000");
    let with_extras = pods[0].capture();
    pods[1].ip("link del eth0");
    node.restore()
        .errors(&[])
        .names("surplus", pods[0].name(), &["10.88.99.99"])
        .names("surplus", pods[0].name(), &["198.51.100.0/24"]);
    pods[0].assert_same_as(&with_extras);
    pods[1].assert_same_as(&lost);
}

#[test]
fn additions_that_survived_the_loss_are_kept() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    pod.ip("route add blackhole 192.0.2.0/24");
    pod.ip("addr add 10.77.7.7/32 dev lo");
    let with_extras = pod.capture();
    node.lose_and_reload();
    node.restore();
    pod.assert_same_as(&with_extras);
}
