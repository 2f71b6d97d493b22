//! Pods that the real CNI macvlan plugin created; its CHECK must pass after a restore.

use crate::common::cni::{host_local_ipam, static_ipam};
use crate::common::{Node, Pod};

/// Snapshot, loss, restore; then the plugin's CHECK passes, and every pod and the node have their former state.
fn assert_every_pod_is_restored(node: &Node, pods: &[Pod<'_>]) {
    node.assert_all_survive_a_loss(pods);
    for pod in pods {
        pod.cni_check()
            .unwrap_or_else(|e| panic!("CHECK of {}: {e}", pod.name()));
    }
}

#[test]
fn cni_pods_are_restored_and_pass_the_plugins_check() {
    let node = Node::new();
    let pods =
        ["web", "api", "db"].map(|name| node.pod_with_dad(name).attach(&host_local_ipam(&node)));
    assert_every_pod_is_restored(&node, &pods);
}

#[test]
fn a_dual_stack_cni_pod_is_restored_and_passes_the_plugins_check() {
    let node = Node::new();
    let pod = node
        .pod_with_dad("web")
        .attach(&static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]));
    assert_every_pod_is_restored(&node, &[pod]);
}

#[test]
fn a_cni_pod_with_several_addresses_is_restored() {
    let node = Node::new();
    let ipam = static_ipam(&[
        "10.88.2.10/16",
        "10.88.2.9/16",
        "fd88::2:10/64",
        "fd88::2:9/64",
    ]);
    let pod = node.pod_with_dad("web").attach(&ipam);
    assert_every_pod_is_restored(&node, &[pod]);
}

#[test]
fn without_a_selection_all_pods_of_the_machine_are_restored() {
    let node = Node::new();
    let pods = ["web", "api"].map(|name| node.pod(name).attach(&host_local_ipam(&node)));
    let before = pods.each_ref().map(Pod::capture);
    node.netfix_alone("snapshot").exits(0);
    node.lose_and_reload();
    node.netfix_alone("restore").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_cni_pod_with_a_running_process_is_restored() {
    let node = Node::new();
    let pod = node
        .pod("web")
        .attach(&static_ipam(&["10.88.2.10/16"]))
        .with_process();
    assert_every_pod_is_restored(&node, &[pod]);
}
