//! The `DaemonSets`: what they write on the host, while pods come and go and lose their network.

use std::fs;

use super::{checkpoint, checkpoints, in_cgroups, on_host, with_image};
use crate::common::background::wait_until;
use crate::common::cri::PodSpec;
use crate::common::manifest::Manifest;
use crate::common::workload::Workload;
use crate::common::{CriNode, CriPod};
use crate::containerd::{assert_all_lost, captures, short_ids};

/// Replaces the interval of the manifests.
const HASTY: [&[(&str, &str)]; 2] = [
    &[("--every, 1h", "--every, 1s")],
    &[("--every, 5m", "--every, 1s")],
];

fn wait_for_checkpoints(node: &CriNode, pods: &[CriPod], workload: &Workload<'_>) {
    let wanted = short_ids(pods);
    let come = wait_until(|| checkpoints(node) == wanted);
    assert!(
        come,
        "{:?} instead of {wanted:?}\n{}",
        checkpoints(node),
        workload.log()
    );
}

#[test]
fn the_snapshots_follow_the_pods_that_come_and_go() {
    let node = with_image(CriNode::new());
    let mut pods = node.pods(2);
    in_cgroups(&node, &pods);
    let snapshot = Workload::start(&node, &Manifest::read("snapshot.yaml", HASTY[0]), &[]);
    wait_for_checkpoints(&node, &pods, &snapshot);
    for pod in &pods {
        let file = checkpoint(&node, pod.short_id());
        let named = &file["netfix"]["pod"];
        assert_eq!(named["sandbox"], *pod.sandbox.id, "{named}");
        assert_eq!(named["source"], "cri", "{named}");
        assert_eq!(named["name"], *pod.sandbox.name, "{named}");
    }
    // Its namespace is mounted after the container has started.
    pods.push(node.run(PodSpec::new(
        "shop",
        "late",
        "7d1c2a50-88aa-4f31-9b6e-0000000000ff",
    )));
    wait_for_checkpoints(&node, &pods, &snapshot);
    // The container keeps no namespace of a deleted pod.
    let gone = pods.remove(0);
    let file = fs::metadata(gone.ns.path()).expect("its namespace");
    let inode = std::os::unix::fs::MetadataExt::ino(&file);
    node.remove(gone);
    wait_for_checkpoints(&node, &pods, &snapshot);
    let is_mounted = || {
        let mounts = fs::read_to_string(node.machine.proc_file(snapshot.pid(), "mountinfo"))
            .expect("its mounts");
        mounts.contains(&format!("net:[{inode}]"))
    };
    assert!(
        wait_until(|| !is_mounted()),
        "the container keeps the namespace"
    );
    assert!(snapshot.is_running(), "{}", snapshot.log());
    // What the pod wrote is what the host's netfix restores.
    let before = captures(&node, &pods);
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    on_host(&node, "restore --lock-wait 20s").exits(0);
    node.assert_same_as(&pods, &before);
    snapshot.delete();
    assert!(
        pods.iter()
            .all(|pod| node.cri().status(&pod.sandbox.id).is_ready)
    );
}

#[test]
fn the_check_writes_metrics_that_show_a_loss_and_its_end() {
    let node = with_image(CriNode::new());
    let pods = node.pods(2);
    in_cgroups(&node, &pods);
    let before = captures(&node, &pods);
    on_host(&node, "snapshot").exits(0);
    let manifest = Manifest::read("check.yaml", HASTY[1]);
    let check = Workload::start(&node, &manifest, &[]);
    let words = manifest.words("args");
    let file = words.last().expect("the file of the metrics");
    let wait_for = |lines: &[&str]| {
        let read = || fs::read_to_string(node.machine.outside(file)).unwrap_or_default();
        let has = || {
            let text = read();
            lines
                .iter()
                .all(|line| text.lines().any(|one| one == *line))
        };
        assert!(wait_until(has), "no {lines:?}\n{}\n{}", read(), check.log());
    };
    wait_for(&["netfix_check_status 0", "netfix_pods{state=\"in-sync\"} 2"]);
    node.node.lose_and_reload();
    wait_for(&["netfix_check_status 2", "netfix_pods{state=\"degraded\"} 2"]);
    on_host(&node, "restore").exits(0);
    node.assert_same_as(&pods, &before);
    wait_for(&["netfix_check_status 0", "netfix_pods{state=\"in-sync\"} 2"]);
    assert!(check.is_running());
    check.delete();
}
