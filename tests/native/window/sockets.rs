//! Programs that a window leaves to be restarted.

use std::process::Stdio;

use super::scene::{Scene, codes};
use crate::common::Node;
use crate::common::background::Background;

/// A program on the machine that has joined a group in the first pod.
fn holder(scene: &Scene<'_>) -> Background {
    let netns = scene.pods[0].ns.path();
    let mut command = scene.machine.exec("nsenter");
    command.arg(format!("--net={}", netns.display()));
    command.args(["python3", "-c", include_str!("../../common/sockets.py")]);
    command
        .args(["eth0", "group:239.7.7.7"])
        .stdin(Stdio::null());
    let holder = Background::start(&mut command, scene.path("holder"));
    holder.wait_for("ready");
    holder
}

#[test]
fn a_dry_run_and_the_report_count_the_pods_with_programs_to_restart() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let _holder = holder(&scene);
    let run = scene.netfix("upgrade --dry-run -- true").exits(0);
    run.stdout_has(&["after a loss, programs of 1 pod must be restarted"])
        .stderr_has(&["note: socket-lost: ", "239.7.7.7"]);
    let run = scene.upgrade("", &scene.reload()).exits(0);
    run.stdout_has(&["All well: ", "; programs of 1 pod must be restarted."])
        .lacks("note: socket-lost");
    let record = scene.record();
    assert_eq!(codes(&record, "error"), [""; 0], "{record}");
    assert_eq!(codes(&record, "warning"), ["socket-lost"], "{record}");
}
