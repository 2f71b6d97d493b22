//! A guard while nothing is lost: it costs no processor time and little memory, and ends at once.

use std::fs;
use std::thread;
use std::time::Duration;

use super::Guard;
use crate::common::Node;

/// A number of `/proc/PID/status`.
fn status(guard: &Guard<'_>, key: &str) -> u64 {
    let path = format!("/proc/{}/status", guard.process.id());
    let text = fs::read_to_string(path).expect("the guard runs");
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let number = line.and_then(|line| line.split_whitespace().next());
    number
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

/// How often it has slept, and was interrupted.
pub fn switches(guard: &Guard<'_>) -> [u64; 2] {
    let keys = ["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"];
    keys.map(|key| status(guard, key))
}

/// Its own memory, in kB. The pages of the program itself are shared by all that run it, and those of a debug build are many.
pub fn anonymous(guard: &Guard<'_>) -> u64 {
    status(guard, "RssAnon:") + status(guard, "RssShmem:")
}

#[test]
fn an_idle_guard_sleeps_ignores_links_of_other_pods_needs_little_memory_and_ends_at_once() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    let guard = Guard::start(&node, "");
    thread::sleep(Duration::from_secs(2));
    let before = switches(&guard);
    thread::sleep(Duration::from_secs(5));
    assert_eq!(switches(&guard), before, "{}", guard.text());
    let kib = anonymous(&guard);
    assert!(kib < 10 * 1024, "{kib} kB");
    let stat = || {
        let path = format!("/proc/{}/stat", guard.process.id());
        let text = fs::read_to_string(path).expect("the guard runs");
        // The processor time of children that have ended: proc_pid_stat(5), cutime and cstime.
        let fields: Vec<_> = text
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        (fields[13].to_owned(), fields[14].to_owned())
    };
    let before = stat();
    for _ in 0..3 {
        node.ns.ip("link add veth7 type veth peer name veth8");
        node.ns.ip("link del veth7");
    }
    thread::sleep(Duration::from_secs(3));
    assert_eq!(stat(), before, "{}", guard.text());
    super::lasting::terminate(&guard);
    guard.process.finish();
}
