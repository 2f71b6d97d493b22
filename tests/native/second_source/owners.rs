//! Which pod a cache entry belongs to, and which pods are selected.

use std::fs;

use serde_json::json;

use super::{Subject, restore, words};
use crate::common::libcni::{cache_dir, sandbox_id, short_name};
use crate::common::{Node, Pod};

#[test]
fn entries_of_deleted_pods_are_skipped() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    let gone = Subject::plain(&node, "old", &["10.88.2.20/16"]);
    gone.pod.ns.delete();
    node.lose_and_reload();
    let alone = format!(
        "restore --source cni-cache --cni-cache-dir {}",
        cache_dir(&node).display()
    );
    let run = node
        .netfix_alone(&alone)
        .exits(0)
        .errors(&[])
        .names("netns-gone", "", &["1 "]);
    it.assert_back(&run);
}

#[test]
fn a_recreated_namespace_at_the_same_path_gets_nothing_from_a_contested_entry() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    let mut stale = Subject::plain(&node, "old", &["10.88.2.20/16"]);
    // As after a reuse of a process id: both entries lead to one namespace, and no runtime identifies it.
    let path = it.pod.ns.path();
    stale.attached[0].cached.result["interfaces"][0]["sandbox"] = json!(path);
    stale.attached[0].write();
    stale.pod.ns.delete();
    node.lose_and_reload();
    let bare = it.pod.capture();
    restore(&node)
        .exits(1)
        .errors(&[("netns-replaced", it.pod.name())])
        .names(
            "netns-replaced",
            it.pod.name(),
            &[&sandbox_id(&it.pod), &sandbox_id(&stale.pod)],
        );
    bare.assert_same(&it.pod.capture(), it.pod.name());
}

#[test]
fn pods_are_selected_by_their_kubernetes_names() {
    let node = Node::new();
    let pods = [
        Subject::plain(&node, "web", &["10.88.2.10/16"]),
        Subject::plain(&node, "api", &["10.88.2.20/16"]),
    ];
    node.lose_and_reload();
    let has = || pods.each_ref().map(|it| it.pod.has_eth0());
    let only = |pod: &Pod<'_>| words(&node, &format!("restore --pod shop/{}", short_name(pod)));
    node.netfix(&words(&node, "restore --pod shop/missing"))
        .exits(4)
        .errors(&[("checkpoint-missing", "")]);
    assert_eq!(has(), [false, false]);
    let run = node.netfix_json(&only(&pods[0].pod)).exits(0);
    assert_eq!(has(), [true, false], "{}", run.transcript());
    let entry = run.pod(&pods[0].pod);
    let reported = [&entry["namespace"], &entry["name"], &entry["sandbox"]];
    assert_eq!(
        reported,
        [
            &json!("shop"),
            &json!(short_name(&pods[0].pod)),
            &json!(sandbox_id(&pods[0].pod))
        ]
    );
    assert!(entry["uid"].is_string(), "{entry}");
    let path = pods[1].pod.ns.path();
    node.netfix(&words(
        &node,
        &format!("restore --netns {}", path.display()),
    ))
    .exits(0);
    assert_eq!(has(), [true, true]);
}

#[test]
fn of_two_entries_with_one_address_neither_is_given_it_and_both_are_reported() {
    let node = Node::new();
    let pods = [
        Subject::plain(&node, "web", &["10.88.2.10/16"]),
        Subject::plain(&node, "twin", &["10.88.2.10/16"]),
        Subject::plain(&node, "other", &["10.88.2.30/16"]),
    ];
    node.lose_and_reload();
    let run = restore(&node).exits(5).claimed_by_both(
        "address-conflict",
        [&pods[0].pod, &pods[1].pod],
        "10.88.2.10",
    );
    for pod in [&pods[0].pod, &pods[1].pod] {
        assert_eq!(pod.ip("-4 addr show dev eth0 up").trim(), "");
        assert!(pod.has_eth0());
    }
    pods[2].assert_back(&run);
}

#[test]
fn an_address_that_the_host_has_now_is_not_given_to_a_pod() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    node.ns.ip("addr add 10.88.2.10/16 dev eth0");
    restore(&node)
        .exits(1)
        .errors(&[("address-conflict", it.pod.name())])
        .names(
            "address-conflict",
            it.pod.name(),
            &["10.88.2.10", "the host"],
        );
    assert_eq!(it.pod.ip("-4 addr show dev eth0").trim(), "");
}

#[test]
fn without_a_cache_or_with_an_empty_one_nothing_changes() {
    let node = Node::new();
    let it = Subject::plain(&node, "web", &["10.88.2.10/16"]);
    fs::remove_file(&it.attached[0].file).expect("the entry");
    node.lose_and_reload();
    restore(&node).exits(4).errors(&[
        ("checkpoint-missing", ""),
        ("checkpoint-missing", it.pod.name()),
    ]);
    fs::remove_dir_all(cache_dir(&node)).expect("the cache");
    restore(&node).exits(4).errors(&[("not-found", "")]).names(
        "not-found",
        "",
        &["--cni-cache-dir"],
    );
    assert!(!it.pod.has_eth0() && !node.state_dir().exists());
}
