//! Losses after COMMAND: what a network manager, or a driver that resets twice, takes away seconds later.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::scene::{LOSING, Scene, of_pods, phases};
use crate::common::background::wait_until;
use crate::common::{Node, Run};

/// A COMMAND that returns, and leaves this behind.
fn followed_by(scene: &Scene<'_>, later: &str) -> String {
    let later = scene.script("later", &format!("sleep 3\n{later}"));
    let reload = scene.reloading();
    scene.script(
        "command",
        &format!("set -e\n{reload}\nsetsid {later} </dev/null >/dev/null 2>&1 &"),
    )
}

#[test]
fn a_nic_that_is_remade_seconds_after_command_is_restored_again_and_the_report_says_so() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = followed_by(&scene, &scene.reloading());
    let run = scene
        .upgrade("--settle 6s -o json", &command)
        .exits(0)
        .errors(&[])
        .names("degraded", "", &["again", "2 pods"]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(record["exit"], 0, "{}", run.transcript());
    assert_eq!(of_pods(&record, "state"), ["restored", "restored"]);
    assert_eq!(phases(&record).last().map(String::as_str), Some("proof"));
    assert!(
        scene.log_of(&record).contains("lost again"),
        "{}",
        scene.log_of(&record)
    );
}

#[test]
fn a_nic_that_is_lost_for_good_after_command_is_no_success() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = followed_by(&scene, LOSING);
    let run = scene.upgrade("--settle 5s --wait 1s -o json", &command);
    run.exits(5).errors(&scene.nic_is_missing(&[]));
    let record = scene.record();
    assert_eq!(record["exit"], 5);
    for pod in record["pods"].as_array().expect("pods") {
        let after = pod["after"].as_array().expect("interfaces");
        assert!(
            after.is_empty(),
            "the last look is not in the record: {pod}"
        );
    }
    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}

#[test]
fn what_one_pod_alone_loses_while_it_settles_is_restored_at_the_end() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade("--settle 3s -o json", &scene.reload());
    scene.wait_for_phase("proof");
    scene.pods[0].ip("link del eth0");
    upgrade
        .finish()
        .exits(0)
        .errors(&[])
        .names("degraded", "", &["again", "1 pod"]);
    scene.assert_whole();
}

/// Whether a netlink socket in the host's namespace is subscribed to link events (`RTMGRP_LINK`).
fn is_watched(node: &Node) -> bool {
    let sockets = node.ns.enter(|| {
        std::fs::read_to_string("/proc/thread-self/net/netlink").expect("the netlink sockets")
    });
    // Columns: sk Eth Pid Groups.
    let is_subscribed = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1] == "0" && words[3] == "00000001"
    };
    sockets.lines().skip(1).any(is_subscribed)
}

#[test]
fn restore_with_settle_restores_a_second_loss_and_ends_after_a_quiet_time() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = [pods[0].capture(), pods[1].capture()];
    node.snapshot();
    node.lose_and_reload();
    let mut command = node.netfix_command(&["timeout", "60"], "restore --settle 3s");
    let line = format!("{command:?}");
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("netfix starts");
    // A loss before the first restore has ended is that restore's.
    assert!(wait_until(Duration::from_secs(20), || is_watched(&node)));
    node.lose_and_reload();
    let output = child.wait_with_output().expect("netfix ends");
    Run::from_output(line, &output)
        .exits(0)
        .names("degraded", "", &["again", "2 pods"])
        .stdout_has(&["2 pods restored"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let begin = Instant::now();
    node.netfix("restore --settle 1s")
        .exits(0)
        .has_no("degraded");
    assert!(
        begin.elapsed() >= Duration::from_secs(1),
        "it did not watch"
    );
}

#[test]
fn losses_of_links_that_no_pod_needs_do_not_shorten_the_watch() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let mut command = node.netfix_command(&["timeout", "60"], "restore --settle 4s");
    let line = format!("{command:?}");
    let begin = Instant::now();
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("netfix starts");
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(300));
        node.ns.ip("link add other0 type veth peer name other1");
        node.ns.ip("link del other0");
    }
    let output = child.wait_with_output().expect("netfix ends");
    Run::from_output(line, &output).exits(0).has_no("degraded");
    assert!(
        begin.elapsed() >= Duration::from_secs(4),
        "it did not watch"
    );
}
