//! A full disk: if netfix finds it before the window, it changes nothing; if COMMAND fills it, the window continues.

use serde_json::Value;

use super::scene::{KUBELET, Scene, of_pods};
use crate::common::disk::Disk;
use crate::common::{Node, tool};

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
        format!("upgrade --dry-run -- touch {}", ran.display()),
        "pause".to_owned(),
    ] {
        scene.netfix(&words).exits(4).errors(&[("no-space", "")]);
        assert!(!ran.exists(), "COMMAND was run");
        assert_eq!(scene.touchable(), kubelet);
        scene.assert_runs(KUBELET);
    }
}

/// Everything that reads the record of the only window has its real end.
fn assert_well_for_every_reader(scene: &Scene<'_>, id: &str) {
    scene.netfix(&format!("wait {id}")).exits(0);
    let report = scene.netfix("report -o json").exits(0).json();
    assert_eq!(
        report["report"]["computed"]["verdict"], "well",
        "{report:#}"
    );
    assert_eq!(report["report"]["exit"], 0);
    assert_eq!(of_pods(&report["report"], "rebuilt"), [false, false]);
    scene
        .netfix("report")
        .stdout_has(&["All well"])
        .lacks("Died")
        .lacks("still open");
    let list = scene.netfix("report --list -o json").exits(0).json();
    assert_eq!(
        list["windows"].as_array().map(Vec::len),
        Some(1),
        "{list:#}"
    );
    let status = scene.netfix("status -o json").exits(0).json();
    assert_eq!(status["status"]["window"], Value::Null, "{status:#}");
    assert_eq!(status["status"]["last"]["id"], id);
    let textfile = scene.path("netfix.prom");
    scene.netfix(&format!("check --textfile {}", textfile.display()));
    let metrics = std::fs::read_to_string(textfile).expect("metrics");
    for line in [
        "netfix_window_open 0",
        "netfix_last_window_exit_code 0",
        "netfix_last_window_verdict{verdict=\"well\"} 1",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}: {metrics}");
    }
}

#[test]
fn if_command_fills_the_disk_the_record_is_complete_and_the_log_follows_when_there_is_space() {
    let node = Node::new();
    let disk = Disk::under(&node, SIZE);
    let scene = Scene::new(&node);
    let command = scene.script(
        "fills",
        &format!("echo it fills\n{}\n{}", disk.filling(), scene.reloading()),
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
    assert_eq!(record["exit"], 0);
    assert!(record["ended"].is_u64());
    let id = record["id"].as_str().expect("an id").to_owned();
    assert_well_for_every_reader(&scene, &id);
    let page = scene.path("page.html");
    scene
        .netfix(&format!("report --html {}", page.display()))
        .exits(0);
    assert!(
        std::fs::read_to_string(&page)
            .expect("a page")
            .contains("it fills")
    );
    disk.empty();
    scene.netfix("snapshot").exits(0);
    assert!(scene.log_of(&record).contains("it fills"));
    scene.assert_whole();
}

#[test]
fn if_the_state_directory_becomes_read_only_the_record_is_in_memory_until_it_can_be_written() {
    let node = Node::new();
    let _disk = Disk::under(&node, SIZE);
    let scene = Scene::new(&node);
    let state = node.state_dir().display().to_string();
    // A remount of the whole file system fails while netfix has the lock file open.
    let read_only = format!("mount --bind {state} {state}; mount -o remount,bind,ro {state}");
    let body = format!("{read_only}\n{}", scene.reloading());
    let run = scene.upgrade("-o json", &scene.script("remounts", &body));
    let run = run.exits(0).errors(&[]);
    assert_eq!(of_pods(&run.json(), "state"), ["restored", "restored"]);
    scene.assert_networks();
    scene.assert_runs(KUBELET);
    // The stale record is not published.
    assert_eq!(scene.records().len(), 0);
    let open = scene.window().expect("window.json");
    let id = open["id"].as_str().expect("an id").to_owned();
    assert_well_for_every_reader(&scene, &id);
    scene
        .netfix(&format!(
            "upgrade --yes --foreground -- touch {}",
            scene.path("ran").display()
        ))
        .exits(4);
    assert!(
        !scene.path("ran").exists(),
        "a window was opened without its record"
    );
    tool::run(scene.machine.exec("umount").arg(&state));
    scene.netfix("snapshot").exits(0);
    let record = scene.record();
    assert_eq!(
        (&record["exit"], &record["id"]),
        (&0.into(), &id.clone().into())
    );
    assert!(scene.log_of(&record).contains("netfix: "));
    scene.assert_whole();
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
