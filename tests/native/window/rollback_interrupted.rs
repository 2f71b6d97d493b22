//! A rollback that a signal, the deadline or a kill of netfix meets.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::rollback::{SOON, count, load, lose, marked, rollback};
use super::scene::{KUBELET, LOSING, Scene, hasty, phases};
use crate::common::Node;
use crate::common::background::wait_until;

#[test]
fn a_signal_that_ends_the_wait_for_the_nic_prevents_the_rollback() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let load = load(&scene);
    let upgrade = scene.start_upgrade(
        &format!("--nic-wait 60s --rollback {load} -o json"),
        &lose(&scene),
    );
    scene.wait_for_phase("restore");
    upgrade.signal(Signal::SIGINT);
    let run = upgrade.finish().exits(5);
    run.names("interrupted", "", &["rollback", "did not run"]);
    assert_eq!(count(&scene, "load-ran"), 0);
    assert_eq!(rollback(&scene.record()), &Value::Null);
    scene.assert_runs(KUBELET);
}

#[test]
fn a_signal_in_command_does_not_prevent_the_rollback() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let begun = scene.path("begun");
    let body = format!("{LOSING}\ntouch {}\nexec sleep 60", begun.display());
    let load = load(&scene);
    let command = marked(&scene, "lose", &body);
    let upgrade = scene.start_upgrade(&format!("{SOON} --rollback {load} -o json"), &command);
    scene.wait_for_file("begun");
    upgrade.signal(Signal::SIGTERM);
    upgrade.finish().exits(1).errors(&[
        ("command-failed", ""),
        ("interrupted", ""),
        ("rolled-back", ""),
    ]);
    scene.assert_whole();
    assert_eq!(count(&scene, "load-ran"), 1);
}

#[test]
fn a_signal_in_the_rollback_is_passed_on_to_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let body = scene.loading().replace('\n', "; ").replace('\'', "\"");
    let (begun, heard) = (scene.path("begun"), scene.path("heard"));
    let body = format!(
        "trap 'touch {}; {body}; exit 4' INT\ntouch {}\nwhile :; do sleep 0.05; done",
        heard.display(),
        begun.display()
    );
    let load = marked(&scene, "load", &body);
    let upgrade = scene.start_upgrade(&format!("{SOON} --rollback {load} -o json"), &lose(&scene));
    scene.wait_for_file("begun");
    upgrade.signal(Signal::SIGINT);
    upgrade.finish().exits(1).errors(&[
        ("rolled-back", ""),
        ("command-failed", ""),
        ("interrupted", ""),
    ]);
    assert!(heard.exists(), "the rollback heard nothing");
    scene.assert_whole();
    // The shell itself ends by the signal.
    let record = scene.record();
    let ended = ["exit", "signal"].map(|key| rollback(&record)[key].as_i64());
    assert!(
        [[Some(4), None], [None, Some(2)]].contains(&ended),
        "{record}"
    );
}

#[test]
fn a_deadline_that_passes_in_the_rollback_is_reported_and_the_pods_come_back() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let load = slow_load(&scene);
    let options = format!("{SOON} --deadline 10s --rollback {load} -o json");
    let upgrade = scene.start_upgrade(&options, &lose(&scene));
    scene.wait_for_phase("rollback");
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "the deadline never came"
    );
    fs::write(scene.path("go"), "").expect("a sign");
    let run = upgrade.finish().exits(5);
    run.errors(&[("kubelet-not-paused", ""), ("rolled-back", "")]);
    scene.assert_whole();
}

/// A rollback that waits for the file `go` before it brings the NIC back.
fn slow_load(scene: &Scene<'_>) -> String {
    let go = scene.path("go");
    let body = format!(
        "touch {}\nwhile [ ! -e {} ]; do sleep 0.05; done\n{}",
        scene.path("begun").display(),
        go.display(),
        scene.loading()
    );
    marked(scene, "load", &body)
}

#[test]
fn after_a_kill_in_the_rollback_the_next_upgrade_runs_neither_command_nor_rollback_again() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (load, lose) = (slow_load(&scene), lose(&scene));
    let options = format!("{SOON} --deadline 60s --rollback {load}");
    let upgrade = scene.start_upgrade(&options, &lose);
    scene.wait_for_file("begun");
    let is_noted = || {
        let window = scene.window().unwrap_or_default();
        window["rollback"]["process"].is_object()
    };
    assert!(wait_until(is_noted), "{:?}", scene.window());
    upgrade.kill();
    let pid = scene.window().expect("a window")["rollback"]["process"]["pid"].clone();
    scene.assert_held(KUBELET);
    let options = format!("{options} -o json");
    scene
        .upgrade(&options, &lose)
        .exits(4)
        .names("window-open", "", &["rollback"]);
    fs::write(scene.path("go"), "").expect("a sign");
    scene.wait_for_end(&pid.to_string());
    let rehearsed = scene
        .netfix(&hasty(&format!("--dry-run {options}"), &lose))
        .exits(0);
    rehearsed.names(
        "rolled-back",
        "",
        &["neither COMMAND nor the rollback runs again"],
    );
    let run = scene.upgrade(&options, &lose).exits(1);
    run.errors(&[("rolled-back", "")]);
    scene.assert_whole();
    assert_eq!(
        (count(&scene, "lose-ran"), count(&scene, "load-ran")),
        (1, 1)
    );
    let record = scene.record();
    assert_eq!(record["exit"], 1);
    let report = scene.netfix("report -o json").exits(0).json()["report"].clone();
    assert_eq!(report["computed"]["verdict"], "rolled-back", "{report}");
}

#[test]
fn after_a_kill_behind_a_useless_rollback_the_next_upgrade_does_not_repeat_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (useless, lose) = (marked(&scene, "load", "true"), lose(&scene));
    let options = format!("--nic-wait 2s --deadline 60s --rollback {useless}");
    let upgrade = scene.start_upgrade(&options, &lose);
    let is_over = || {
        let window = scene.window().unwrap_or_default();
        phases(&window).ends_with(&["rollback", "restore"].map(str::to_owned))
    };
    assert!(wait_until(is_over), "{:?}", scene.window());
    upgrade.kill();
    let options = format!("{SOON} --rollback {useless} -o json");
    let run = scene.upgrade(&options, &lose).exits(5);
    run.errors(&scene.nic_is_missing(&["rolled-back"]));
    assert_eq!(
        (count(&scene, "lose-ran"), count(&scene, "load-ran")),
        (1, 1)
    );
    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene.assert_whole();
}
