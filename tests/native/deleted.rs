//! Pods that are deleted, or replaced, after a snapshot: that is no failure of a restore, and no pod is counted twice.

use serde_json::Value;

use crate::common::capture::Capture;
use crate::common::{Node, Pod, Run};

/// A node with pods that lost their network after a snapshot, with what the pods had.
fn lost(node: &Node, count: usize) -> (Vec<Pod<'_>>, Vec<Capture>) {
    let pods = node.simple_pods(count);
    let before = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose_and_reload();
    (pods, before)
}

/// The severity of the only problem with this code.
fn severity(run: &Run, code: &str) -> String {
    let found = run.coded(code);
    assert_eq!(found.len(), 1, "{}", run.transcript());
    found[0].severity.clone()
}

fn rows(run: &Run) -> usize {
    let document = run.json();
    document["pods"].as_array().map_or(0, Vec::len)
}

fn last(run: &Run) -> &str {
    run.out.lines().last().unwrap_or_default()
}

/// The addresses of a pod's eth0, by `ip`.
fn addresses(pod: &Pod<'_>) -> Vec<String> {
    let listed: Value = serde_json::from_str(&pod.ip("-j -4 addr show dev eth0")).expect("JSON");
    let infos = listed[0]["addr_info"].as_array().into_iter().flatten();
    infos
        .filter_map(|one| Some(one["local"].as_str()?.to_owned()))
        .collect()
}

#[test]
fn a_deleted_pod_is_a_note_and_the_others_are_restored() {
    let node = Node::new();
    let (pods, before) = lost(&node, 3);
    pods[1].ns.delete();
    let plan = node.netfix_json("plan").exits(0);
    assert_eq!(
        (severity(&plan, "netns-gone").as_str(), rows(&plan)),
        ("info", 2)
    );
    let restore = node.netfix("restore").exits(0).errors(&[]);
    assert_eq!(severity(&restore, "netns-gone"), "info");
    assert!(
        last(&restore).ends_with("; 2 selected pods restored"),
        "{}",
        restore.transcript()
    );
    for at in [0, 2] {
        assert_eq!(addresses(&pods[at]), [pods[at].address()]);
        pods[at].assert_same_as(&before[at]);
    }
    let again = node.netfix("restore").exits(0);
    assert_eq!(
        last(&again),
        "2 selected pods already correct; nothing to do"
    );
    node.netfix("diff").exits(0);
}

#[test]
fn a_deleted_pod_that_was_named_is_an_error() {
    let node = Node::new();
    let (pods, before) = lost(&node, 3);
    pods[1].ns.delete();
    let gone = pods[1].name();
    for verb in ["plan", "restore"] {
        node.netfix(&format!("{verb} --pod {gone}"))
            .exits(1)
            .errors(&[("netns-gone", gone)])
            .lacks("nothing to do");
    }
    // Beside one that runs, too.
    node.netfix(&format!("restore --pod {gone} --pod {}", pods[0].name()))
        .exits(5)
        .errors(&[("netns-gone", gone)]);
    pods[0].assert_same_as(&before[0]);
    // A pattern names no pod.
    node.netfix(&format!("restore --pod {}.*", node.ns.name()))
        .exits(0);
    pods[2].assert_same_as(&before[2]);
}

#[test]
fn where_every_pod_was_deleted_nothing_is_missing() {
    let node = Node::without_addresses();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    node.lose_and_reload();
    for pod in &pods {
        pod.ns.delete();
    }
    for verb in ["plan", "restore"] {
        let run = node.netfix_alone(verb).exits(0).errors(&[]);
        let gone = run.coded("netns-gone");
        assert_eq!(gone.len(), 2, "{}", run.transcript());
        let words = "no pod with a checkpoint is running";
        assert!(last(&run).contains(words), "{}", run.transcript());
    }
    // A new pod without network is one.
    let bare = node.pod("new");
    node.netfix_alone("restore")
        .exits(1)
        .errors(&[("checkpoint-missing", bare.name())]);
}

#[test]
fn a_replaced_pod_is_counted_once_without_network_and_no_failure_with_its_own() {
    let node = Node::new();
    let (pods, before) = lost(&node, 3);
    pods[1].ns.replace();
    let errors = [("checkpoint-missing", pods[1].name())];
    let plan = node.netfix_json("plan").exits(5).errors(&errors);
    assert_eq!(rows(&plan), 3, "{}", plan.transcript());
    let restore = node.netfix("restore").exits(5).errors(&errors);
    assert_eq!(severity(&restore, "netns-replaced"), "info");
    assert!(
        last(&restore).ends_with("; 2 of 3 selected pods restored, 1 not restored"),
        "{}",
        restore.transcript()
    );
    assert!(!pods[1].has_eth0());
    pods[1].macvlan("mode bridge", "");
    pods[1].ip("link set eth0 up");
    let own = pods[1].capture();
    node.netfix("restore").exits(0).errors(&[]);
    own.assert_same(&pods[1].capture(), "the new pod");
    for at in [0, 2] {
        pods[at].assert_same_as(&before[at]);
    }
}
