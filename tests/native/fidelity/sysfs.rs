//! Settings that only files in `/sys/class/net` have.

use crate::common::{Node, Pod};

/// Runs a command in the folder of the pod's `eth0`; `ip netns exec` mounts a sysfs of the pod.
fn in_folder(pod: &Pod<'_>, line: &str) -> String {
    let line = format!("cd /sys/class/net/eth0 && {line}");
    let mut shell = pod.ns.exec("sh");
    let output = shell.args(["-c", &line]).output().expect("ip netns exec");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const FILES: &str =
    "grep . gro_flush_timeout napi_defer_hard_irqs queues/rx-*/rps_* queues/tx-*/xps_*";

fn pod_with_settings(node: &Node) -> (Pod<'_>, String) {
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "numrxqueues 2 numtxqueues 2");
    let set = [
        "echo 2 > queues/rx-1/rps_cpus",
        "echo 64 > queues/rx-0/rps_flow_cnt",
        "echo 1 > queues/tx-1/xps_cpus",
        "echo 20000 > gro_flush_timeout",
        "echo 2 > napi_defer_hard_irqs",
    ];
    let fresh = in_folder(&pod, FILES);
    for line in set {
        in_folder(&pod, line);
    }
    pod.up_with_address();
    let files = in_folder(&pod, FILES);
    assert_ne!(files, fresh);
    (pod, files)
}

#[test]
fn packet_steering_and_napi_settings_are_repaired_in_place_and_come_back() {
    let node = Node::new();
    let (pod, before) = pod_with_settings(&node);
    node.snapshot();
    node.assert_rehearsed(1);
    let index = pod.ns.index_of("eth0");
    in_folder(&pod, "echo 0 > queues/rx-1/rps_cpus");
    node.netfix("diff").exits(3);
    node.restore();
    assert_eq!(in_folder(&pod, FILES), before);
    assert_eq!(pod.ns.index_of("eth0"), index);
    node.lose_and_reload();
    node.restore();
    assert_eq!(in_folder(&pod, FILES), before);
    node.netfix("diff").exits(0);
}
