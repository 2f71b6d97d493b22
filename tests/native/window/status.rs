//! `netfix status` after a window, and beside a damaged one.

use std::fs;

use serde_json::json;

use super::scene::{LOSING, Scene};
use crate::common::Node;

#[test]
fn the_end_of_the_last_window_is_shown_with_the_pods_that_it_left_without_network() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene
        .netfix("status")
        .exits(0)
        .stdout_has(&["last       none"]);
    let lose = scene.script("lose", LOSING);
    scene.upgrade("--nic-wait 1s", &lose).exits(5);
    assert!(!node.ns.has_link("eth0"));
    assert!(scene.pods.iter().all(|pod| !pod.has_eth0()));
    let id = scene.record()["id"].as_str().expect("an id").to_owned();
    scene.netfix("status").exits(0).stdout_has(&[
        "network    0 of 2 pods have theirs: eth0 is missing. Run `netfix restore`",
        "window     none open",
        &format!("last       {id}  Pods affected (exit 5)"),
    ]);
    let status = scene.netfix("status -o json").exits(0).json()["status"].clone();
    assert_eq!(status["last"]["id"], id);
    let line = &status["last"]["window"];
    assert_eq!(line["exit"], 5, "{line}");
    assert_eq!(line["verdict"], "pods-affected", "{line}");
    assert_eq!(status["network"]["lost"], 2, "{status}");

    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene
        .netfix("status")
        .exits(0)
        .stdout_has(&["network    2 of 2 pods have theirs\n", "(exit 5)"]);
}

#[test]
fn a_window_that_cannot_be_read_is_not_none() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    let path = node.state_dir().join("window.json");
    fs::write(&path, "{").expect("a damaged window");
    scene
        .netfix("status")
        .exits(1)
        .stdout_has(&["window     - (checkpoint-corrupt: "])
        .lacks("none open");
    let status = scene.netfix("status -o json").exits(1).json()["status"].clone();
    assert!(status["window"].is_null(), "{status}");
    assert_eq!(status["unread"][0]["part"], json!("window"), "{status}");
    fs::remove_file(path).expect("a repair");
    // There kubelet runs, and no window is open.
    scene
        .netfix("resume")
        .exits(0)
        .stdout_has(&["kubelet was not paused"])
        .lacks("correct");
}
