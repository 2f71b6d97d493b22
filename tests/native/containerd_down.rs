//! netfix on a real containerd's pods while containerd is stopped or dead.

use std::time::{Duration, Instant};

use super::containerd::{
    CRI, assert_all_lost, assert_named_as_in_cri, captures, checkpoint_names, short_ids,
    stateful_pod,
};
use crate::common::CriNode;

/// The time limit of a command when a runtime does not answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Netfix must refuse a snapshot, quickly, and change nothing in the state directory. One of a few attempts may be slow
/// on a busy machine.
fn is_refused(node: &CriNode, words: &str) {
    let files = node.node.state_files();
    let is_soon = || {
        let begin = Instant::now();
        let run = node
            .netfix(words)
            .exits(4)
            .errors(&[("runtime-unreachable", "")])
            .names("runtime-unreachable", "", &["containerd.sock"]);
        assert_eq!(
            files,
            node.node.state_files(),
            "the state folder was changed\n{}",
            run.transcript()
        );
        begin.elapsed() < TIMEOUT
    };
    assert!(
        (0..3).any(|_| is_soon()),
        "netfix {words} took longer than {TIMEOUT:?} each time"
    );
}

#[test]
fn a_snapshot_is_refused_while_containerd_does_not_answer_and_the_next_one_is_complete() {
    let mut node = CriNode::new();
    let pods = node.pods(2);
    let snapshot = format!("snapshot {CRI}");
    node.netfix(&snapshot).exits(0);
    let names = checkpoint_names(&node);
    assert_eq!(names, short_ids(&pods));
    pods[0].ns.ip("link set eth0 mtu 1400");
    // First it hangs; then it is dead, and its socket is left.
    node.freeze();
    is_refused(&node, "snapshot");
    node.kill();
    is_refused(&node, &snapshot);
    is_refused(&node, "snapshot");
    node.start();
    let run = node.netfix(&format!("{snapshot} -o json")).exits(0);
    for pod in &pods {
        assert_named_as_in_cri(&node, pod, &run);
    }
    assert_eq!(names, checkpoint_names(&node));
}

#[test]
fn pods_are_restored_beside_a_deleted_one_while_containerd_is_dead_and_it_finds_them_ready() {
    let mut node = CriNode::new();
    let deleted = node.run(stateful_pod("0b8c61d2-1111-4000-8000-000000000001"));
    let pods = node.pods(2);
    let before = captures(&node, &pods);
    node.netfix("snapshot").exits(0);
    let gone = deleted.short_id().to_owned();
    node.remove(deleted);
    let sandboxes = node.cri().list();
    node.kill();
    node.node.lose_and_reload();
    assert_all_lost(&node, &pods);
    // Without the runtime, nothing shows whether the pod was recreated. This must not block other pods.
    node.netfix("restore")
        .exits(0)
        .names("netns-gone", &gone, &[])
        .names("runtime-unreachable", "", &["containerd.sock"]);
    node.assert_same_as(&pods, &before);
    node.start();
    assert_eq!(sandboxes, node.cri().list(), "a sandbox was made anew");
    node.assert_cni_check(&pods);
}
