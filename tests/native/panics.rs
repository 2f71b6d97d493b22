//! A fault of netfix itself in one pod is that pod's failure, and no other's.

use std::fs;

use crate::common::background::wait_until;
use crate::common::{Node, Pod, Run};

/// netfix with one failure point armed, and the names of all points that it passed.
fn with_point(node: &Node, words: &str, order: &str) -> (Run, Vec<String>) {
    let log = node.temp().join("points");
    let _ = fs::remove_file(&log);
    let mut command = node.netfix_command(&["timeout", "600"], words);
    command
        .env("NETFIX_FAILPOINT", order)
        .env("NETFIX_FAILPOINT_LOG", &log)
        .env("RUST_BACKTRACE", "0");
    let run = Run::of(&mut command);
    let text = fs::read_to_string(log).expect("the log of the points");
    (run, text.lines().map(str::to_owned).collect())
}

#[test]
fn a_panic_in_one_pod_stops_no_other() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.snapshot();
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.lose_and_reload();
    let (_, points) = with_point(&node, "restore", "0:panic");
    let sends = points.iter().filter(|point| point.contains("netlink"));
    let sends: Vec<String> = sends
        .filter_map(|point| Some(point.split_once(' ')?.0.to_owned()))
        .collect();
    let mut hurt = 0;
    // The last are of the main thread, and a pod has several.
    for number in sends.iter().rev().step_by(4) {
        node.lose_and_reload();
        let (run, _) = with_point(&node, "restore -o json", &format!("{number}:panic"));
        if run.code == Some(0) {
            // The point was on the main thread.
            continue;
        }
        hurt += 1;
        let run = run.exits(5);
        let errors = run.coded("unreadable");
        assert_eq!(errors.len(), 1, "{}", run.transcript());
        let of = errors[0].pod.clone().expect("a pod");
        assert!(errors[0].has("NETFIX_FAILPOINT"), "{}", run.transcript());
        for (pod, before) in pods.iter().zip(&before) {
            if pod.name() != of {
                pod.assert_same_as(before);
            }
        }
        if hurt == 2 {
            break;
        }
    }
    assert_eq!(hurt, 2, "no point was in a pod: {points:#?}");
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_thread_that_cannot_start_is_an_error_of_the_pods() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let files = || {
        pods.iter()
            .map(|pod| node.stored_of(pod))
            .collect::<Vec<_>>()
    };
    let before = files();
    let (_, points) = with_point(&node, "snapshot", "0:EAGAIN");
    let threads = points.iter().filter(|point| point.ends_with(" thread"));
    for point in threads {
        let number = point.split_once(' ').expect("a number").0;
        let (run, _) = with_point(&node, "snapshot", &format!("{number}:EAGAIN"));
        assert!(
            run.code.is_some_and(|code| (1..=5).contains(&code)),
            "{}\n{points:#?}",
            run.transcript()
        );
        run.stderr_has(&["EAGAIN"]);
        assert!(files() == before, "a checkpoint was replaced");
    }
    assert!(wait_until(|| pods.iter().all(Pod::has_eth0)));
}
