//! Fewer open files than pods: every pod is found, recorded, checked and restored all the same.

use crate::common::{GATEWAY4, Node, Pod, Run};

const PODS: usize = 60;

fn limited(node: &Node, files: u32, words: &str) -> Run {
    let limit = format!("--nofile={files}:{files}");
    Run::of(&mut node.netfix_command(&["timeout", "600", "prlimit", &limit], words))
}

#[test]
fn sixty_pods_under_a_small_limit_of_open_files_are_all_restored() {
    let node = Node::new();
    let pods = node.simple_pods(PODS);
    let some = || pods.iter().step_by(7);
    let before: Vec<_> = some().map(Pod::capture).collect();
    let files = 40;
    limited(&node, files, "snapshot")
        .exits(0)
        .stdout_has(&["60 selected pods"]);
    for pod in &pods {
        let stored = crate::common::kept::json(&node.stored_of(pod));
        let identity = &stored["netfix"]["identity"]["cookie"];
        assert!(identity.is_u64(), "{identity} of {}", pod.name());
    }
    limited(&node, files, "check")
        .exits(0)
        .stdout_has(&["60 of 60"]);
    node.lose_and_reload();
    assert!(!pods.iter().any(Pod::has_eth0), "a pod kept its eth0");
    limited(&node, files, "plan")
        .exits(0)
        .stdout_has(&["60 selected pods"]);
    limited(&node, files, "restore")
        .exits(0)
        .stdout_has(&["60 selected pods restored"]);
    for (pod, before) in some().zip(&before) {
        pod.assert_same_as(before);
    }
    assert!(pods.iter().all(Pod::has_eth0), "a pod is not restored");
    let words = format!("verify --answer-wait 10s --ping {GATEWAY4}");
    limited(&node, files, &words)
        .exits(0)
        .stdout_has(&["60 selected pods"]);
    node.netfix("diff").exits(0);

    // Some of them, without probes.
    node.lose_and_reload();
    let [first, second] = [0, 7].map(|at: usize| pods[at].name());
    let words = format!("restore --conflict-probe off --pod {first} --pod {second}");
    limited(&node, 64, &words)
        .exits(0)
        .stdout_has(&["2 selected pods restored"]);
    for (pod, before) in some().zip(&before).take(2) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_namespace_whose_identity_cannot_be_read_keeps_its_checkpoint() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let stored = || {
        pods.iter()
            .map(|pod| node.stored_of(pod))
            .collect::<Vec<_>>()
    };
    let before = stored();
    let wrapper = crate::common::run::injecting("inject=getsockopt:error=EMFILE");
    let names = [pods[0].name(), pods[1].name()].map(|name| ("unreadable", name));
    let refused = |words: &str| Run::of(&mut node.netfix_command(&wrapper, words)).errors(&names);
    refused("snapshot").exits(1);
    assert!(stored() == before, "a checkpoint was replaced");
    node.lose_and_reload();
    refused("restore").exits(1);
    node.restore();
}
