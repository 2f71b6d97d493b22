//! `restore --nic-wait`: the NIC returns while netfix waits for it, or it does not.

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::background::{wait_until, wait_until_it_waits};
use crate::common::{Node, Pod, Run};

const WAITING: &[&str] = &[
    "poll",
    "ppoll",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "select",
    "pselect6",
];

/// Starts netfix; returns its command line too.
fn start(node: &Node, words: &str) -> (String, Child) {
    let mut command = node.netfix_command(&["timeout", "600"], words);
    let line = format!("{command:?}");
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    (line, piped.spawn().expect("netfix starts"))
}

/// Starts a restore and runs `meanwhile` once it waits; returns the output, and how long the restore ran after
/// `meanwhile`.
fn restore_while(node: &Node, words: &str, meanwhile: impl FnOnce()) -> (Run, Duration) {
    let (line, mut child) = start(node, words);
    wait_until_it_waits(&node.state_dir(), Path::new("/proc"));
    assert!(
        child.try_wait().expect("the child's state").is_none(),
        "netfix did not wait"
    );
    meanwhile();
    let start = Instant::now();
    let output = child.wait_with_output().expect("netfix ends");
    (Run::from_output(line, &output), start.elapsed())
}

fn lost_node_with_pods(node: &Node) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose();
    pods
}

#[test]
fn restore_waits_for_the_nic_and_then_starts_at_once() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose();
    let (run, took) = restore_while(&node, "restore --nic-wait 100s", || node.reload());
    let run = run.exits(0);
    assert!(
        took < Duration::from_secs(30),
        "it took {took:?} from the NIC's return\n{}",
        run.transcript()
    );
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn without_an_option_a_restore_waits_for_a_missing_nic_and_then_for_its_carrier() {
    let node = Node::new();
    let pods = lost_node_with_pods(&node);
    let (run, _) = restore_while(&node, "restore", || {
        node.reload_without_carrier();
        std::thread::sleep(Duration::from_secs(3));
        node.give_carrier();
    });
    let run = run.exits(0).has_no("no-carrier");
    assert!(pods.iter().all(Pod::has_eth0), "{}", run.transcript());
}

#[test]
fn without_an_option_a_restore_does_not_wait_for_the_carrier_of_a_nic_that_is_there() {
    let node = Node::new();
    let pods = lost_node_with_pods(&node);
    node.reload_without_carrier();
    let start = Instant::now();
    let run = node.netfix("restore").has_no("parent-missing");
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "it waited {:?}\n{}",
        start.elapsed(),
        run.transcript()
    );
    run.names("no-carrier", "", &["eth0"]);
    node.give_carrier();
    node.restore();
    assert!(pods.iter().all(Pod::has_eth0));
}

#[test]
fn a_nic_that_is_remade_while_pods_wait_for_carrier_is_no_success_without_them() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let host = node.capture();
    node.snapshot();
    node.lose();
    node.reload_without_carrier();
    let (run, _) = restore_while(&node, "restore --nic-wait 100s", || {
        let restored = wait_until(|| pods.iter().all(Pod::has_eth0));
        assert!(restored, "the pods are not restored");
        node.lose_and_reload();
    });
    run.exits(0)
        .names("degraded", "", &["again", "2 pods"])
        .stdout_has(&["2 selected pods restored"]);
    node.assert_same_as(&host);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_nic_that_is_remade_without_end_is_an_error() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose();
    node.reload_without_carrier();
    let (line, mut child) = start(&node, "restore --nic-wait 60s");
    let mut has_ended = false;
    while !has_ended {
        // It has restored the pods again, or given up.
        assert!(wait_until(|| {
            has_ended = child.try_wait().expect("the child's state").is_some();
            has_ended || pods.iter().all(Pod::has_eth0)
        }));
        if !has_ended {
            node.lose();
            node.reload_without_carrier();
        }
    }
    let output = child.wait_with_output().expect("netfix ends");
    let run = Run::from_output(line, &output);
    run.exits(1).names("degraded", "", &["recreated 4 times"]);
    node.give_carrier();
    node.netfix("restore").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

/// A network manager drops addresses when it notices the loss of carrier, which may be seconds later.
#[test]
fn what_the_host_loses_while_pods_wait_for_carrier_is_restored_too() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    // Others are probed before they are added, which needs carrier.
    node.ns.ip("addr add 10.99.0.1/32 dev eth0 scope host");
    let host = node.capture();
    node.snapshot();
    node.lose();
    node.reload_without_carrier();
    let has_addresses = || node.ns.ip("-4 addr show dev eth0").contains("10.99.0.1");
    let (run, took) = restore_while(&node, "restore --nic-wait 100s", || {
        let restored = wait_until(has_addresses);
        assert!(restored, "the host's addresses are not restored");
        node.ns.ip("addr flush dev eth0");
        node.give_carrier();
    });
    let run = run.exits(0);
    assert!(
        took < Duration::from_secs(30),
        "it took {took:?} from the carrier's return\n{}",
        run.transcript()
    );
    node.assert_same_as(&host);
    assert!(pods.iter().all(Pod::has_eth0), "{}", run.transcript());
}

#[test]
fn the_wait_uses_events_and_does_not_poll() {
    let node = Node::new();
    let _pods = lost_node_with_pods(&node);
    let waits = |words: &str| {
        let begin = Instant::now();
        let trace = node.netfix_traced(words);
        assert_ne!(trace.run.code, Some(0), "{}", trace.run.transcript());
        let took = begin.elapsed();
        assert_eq!(
            trace.calls(&["nanosleep", "clock_nanosleep"]).count(),
            0,
            "the wait sleeps"
        );
        (trace.calls(WAITING).count(), took)
    };
    let (without, _) = waits("restore --nic-wait 0");
    let (with, took) = waits("restore --nic-wait 3s");
    assert!(took >= Duration::from_secs(3), "nothing waits");
    assert!(
        with < without + 12,
        "{with} waits, and {without} without three quiet seconds: it polls"
    );
}

#[test]
fn a_nic_that_does_not_return_is_reported_nothing_changes_and_later_the_same_command_succeeds() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[1].capture();
    node.snapshot();
    node.lose();
    let (bare, host) = (pods[0].capture(), node.capture());
    let missing = [
        ("parent-missing", ""),
        ("parent-missing", pods[0].name()),
        ("parent-missing", pods[1].name()),
    ];
    for seconds in [0, 1] {
        let start = Instant::now();
        let run = node
            .netfix(&format!("restore --nic-wait {seconds}s"))
            .exits(1)
            .errors(&missing)
            .names("parent-missing", "", &["eth0"]);
        let took = start.elapsed();
        let limits = Duration::from_secs(seconds)..Duration::from_secs(30);
        assert!(limits.contains(&took), "{took:?}\n{}", run.transcript());
        bare.assert_same(&pods[0].capture(), pods[0].name());
        host.assert_same(&node.capture(), "the node");
    }
    node.reload();
    node.restore();
    pods[1].assert_same_as(&before);
}

#[test]
fn a_nic_without_carrier_is_reported() {
    let node = Node::new();
    let pods = lost_node_with_pods(&node);
    node.reload_without_carrier();
    let run = node.netfix_json("restore --nic-wait 1s").exits(5);
    let reported = run.transcript();
    run.errors(&[("no-carrier", "")])
        .names("no-carrier", "", &["eth0"]);
    node.give_carrier();
    node.restore();
    assert!(pods.iter().all(Pod::has_eth0), "{reported}");
}
