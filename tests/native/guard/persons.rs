//! What persons did beside the guard: it restores a loss that their snapshot does not have, and nothing that they removed.

use std::thread;
use std::time::Duration;

use super::{Guard, beside, once};
use crate::common::{Node, Pod};

#[test]
fn a_link_that_a_person_deletes_after_a_restore_and_a_newer_snapshot_stays_deleted() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    once(&node, "").exits(0);
    node.lose_and_reload();
    node.restore();
    node.snapshot();
    pods[1].ip("link del eth0");
    once(&node, "")
        .exits(1)
        .stderr_has(&["left alone: ", pods[1].name()]);
    assert!(pods[0].has_eth0() && !pods[1].has_eth0());
}

#[test]
fn a_hold_covers_a_loss_that_a_person_restores_and_a_link_that_they_delete_then() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let guard = Guard::start(&node, "");
    beside(&node, "guard --hold 1h").exits(0);
    guard.says("held until");
    node.lose_and_reload();
    node.restore();
    // The events of the restore are over.
    thread::sleep(Duration::from_secs(3));
    pods[1].ip("link del eth0");
    beside(&node, "guard --hold 0s").exits(0);
    guard.says("left alone: ");
    assert!(
        pods[0].has_eth0() && !pods[1].has_eth0(),
        "{}",
        guard.text()
    );
}

#[test]
fn a_snapshot_of_one_pod_hides_no_loss_of_the_others() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose_and_reload();
    let own = pods[0].name();
    node.netfix(&format!("restore {own}")).exits(0);
    node.netfix(&format!("snapshot {own}"));
    once(&node, "")
        .exits(0)
        .stderr_has(&["2 of 2 pods restored"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn one_look_while_a_person_holds_the_guard_ends_with_1_over_lost_pods() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    beside(&node, "guard --hold 1h").exits(0);
    once(&node, "").exits(0).stderr_has(&["held until"]);
    node.lose_and_reload();
    once(&node, "").exits(1).stderr_has(&["; lost: 2 pods"]);
    assert!(pods.iter().all(|pod| !pod.has_eth0()));
}

#[test]
fn the_newest_decisions_of_the_guard_are_on_the_screen_first() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[1].ip("addr flush dev eth0");
    once(&node, "").exits(1);
    node.lose_and_reload();
    once(&node, "").exits(0);
    let run = beside(&node, "status");
    let at = |words: &str| run.out.find(words);
    let newest = at("restoring the pods");
    assert!(newest.is_some(), "{}", run.transcript());
    assert!(
        at("left alone").is_none_or(|old| newest < Some(old)),
        "{}",
        run.transcript()
    );
}
