//! When a checkpoint was last verified: unchanged files are not written again, so `node.json` has the time.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::common::kept::{json, node_json, with_checksum};
use crate::common::{Node, Pod};

/// Times are whole seconds.
fn next_second() {
    std::thread::sleep(Duration::from_millis(1100));
}

fn now(node: &Node) -> Value {
    node_json(&node.state_dir())
}

fn seen(node: &Node, pod: &Pod<'_>) -> Value {
    now(node)["seen"][pod.name()].clone()
}

fn written(node: &Node, pod: &Pod<'_>) -> Value {
    json(&node.stored_of(pod))["netfix"]["created"].clone()
}

/// The kernel changes nothing any more once the links are up.
fn settled(node: &Node, count: usize) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(count);
    node.snapshot();
    next_second();
    node.snapshot();
    pods
}

#[test]
fn an_unchanged_checkpoint_is_old_and_verified_now_and_that_of_an_unselected_pod_is_not() {
    let node = Node::new();
    let pods = settled(&node, 2);
    let (created, first) = (written(&node, &pods[0]), seen(&node, &pods[0]));
    // By the clock that no person sets.
    let since_boot = || now(&node)["seen_boottime"][pods[0].name()].as_u64();
    let first_since_boot = since_boot();
    next_second();
    let run = node.netfix_json("snapshot").exits(0);
    let second = seen(&node, &pods[0]);
    assert_eq!(
        written(&node, &pods[0]),
        created,
        "the file was written again"
    );
    assert!(second.as_str() > first.as_str(), "{first} {second}");
    assert!(first_since_boot.is_some() && since_boot() > first_since_boot);
    assert_eq!(run.pod(&pods[0])["seen"], second, "{}", run.transcript());
    assert_eq!(
        node.netfix_json("list").exits(0).pod(&pods[0])["seen"],
        second
    );
    let show = node
        .netfix(&format!("show {} -o json", pods[0].name()))
        .exits(0);
    assert_eq!(show.pod(&pods[0])["seen"], second, "{}", show.transcript());
    node.netfix("list -o wide")
        .exits(0)
        .stdout_has(&["VERIFIED"]);
    let generation = node.netfix_json("list --generation 1").exits(0);
    assert!(
        generation.pod(&pods[0])["seen"].as_str() < first.as_str(),
        "{}",
        generation.transcript()
    );

    let first = seen(&node, &pods[1]);
    next_second();
    node.netfix(&format!("snapshot --pod {}", pods[0].name()))
        .exits(0);
    assert_eq!(seen(&node, &pods[1]), first);
    assert!(seen(&node, &pods[0]).as_str() > first.as_str());
    assert_eq!(
        now(&node)["complete"],
        Value::Null,
        "no snapshot was of all pods"
    );
}

#[test]
fn a_complete_snapshot_removes_the_pods_that_are_gone() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    assert_eq!(now(&node)["complete"], now(&node)["created"]);
    assert!(seen(&node, &pods[1]).is_string());
    pods[1].ns.delete();
    next_second();
    node.netfix_alone("snapshot").exits(0);
    let complete = now(&node)["complete"].clone();
    assert_eq!(complete, seen(&node, &pods[0]));
    assert_eq!(seen(&node, &pods[1]), Value::Null);
    pods[0].ip("link del eth0");
    next_second();
    node.netfix_alone("snapshot")
        .exits(1)
        .errors(&[("degraded", pods[0].name())]);
    assert_eq!(
        now(&node)["complete"],
        complete,
        "a bad moment is not complete"
    );
}

#[test]
fn a_snapshot_in_a_bad_moment_keeps_the_hosts_state_and_records_the_verified_pods() {
    let node = Node::new();
    let pods = settled(&node, 2);
    let before = now(&node);
    pods[0].ip("link del eth0");
    node.ns.ip("route add 172.30.0.0/16 via 10.88.0.1");
    next_second();
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("degraded", pods[0].name())]);
    let after = now(&node);
    for key in ["created", "state", "empty", "complete"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert_eq!(
        before["seen"][pods[0].name()],
        after["seen"][pods[0].name()]
    );
    assert!(
        before["seen"][pods[1].name()].as_str() < after["seen"][pods[1].name()].as_str(),
        "{after}"
    );
}

#[test]
fn a_node_state_without_these_keys_loads() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let file = node.state_dir().join("node.json");
    let mut old = now(&node);
    let keys = old.as_object_mut().expect("an object");
    assert!(keys.remove("seen").is_some() && keys.remove("complete").is_some());
    fs::write(&file, with_checksum(old, "/checksum")).expect("an old node.json");
    let list = node.netfix_json("list").exits(0);
    assert_eq!(
        list.pod(&pods[0])["seen"],
        Value::Null,
        "{}",
        list.transcript()
    );
    node.lose_and_reload();
    node.restore();
    node.snapshot();
    assert!(seen(&node, &pods[0]).is_string());
}
