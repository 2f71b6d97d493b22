//! The files of `snapshot`: complete, private.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::Value;

use crate::common::background::wait_until;
use crate::common::{Node, Run};

#[test]
fn files_are_private_and_complete() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let mode = |path: &std::path::Path| {
        fs::metadata(path)
            .expect("the path exists")
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(mode(&node.state_dir()), 0o700, "the state folder");
    assert_eq!(
        mode(&node.state_dir().join("checkpoints")),
        0o700,
        "the folder of checkpoints"
    );
    for (path, text) in node.state_files() {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        let value: Result<Value, _> = serde_json::from_str(&text);
        assert!(value.is_ok(), "{} is not JSON: {text}", path.display());
    }
    assert!(node.state_dir().join("node.json").exists(), "no node.json");
    let count = fs::read_dir(node.state_dir().join("checkpoints"))
        .expect("the folder")
        .count();
    assert_eq!(count, pods.len(), "one file a pod and nothing else");
}

#[test]
fn the_checkpoint_of_an_unchanged_pod_is_not_rewritten() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let is_up = || pods[0].ip("-o link show dev eth0").contains("state UP");
    assert!(wait_until(is_up), "the pod's link never came up");
    node.snapshot();
    let file = node.checkpoint_of(&pods[0]);
    let inode = fs::metadata(&file).expect("the checkpoint").ino();
    let keep = fs::hard_link(&file, node.temp().join("keeps-the-inode-from-reuse"));
    keep.expect("a second name for the checkpoint");
    node.snapshot();
    assert_eq!(
        inode,
        fs::metadata(&file).expect("the checkpoint").ino(),
        "the file was written again"
    );
}

#[test]
fn the_checkpoint_of_an_ended_pod_moves_to_a_generation() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let run = node.netfix_alone("snapshot -o json").exits(0);
    for pod in &pods {
        assert_eq!(run.pod(pod)["state"], "saved", "{}", run.transcript());
    }
    let file = node.checkpoint_of(&pods[1]);
    let text = fs::read(&file).expect("a checkpoint");
    pods[1].ns.delete();
    node.netfix_alone("snapshot --keep 1").exits(0);
    assert!(
        !file.exists(),
        "{} is still a current checkpoint",
        file.display()
    );
    assert!(node.checkpoint_of(&pods[0]).exists());
    assert!(
        node.kept_of(&pods[1]).contains(&text),
        "no generation holds the ended pod's checkpoint"
    );
}

/// As under a unit's `PrivateTmp=`: the mount table still lists it, and no path leads to it.
#[test]
fn a_namespace_hidden_by_another_mount_is_reported_and_the_others_are_saved() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let folder = node.temp().join("covered");
    let script = "mkdir $0 && touch $0/pod && unshare --net=$0/pod true && mount -t tmpfs none $0 && exec \"$@\"";
    let folder = folder.to_string_lossy();
    let wrapper = ["unshare", "--mount", "sh", "-c", script, &folder];
    let run = Run::of(
        &mut node.netfix_command(&wrapper, &format!("snapshot -o json --netns {folder}/*")),
    );
    let run = run.exits(5);
    let reported = run.coded("unreadable");
    assert_eq!(reported.len(), 1, "{}", run.transcript());
    assert_eq!(
        reported[0].object,
        format!("{folder}/pod"),
        "{}",
        run.transcript()
    );
    assert_eq!(run.pod(&pod)["state"], "saved", "{}", run.transcript());
}

#[test]
fn list_and_show_print_stored_checkpoints() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.netfix("list")
        .exits(0)
        .stdout_has(&[pods[0].name(), pods[1].name()]);
    let show = node.netfix(&format!("show {}", pods[0].name())).exits(0);
    show.stdout_has(&[
        &pods[0].mac(),
        &pods[0].address(),
        "10.88.0.1",
        "macvlan",
        "bridge",
    ])
    .lacks(&pods[1].mac());
    node.netfix("show no-such-pod")
        .exits(4)
        .errors(&[("checkpoint-missing", "")])
        .names("checkpoint-missing", "", &["no-such-pod"]);
}
