//! Bad moments: a snapshot of the wrong pods at the wrong time, a checkpoint of another boot, unknown pods.

use std::fs;

use crate::common::run::{BINARY, Run};
use crate::common::{Node, Pod};

/// A snapshot of this pod alone does not replace the state of the host.
fn assert_only_the_host_is_degraded(node: &Node, pod: &Pod<'_>) {
    let name = pod.ns.path().display().to_string();
    let mut command = node.ns.exec(BINARY);
    command
        .args(["snapshot", "--netns", &name])
        .arg("--state-dir")
        .arg(node.state_dir());
    Run::of(&mut command)
        .exits(5)
        .errors(&[("degraded", "")])
        .names("degraded", "", &["eth0"]);
}

#[test]
fn a_snapshot_of_an_unharmed_pod_keeps_the_state_of_the_host_without_its_nic_and_with_a_bare_one() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let unharmed = node.pod("plain");
    unharmed.ip("link add veth0 type veth peer name veth1");
    node.snapshot();
    let (host, before) = (node.capture(), pods[0].capture());
    node.lose();
    assert_only_the_host_is_degraded(&node, &unharmed);
    node.reload();
    assert_only_the_host_is_degraded(&node, &unharmed);
    node.restore();
    node.assert_same_as(&host);
    pods[0].assert_same_as(&before);
    node.snapshot();
}

#[test]
fn a_pod_that_lost_a_link_of_any_kind_is_degraded() {
    let node = Node::new();
    let pod = node.pod("plain");
    pod.ip("link add veth0 type veth peer name veth1");
    pod.ip("addr add 10.77.0.1/24 dev veth0");
    pod.ip("link set veth0 up");
    node.snapshot();
    pod.ip("link del veth0");
    node.netfix("snapshot")
        .exits(1)
        .errors(&[("degraded", pod.name())])
        .names("degraded", pod.name(), &["veth "]);
}

#[test]
fn a_checkpoint_of_another_boot_is_not_used_for_a_pod_with_its_cookie() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    // As after a reboot: the old file has another boot id, and the cookie is assigned again.
    node.netfix_elsewhere("/proc/sys/kernel/random/boot_id", "snapshot")
        .exits(0);
    let file = node.checkpoint_of(&pod);
    fs::rename(&file, file.with_file_name("old-pod")).expect("the old boot's checkpoint");
    node.snapshot();
    assert!(file.exists(), "the living pod was taken for the old one");
}

#[test]
fn a_namespace_that_never_had_an_interface_is_not_a_problem_after_the_loss() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    let sandbox = node.pod("sandbox");
    node.snapshot();
    node.lose_and_reload();
    node.netfix("restore")
        .exits(0)
        .errors(&[])
        .lacks(sandbox.name());
    node.netfix("verify").exits(0).errors(&[]);
}
