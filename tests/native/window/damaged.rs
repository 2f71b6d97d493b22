//! An unreadable window file: netfix assumes nothing about its content, and the deadline starts kubelet.

use std::fs;
use std::time::Duration;

use super::scene::{KUBELET, Scene};
use crate::common::Node;
use crate::common::background::wait_until;

#[test]
fn every_command_reports_it_and_none_overwrites_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("pause --deadline 5m").exits(0);
    let path = node.state_dir().join("window.json");
    let whole = fs::read_to_string(&path).expect("window.json");
    let ran = scene.path("ran");
    let upgrade = format!("upgrade --yes --foreground -- touch {}", ran.display());
    for damage in [
        whole.replace("kubelet.service", "kubelet.socket"),
        whole[..whole.len() / 2].to_owned(),
        String::new(),
    ] {
        fs::write(&path, &damage).expect("damage");
        for words in ["resume", "pause", &upgrade] {
            scene
                .netfix(words)
                .exits(4)
                .errors(&[("checkpoint-corrupt", "")])
                .names("checkpoint-corrupt", "", &["window.json"]);
            assert_eq!(
                fs::read_to_string(&path).expect("window.json"),
                damage,
                "{words} has written it"
            );
            scene.assert_held(KUBELET);
        }
        scene
            .netfix("status")
            .exits(1)
            .errors(&[("checkpoint-corrupt", "")])
            .names("checkpoint-corrupt", "", &["window.json"]);
    }
    assert!(!ran.exists(), "COMMAND was run");
    fs::write(&path, whole).expect("a repair");
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}

#[test]
fn the_deadline_works_without_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("pause --deadline 5s").exits(0);
    fs::write(node.state_dir().join("window.json"), "{").expect("damage");
    assert!(
        wait_until(Duration::from_secs(15), || scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    assert_eq!(scene.masks(KUBELET), [""; 0]);
    fs::remove_file(node.state_dir().join("window.json")).expect("remove the file");
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}
