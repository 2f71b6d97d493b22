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

#[test]
fn a_window_ends_with_a_finding_where_it_left_firewall_rules_without_their_nic() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let mut nft = scene.machine.exec("nft");
    let rules = "table inet fw { chain in { type filter hook input priority 0; iif eth0 tcp dport 7777 drop; }; }";
    assert!(nft.arg(rules).status().expect("nft").success());
    scene
        .netfix("upgrade --dry-run -- true")
        .exits(0)
        .stderr_has(&[
            "warning: ifindex-named: eth0: 1 nft rule (inet fw in handle 2) names its ifindex",
        ]);
    let run = scene.upgrade("", &scene.reload()).exits(5);
    run.stdout_has(&[
        "error: ifindex-named: eth0: 1 nft rule",
        "Host affected: ",
        "rules or programs of the host name a former ifindex",
    ]);
    assert_eq!(codes(&scene.record(), "error"), ["ifindex-named"]);
    // The next window is not to blame.
    scene
        .upgrade("", &scene.reload())
        .exits(0)
        .stdout_has(&["warning: ifindex-named: eth0: 1 nft rule"]);
}
