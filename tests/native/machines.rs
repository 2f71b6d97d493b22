//! A state directory from another machine or another boot, or shared by two machines.

use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run};

const MACHINE: &str = "/etc/machine-id";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The texts of the checkpoints that a restore would read.
fn checkpoints(node: &Node) -> Vec<String> {
    let folder = node.state_dir().join("checkpoints");
    let files = node
        .state_files()
        .into_iter()
        .filter(|(path, _)| path.starts_with(&folder));
    files.map(|(_, text)| text).collect()
}

fn identity(checkpoint: &str) -> Value {
    let value: Value = serde_json::from_str(checkpoint).expect("a checkpoint is JSON");
    value["netfix"]["node"].clone()
}

fn is_kept(node: &Node, text: &str) -> bool {
    node.state_files().iter().any(|(_, kept)| kept == text)
}

/// The pods have the same names, paths, inodes, even cookies, and nothing else in common.
#[test]
fn a_state_directory_of_another_machine_is_kept_in_a_generation() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_elsewhere(MACHINE, "snapshot").exits(0);
    let old = checkpoints(&node);
    node.lose_and_reload();
    // What they had is unknown here, and that they had something is not.
    node.netfix("snapshot").exits(1).errors(&[
        ("checkpoint-missing", pods[0].name()),
        ("checkpoint-missing", pods[1].name()),
    ]);
    node.ns.ip("link set eth0 up");
    for pod in &pods {
        pod.macvlan("mode bridge", "");
        pod.up_with_address();
    }
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot().has_no("degraded");
    let mine = checkpoints(&node);
    assert_eq!(mine.len(), pods.len(), "{mine:#?}");
    for text in &old {
        assert!(
            mine.iter().all(|new| identity(new) != identity(text)),
            "a checkpoint of the other one is still used"
        );
        assert!(
            is_kept(&node, text),
            "a checkpoint of the other one is nowhere any more:\n{text}"
        );
    }
    node.lose_and_reload();
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn two_machines_that_share_a_directory_are_reported_and_lose_nothing() {
    let (node, other) = (Node::new(), Node::new());
    let (pods, others) = (node.simple_pods(2), other.simple_pods(2));
    node.netfix_alone("snapshot")
        .exits(0)
        .has_no("other-machine");
    symlink(node.state_dir(), other.state_dir()).expect("a shared folder");
    for turn in 0..3 {
        let last = checkpoints(&node);
        let (run, by) = match turn % 2 {
            0 => (other.netfix_alone_elsewhere("snapshot"), &others),
            _ => (node.netfix_alone("snapshot"), &pods),
        };
        run.exits(0).errors(&[]).names("other-machine", "", &[]);
        assert!(
            by.iter().all(|pod| node.checkpoint_of(pod).exists()),
            "a pod was not saved"
        );
        for text in last {
            assert!(
                is_kept(&node, &text),
                "turn {turn} lost what the other machine had written:\n{text}"
            );
        }
    }
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.lose_and_reload();
    node.netfix_alone("restore").exits(5).errors(&[
        ("other-machine", others[0].name()),
        ("other-machine", others[1].name()),
    ]);
    for (pod, before) in pods.iter().zip(&before) {
        let after = pod.capture();
        let of_eth0 = |capture: &Capture| capture.link("eth0")["address"].clone();
        assert_eq!(
            of_eth0(&after),
            of_eth0(before),
            "not from its own generation"
        );
    }
}

#[test]
fn a_machine_whose_identity_cannot_be_read_stops_every_command() {
    for path in [MACHINE, BOOT] {
        let node = Node::new();
        let _pods = node.simple_pods(2);
        node.snapshot();
        let before = node.state_files();
        // Nothing can be read at the begin of a process's memory.
        let script = format!("mount --bind /proc/$$/mem {path} && exec \"$@\"");
        let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
        for (words, code) in [("snapshot", 4), ("restore", 4), ("diff", 4), ("check", 3)] {
            Run::of(&mut node.netfix_command(&wrapper, words))
                .exits(code)
                .errors(&[("unreadable", "")])
                .names("unreadable", "", &[path, "Input/output error"]);
        }
        assert_eq!(node.state_files(), before);
    }
}

#[test]
fn too_few_open_files_never_make_a_checkpoint_without_an_identity() {
    let node = Node::new();
    let _pods = node.simple_pods(4);
    node.snapshot();
    for limit in (4..40).step_by(2) {
        let option = format!("--nofile={limit}:{limit}");
        let run = Run::of(&mut node.netfix_command(&["prlimit", &option], "snapshot"));
        assert!(
            run.code.is_some_and(|code| [0, 1, 4, 5].contains(&code)),
            "{}",
            run.transcript()
        );
        for text in checkpoints(&node) {
            let identity = identity(&text);
            assert!(
                identity["machine_id"].is_string() && identity["boot_id"].is_string(),
                "{limit}: {identity}"
            );
        }
    }
    node.lose_and_reload();
    node.restore();
}
