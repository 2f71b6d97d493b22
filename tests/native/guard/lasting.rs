//! The end of a guard: killed in the middle of a restore, or told to end.

use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Guard, once, starting, unplanned, upgrade};
use crate::common::background::wait_until;
use crate::common::{Node, Pod, Run};

#[test]
fn the_next_guard_completes_what_a_killed_one_has_begun() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let mut killed_in_window = 0;
    let open = node.state_dir().join("window.json");
    for delay in [0, 100, 300, 600, 1000] {
        node.lose_and_reload();
        let mut child = starting(&node, "--backoff 0s")
            .spawn()
            .expect("netfix starts");
        // Asked in short intervals: a window is over after a tenth of a second.
        while !open.exists() && matches!(child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(delay));
        child.kill().expect("it is ours");
        let was_killed = child.wait().is_ok_and(|status| status.signal() == Some(9));
        killed_in_window += usize::from(was_killed && open.exists());
        let run = once(&node, "--backoff 0s").exits(0);
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        assert!(!open.exists(), "after {delay} ms: {}", run.transcript());
    }
    assert!(killed_in_window > 0, "no guard was killed in its window");
    for window in unplanned(&node) {
        assert_eq!(window["exit"], 0, "{window:#}");
    }
}

#[test]
fn an_upgrade_closes_the_window_of_a_killed_guard_and_has_its_own() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let open = node.state_dir().join("window.json");
    let was_open = (0..20).any(|_| {
        node.lose_and_reload();
        let mut child = starting(&node, "--watch 60s --backoff 0s")
            .spawn()
            .expect("netfix starts");
        wait_until(|| open.exists() && pods[0].has_eth0());
        child.kill().expect("it is ours");
        child.wait().expect("it has ended");
        open.exists()
    });
    assert!(was_open);
    // Its window is no one's until then, and that is told at once.
    node.netfix_alone("wait --timeout 1s")
        .exits(124)
        .stderr_has(&["warning: window-open: ", "`netfix guard`"]);
    node.netfix_alone("status --follow").exits(5);
    node.restore();
    Run::of(&mut upgrade(&node, "", &["true"])).exits(0);
    let windows = unplanned(&node);
    assert_eq!(
        windows.last().map(|one| &one["closed_by"]),
        Some(&"upgrade".into())
    );
}

#[test]
fn sigterm_in_the_middle_of_a_restore_leaves_no_pod_half_restored() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "--watch 60s");
    node.lose_and_reload();
    guard.says("restoring the pods");
    let open = node.state_dir().join("window.json");
    assert!(wait_until(|| open.exists()), "{}", guard.text());
    terminate(&guard);
    assert!(wait_until(|| !open.exists()), "{}", guard.text());
    guard.process.finish();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    once(&node, "").exits(0);
}

pub fn terminate(guard: &Guard<'_>) {
    let pid = Pid::from_raw(guard.process.id().cast_signed());
    kill(pid, Signal::SIGTERM).expect("the guard runs");
}
