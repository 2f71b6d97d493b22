//! Pods that the real CNI macvlan plugin created; its CHECK must pass after a restore.

use crate::common::cni::{host_local_ipam, static_ipam};
use crate::common::{Node, Pod};

/// Of host-local addresses, of one and several addresses of each family, and with a running process.
#[test]
fn cni_pods_are_restored_and_pass_the_plugins_check() {
    let node = Node::new();
    let attach = |name: &str, ipam| node.pod_with_dad(name).attach(&ipam);
    let several = static_ipam(&[
        "10.88.2.12/16",
        "10.88.2.9/16",
        "fd88::2:12/64",
        "fd88::2:9/64",
    ]);
    let pods = [
        attach("web", host_local_ipam(&node)),
        attach("api", host_local_ipam(&node)),
        attach("both", static_ipam(&["10.88.2.11/16", "fd88::2:11/64"])),
        attach("several", several),
        attach("busy", static_ipam(&["10.88.2.10/16"])).with_process(),
    ];
    node.assert_all_survive_a_loss(&pods);
    for pod in &pods {
        pod.cni_check()
            .unwrap_or_else(|e| panic!("CHECK of {}: {e}", pod.name()));
    }
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
