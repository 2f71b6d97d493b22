//! No good state is ever lost: a generation has every file that a snapshot replaces or removes, and snapshots in bad
//! moments never remove a good generation.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::common::{Node, Pod};

/// Every file of every generation.
fn kept(node: &Node) -> BTreeMap<PathBuf, String> {
    let in_generations = |path: &PathBuf| path.starts_with(node.generations_folder());
    node.state_files()
        .into_iter()
        .filter(|(path, _)| in_generations(path))
        .collect()
}

#[test]
fn snapshots_in_a_bad_moment_create_no_generation_and_lose_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (before, host): (Vec<_>, _) = (pods.iter().map(Pod::capture).collect(), node.capture());
    node.snapshot();
    pods[1].ip("link set eth0 mtu 1400");
    node.snapshot();
    let good = kept(&node);
    let stored = || -> Vec<_> { pods.iter().map(|pod| node.stored_of(pod)).collect() };
    let current = stored();
    node.lose();
    for _ in 0..2 {
        node.netfix("snapshot --keep 1")
            .exits(1)
            .errors(&[("degraded", pods[0].name()), ("degraded", pods[1].name())]);
    }
    node.reload();
    for _ in 0..2 {
        let run = node.netfix_json("snapshot --keep 1").exits(1);
        assert_eq!(
            run.json()["kept"],
            json!({"generation": null, "same_as": null, "removed": []}),
            "{}",
            run.transcript()
        );
    }
    assert_eq!(kept(&node), good, "the generations are not what they were");
    assert!(stored() == current, "a good checkpoint was replaced");
    node.netfix("restore --generation 1").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
}

#[test]
fn a_pod_that_changes_all_the_time_removes_no_good_generation_in_a_bad_moment() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    for mtu in [1500, 1490, 1480] {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.netfix("snapshot --keep 3").exits(0);
    }
    let good = kept(&node);
    pods[0].ip("link del eth0");
    let mut last = Vec::new();
    for number in 0..6 {
        pods[1].ip(&format!("addr add 10.88.3.{number}/16 dev eth0"));
        last.push(node.stored_of(&pods[1]));
        node.netfix("snapshot --keep 3")
            .exits(5)
            .errors(&[("degraded", pods[0].name())]);
    }
    let now = kept(&node);
    for (path, text) in &good {
        assert_eq!(
            now.get(path),
            Some(text),
            "{} is not what it was",
            path.display()
        );
    }
    assert!(
        node.kept_of(&pods[1]).contains(&last[5]),
        "what was replaced last is in no generation"
    );
    assert_eq!(
        node.generations().len(),
        6,
        "three good ones, and three that were put aside"
    );
    node.restore();
    node.netfix("snapshot --keep 3").exits(0);
    let now = kept(&node);
    let of_newer = |path: &PathBuf| !path.starts_with(node.generation(1));
    for (path, text) in good.iter().filter(|(path, _)| of_newer(path)) {
        assert_eq!(
            now.get(path),
            Some(text),
            "{} went as soon as the moment was good",
            path.display()
        );
    }
    for mtu in [1470, 1460] {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.netfix("snapshot --keep 3").exits(0);
    }
    assert_eq!(
        node.generations().len(),
        3,
        "only good ones are left once there are enough"
    );
}

#[test]
fn a_snapshot_that_could_not_save_one_pod_creates_no_generation() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    // A file cannot replace a directory.
    fs::remove_file(node.checkpoint_of(&pods[1])).expect("the checkpoint goes");
    fs::create_dir(node.state_dir().join("checkpoints").join(pods[1].name()))
        .expect("a folder in its place");
    for mtu in [1400, 1300, 1200] {
        pods[0].ip(&format!("link set eth0 mtu {mtu}"));
        node.netfix("snapshot --keep 1")
            .exits(5)
            .errors(&[("unwritable", pods[1].name())])
            .names("unwritable", pods[1].name(), &["Is a directory"]);
    }
    let listed = node.netfix("list --generations -o json").exits(0).json()["generations"].clone();
    let reported: Vec<_> = listed
        .as_array()
        .into_iter()
        .flatten()
        .map(|g| (g["number"].clone(), g["aside"].clone()))
        .collect();
    assert_eq!(
        reported[0],
        (json!(1), json!(false)),
        "the good one is gone: {listed}"
    );
    assert_eq!(reported.len(), 2, "{listed}");
    assert_eq!(reported[1].1, json!(true), "{listed}");
}

#[test]
fn the_checkpoint_of_a_replaced_pod_is_in_a_generation() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix("snapshot --keep 1").exits(0);
    let old = node.stored_of(&pods[1]);
    pods[1].ns.replace();
    // The old namespace ends with a delay, and so does its MAC.
    pods[1].macvlan("mode bridge", "address 02:00:00:88:02:01");
    pods[1].up_with_address();
    node.netfix("snapshot --keep 1").exits(0);
    assert_ne!(
        node.stored_of(&pods[1]),
        old,
        "the new pod has no checkpoint of its own"
    );
    assert!(
        node.kept_of(&pods[1]).contains(&old),
        "the old pod's checkpoint is in no generation"
    );
}

#[test]
fn a_damaged_file_is_kept_byte_for_byte_before_it_is_replaced() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix("snapshot --keep 1").exits(0);
    let good = node.stored_of(&pods[0]);
    let damaged = [&good[..good.len() / 2], &[0xff, 0]].concat();
    fs::write(node.checkpoint_of(&pods[0]), &damaged).expect("a damaged file");
    node.netfix("snapshot --keep 1")
        .exits(0)
        .errors(&[])
        .warnings(&[("checkpoint-corrupt", pods[0].name())]);
    let kept = node.kept_of(&pods[0]);
    assert!(
        kept.contains(&damaged),
        "the damaged file is in no generation"
    );
    assert_eq!(
        kept.last(),
        Some(&node.stored_of(&pods[0])),
        "the new one is in the newest generation"
    );
    node.netfix("diff").exits(0);
}

#[test]
fn a_symbolic_link_is_kept_unchanged_and_replaced_by_a_file() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let file = node.checkpoint_of(&pods[0]);
    let elsewhere = node.temp().join("elsewhere");
    fs::write(&elsewhere, "other content").expect("a file elsewhere");
    fs::remove_file(&file).expect("the checkpoint goes");
    std::os::unix::fs::symlink(&elsewhere, &file).expect("a symbolic link");
    node.snapshot();
    let kept = node
        .generations()
        .into_iter()
        .map(|number| node.kept_file(number, &pods[0]));
    assert!(
        kept.into_iter()
            .any(|kept| fs::read_link(kept).is_ok_and(|to| to == elsewhere))
    );
    assert!(
        fs::symlink_metadata(&file).is_ok_and(|meta| meta.is_file()),
        "the link is still there"
    );
    assert_eq!(
        fs::read_to_string(&elsewhere).expect("the file elsewhere"),
        "other content"
    );
}

#[test]
fn files_stored_without_a_generation_are_kept_before_the_first_change() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let old = node.stored_of(&pods[0]);
    fs::remove_dir_all(node.generations_folder()).expect("as an older netfix left it");
    pods[0].ip("link set eth0 mtu 1400");
    node.netfix("snapshot --keep 1").exits(0);
    assert_eq!(node.kept_of(&pods[0]), [old, node.stored_of(&pods[0])]);
    let listed = node.netfix("list --generations -o json").exits(0).json()["generations"].clone();
    assert_eq!(
        (&listed[0]["aside"], &listed[1]["aside"]),
        (&json!(true), &json!(false)),
        "{listed}"
    );
}
