//! A full disk: if netfix finds it before the window, it changes nothing; if COMMAND fills it, the window continues.

use super::scene::{KUBELET, Scene, of_pods};
use crate::common::Node;
use crate::common::disk::Disk;

/// In bytes.
const SIZE: usize = 16 << 20;

#[test]
fn a_full_disk_is_found_before_the_window_and_kubelet_keeps_running() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let scene = Scene::new(&node);
    disk.fill();
    let kubelet = scene.touchable();
    let ran = scene.path("ran");
    for words in [
        format!("upgrade --yes --foreground -- touch {}", ran.display()),
        "pause".to_owned(),
    ] {
        scene.netfix(&words).exits(4).errors(&[("no-space", "")]);
        assert!(!ran.exists(), "COMMAND was run");
        assert_eq!(scene.touchable(), kubelet);
        scene.assert_runs(KUBELET);
    }
    disk.empty();
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}

#[test]
fn if_command_fills_the_disk_the_window_continues_and_the_last_saved_record_stays() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let scene = Scene::new(&node);
    let command = scene.script(
        "fills",
        &format!("{}\n{}", disk.filling(), scene.reloading()),
    );
    let run = scene
        .upgrade("-o json", &command)
        .exits(0)
        .errors(&[])
        .warnings(&[("no-space", "")]);
    assert_eq!(of_pods(&run.json(), "state"), ["restored", "restored"]);
    scene.assert_networks();
    scene.assert_runs(KUBELET);
    assert_eq!(scene.window(), None);
    let record = scene.record();
    assert_eq!(
        record["run"]["argv"][0]
            .as_str()
            .or(record["hold"]["unit"].as_str()),
        Some(&*if record["run"].is_null() {
            KUBELET.to_owned()
        } else {
            command
        })
    );
    disk.empty();
    // The next window is not affected.
    scene.netfix("status").exits(0);
    scene.netfix("report").exits(0);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
    assert_eq!(scene.records().len(), 2);
}

#[test]
fn resume_works_on_a_full_disk() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let scene = Scene::new(&node);
    scene.netfix("pause").exits(0);
    disk.fill();
    scene.netfix("resume -o json").exits(0).errors(&[]);
    scene.assert_runs(KUBELET);
    assert_eq!(scene.deadlines(), [""; 0]);
    assert_eq!(scene.window(), None);
    disk.empty();
    scene.netfix("pause").exits(0);
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}
