//! Losses after COMMAND: what a network manager, or a driver that resets twice, takes away seconds later.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::SIGTERM;

use super::beside::Beside;
use super::nics;
use super::scene::{LOSING, Scene, of_pods, phases};
use crate::common::background::{Background, HANG, within};
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
        .upgrade("--watch 6s -o json", &command)
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
fn a_command_that_leaves_the_reload_to_another_process_has_reloaded_the_driver() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let later = scene.script("later", &format!("sleep 3\n{}", scene.reloading()));
    let command = format!("setsid {later} </dev/null >/dev/null 2>&1 &");
    let command = scene.script("command", &command);
    let run = scene.upgrade("--watch 6s -o json", &command).exits(0);
    let reload = run.coded("driver-reload");
    assert!(reload.is_empty(), "{}", run.transcript());
    scene.assert_whole();
    assert_eq!(scene.record()["devices_lost"][0], "eth0");
}

#[test]
fn a_nic_that_is_lost_for_good_after_command_is_no_success() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = followed_by(&scene, LOSING);
    let run = scene.upgrade("--watch 5s --nic-wait 1s -o json", &command);
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
    nics::assert_absent(&scene);
    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}

/// Well below `--watch` of the tests that use it: the last look comes later.
pub(super) const AT_ONCE: Duration = Duration::from_secs(15);

#[test]
fn a_pod_that_deletes_its_link_without_end_does_not_hold_up_the_end() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[1].capture();
    node.snapshot();
    let deleting = "while sleep 0.2; do ip link del eth0; done";
    let mut tenant = pods[0].ns.exec("sh");
    let tenant = Background::start(tenant.args(["-c", deleting]), node.temp().join("tenant"));
    let begin = Instant::now();
    node.netfix("restore --watch 2s");
    assert!(
        begin.elapsed() < HANG,
        "the watch began anew more than three times"
    );
    pods[1].assert_same_as(&before);
    drop(tenant);
    node.netfix("restore").exits(0);
}

#[test]
fn a_namespace_that_ends_while_it_is_watched_is_not_kept_alive() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.ns.ip(&format!(
        "link add witness type veth peer name inside netns {}",
        pods[1].name()
    ));
    let (run, has_ended) = restoring(&node, "restore --watch 60s", |restore| {
        pods[1].ns.delete();
        let has_ended = within(AT_ONCE, || !node.ns.has_link("witness"));
        restore.signal(SIGTERM);
        has_ended
    });
    assert!(has_ended, "{}", run.transcript());
}

/// A restore, and what is done once it watches: a loss before that is the first restore's.
fn restoring<T>(node: &Node, words: &str, work: impl FnOnce(&Beside) -> T) -> (Run, T) {
    let command = node.netfix_command(&["timeout", "600"], &format!("{words} -v"));
    let restore = Beside::start_in(&node.temp(), command);
    restore.wait_for("for another loss");
    let result = work(&restore);
    (restore.finish(), result)
}

#[test]
fn restore_with_settle_restores_a_second_loss_and_ends_after_a_quiet_time() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = [pods[0].capture(), pods[1].capture()];
    node.snapshot();
    node.lose_and_reload();
    let (run, ()) = restoring(&node, "restore --watch 5s", |_| node.lose_and_reload());
    run.exits(0)
        .names("degraded", "", &["again", "2 pods"])
        .stdout_has(&["2 selected pods restored"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let begin = Instant::now();
    node.netfix("restore --watch 1s")
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
    let begin = Instant::now();
    let (run, ()) = restoring(&node, "restore --watch 4s", |_| {
        for _ in 0..8 {
            std::thread::sleep(Duration::from_millis(300));
            node.ns.ip("link add other0 type veth peer name other1");
            node.ns.ip("link del other0");
        }
    });
    run.exits(0).has_no("degraded");
    assert!(
        begin.elapsed() >= Duration::from_secs(4),
        "it did not watch"
    );
}
