//! An unreadable window file: the record in memory replaces it, without one netfix assumes nothing about its content, and it stops
//! neither `resume` nor the deadline.

use std::fs;
use std::path::Path;

use super::scene::{KUBELET, MEMORY, Scene};
use crate::common::background::wait_until;
use crate::common::{Node, kept, tool};

/// Each damage of the file, and what is left of it.
fn damages(path: &Path, whole: &str) -> Vec<Box<dyn Fn()>> {
    let texts = [
        whole.replace("kubelet.service", "kubelet.socket"),
        whole[..whole.len() / 2].to_owned(),
        String::new(),
    ];
    let mut all: Vec<Box<dyn Fn()>> = Vec::new();
    for text in texts {
        let path = path.to_owned();
        all.push(Box::new(move || fs::write(&path, &text).expect("damage")));
    }
    let path = path.to_owned();
    all.push(Box::new(move || {
        fs::remove_file(&path).expect("remove the file");
        fs::create_dir(&path).expect("a folder");
    }));
    all
}

/// The files that netfix has set aside.
fn set_aside(node: &Node) -> Vec<String> {
    let mut names = kept::names(&node.state_dir());
    names.retain(|name| name.starts_with("window.json.damaged-"));
    names
}

#[test]
fn the_record_in_memory_is_used_and_the_damaged_file_is_kept() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("pause --deadline 5m").exits(0);
    let path = node.state_dir().join("window.json");
    let whole = fs::read_to_string(&path).expect("window.json");
    let damages = damages(&path, &whole);
    for (number, damage) in damages.iter().enumerate() {
        damage();
        scene
            .netfix("status -o json")
            .exits(0)
            .warnings(&[("checkpoint-corrupt", "")])
            .names("checkpoint-corrupt", "", &["window.json"]);
        scene
            .netfix("pause")
            .exits(4)
            .errors(&[("window-open", "")]);
        scene.assert_held(KUBELET);
        assert_eq!(set_aside(&node).len(), number + 1);
        assert_eq!(scene.window().expect("a window")["command"], "pause");
        scene.netfix("status -o json").exits(0).warnings(&[]);
    }
    damages[1]();
    scene
        .netfix("resume -o json")
        .exits(0)
        .warnings(&[("checkpoint-corrupt", "")])
        .names("checkpoint-corrupt", "", &["window.json.damaged-5"]);
    scene.assert_whole();
    assert_eq!(scene.record()["closed_by"], "resume");
}

/// A window whose file is damaged and whose record in memory is removed; `aside` are the files that netfix has set aside then.
fn resume_keeps_the_file(scene: &Scene<'_>, options: &str, number: usize, aside: &[&str]) {
    scene
        .netfix(&format!("pause --deadline 5m {options}"))
        .exits(0);
    let path = scene.node.state_dir().join("window.json");
    let whole = fs::read_to_string(&path).expect("window.json");
    damages(&path, &whole)[number]();
    tool::run(scene.machine.exec("rm").args(["-rf", MEMORY]));
    let ran = scene.path("ran");
    let upgrade = format!("upgrade --yes --foreground -- touch {}", ran.display());
    for words in ["pause", &upgrade] {
        scene
            .netfix(words)
            .exits(4)
            .errors(&[("checkpoint-corrupt", "")])
            .names("checkpoint-corrupt", "", &["window.json", "netfix resume"]);
        scene.assert_held(KUBELET);
    }
    assert!(!ran.exists(), "COMMAND was run");
    scene
        .netfix("status")
        .exits(1)
        .errors(&[("checkpoint-corrupt", "")])
        .names("checkpoint-corrupt", "", &["window.json", "netfix resume"]);
    let newest = *aside.last().expect("a file is set aside");
    scene
        .netfix("resume")
        .exits(5)
        .errors(&[("checkpoint-corrupt", "")])
        .names("checkpoint-corrupt", "", &[newest]);
    assert_eq!(set_aside(scene.node), aside);
    scene.assert_whole();
    scene.netfix("resume").exits(0);
}

#[test]
fn without_any_record_resume_starts_kubelet_and_keeps_the_file() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let aside = ["window.json.damaged-1", "window.json.damaged-2"];
    resume_keeps_the_file(&scene, "--unit kubelet.service", 0, &aside[..1]);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
    resume_keeps_the_file(&scene, "", 3, &aside);
}

#[test]
fn a_unit_that_only_its_deadline_names_starts_as_well() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.machine.put(
        "/run/systemd/system/agent.service",
        "[Service]\nExecStart=/bin/sleep infinity\n",
    );
    for words in ["daemon-reload", "start agent.service"] {
        scene
            .machine
            .systemctl(words)
            .unwrap_or_else(|e| panic!("{e}"));
    }
    scene.netfix("pause --unit agent.service").exits(0);
    scene.assert_held("agent.service");
    fs::write(node.state_dir().join("window.json"), "{").expect("damage");
    tool::run(scene.machine.exec("rm").args(["-rf", MEMORY]));
    scene.netfix("resume").exits(5);
    scene.assert_runs("agent.service");
    scene.assert_whole();
}

#[test]
fn the_record_of_a_newer_netfix_is_left_to_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("pause --deadline 5m").exits(0);
    let path = node.state_dir().join("window.json");
    let whole = fs::read(&path).expect("window.json");
    let mut newer = kept::json(&whole);
    newer["schema"] = 99.into();
    newer["version"] = "98.7.6".into();
    fs::write(&path, kept::with_checksum(newer, "/checksum")).expect("a newer record");
    let before = fs::read(&path).expect("window.json");
    for words in ["resume", "pause", "upgrade --yes --foreground -- true"] {
        scene
            .netfix(words)
            .exits(4)
            .errors(&[("checkpoint-corrupt", "")])
            .names("checkpoint-corrupt", "", &["98.7.6", "schema 99"]);
        assert_eq!(fs::read(&path).expect("window.json"), before, "{words}");
        scene.assert_held(KUBELET);
    }
    assert_eq!(set_aside(&node), [""; 0]);
    fs::write(&path, whole).expect("the record");
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
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    assert_eq!(scene.masks(KUBELET), [""; 0]);
    fs::remove_file(node.state_dir().join("window.json")).expect("remove the file");
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}
