//! The next command after a death: the same on every screen, and what `resume` refuses.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::scene::{KUBELET, LOSING, Scene};
use crate::common::background::wait_until;
use crate::common::{Node, Run, tool};

const RESTORE: &str = "Run `netfix restore`, then `netfix resume`";
const START: &str = "Run `netfix resume`, which starts kubelet.service";
const CLOSE: &str = "Run `netfix resume`, which closes the record";

/// A window whose netfix was killed while COMMAND ran, after the NIC was lost and came back. COMMAND still runs.
fn killed<'n>(node: &'n Node, deadline: &str) -> Scene<'n> {
    let scene = Scene::new(node);
    let body = format!(
        "{LOSING}\n{}\ntouch {}\nexec sleep 600 </dev/null >/dev/null 2>&1",
        scene.loading(),
        scene.path("begun").display()
    );
    let command = scene.script("waits", &body);
    let upgrade = scene.start_upgrade(&format!("--deadline {deadline}"), &command);
    scene.wait_for_file("begun");
    scene.command_pid();
    upgrade.kill();
    scene
}

fn status(scene: &Scene<'_>) -> Value {
    let status = scene.netfix("status -o json").exits(0).json();
    status["status"]["window"].clone()
}

fn sentence(scene: &Scene<'_>) -> String {
    let report = scene.netfix("report -o json").exits(0).json();
    let text = report["report"]["computed"]["sentence"].as_str();
    text.expect("a sentence").to_owned()
}

/// What `check` has about the window: its exit code and message.
fn check(scene: &Scene<'_>) -> (Option<i32>, String) {
    let run = scene.netfix("check -o json");
    let found = run.coded("window-open").pop();
    (run.code, found.map_or_else(String::new, |one| one.message))
}

/// Every screen has this next command, and none of these words.
#[track_caller]
fn every_screen_says(scene: &Scene<'_>, next: &str, exit: i32, never: &[&str]) {
    let (code, checked) = check(scene);
    let on_screens = [
        scene.netfix("status").exits(0).out,
        sentence(scene),
        checked,
    ];
    for text in on_screens {
        assert!(text.contains(next), "{next}: {text}");
        for word in never {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    assert_eq!(code, Some(exit));
    let commands = next.split('`').skip(1).step_by(2);
    let stated: Vec<Value> = commands.map(Value::from).collect();
    let of_status = status(scene)["next"]["commands"].clone();
    assert_eq!(of_status, Value::from(stated));
}

/// What `explain` says of an open window has these next commands.
fn assert_explained(scene: &Scene<'_>, all: &[&str]) {
    let explained = scene.netfix("explain window-open").exits(0).out;
    let explained = explained.split_whitespace().collect::<Vec<_>>().join(" ");
    for next in all {
        let in_words = next.trim_start_matches("Run ").split(", which").next();
        assert!(
            explained.contains(in_words.expect("commands")),
            "{explained}"
        );
    }
}

/// `resume` changes nothing, and names this and the next command.
#[track_caller]
fn resume_refuses(scene: &Scene<'_>, names: &[&str]) -> Run {
    let (window, kubelet) = (scene.window(), scene.touchable());
    let run = scene.netfix("resume").exits(4).stderr_has(names);
    let run = run.stderr_has(&["--force", "`netfix restore`, then `netfix resume`"]);
    assert_eq!((scene.window(), scene.touchable()), (window, kubelet));
    run
}

#[test]
fn while_command_has_outlived_netfix_every_screen_names_its_process_and_resume_refuses() {
    let node = Node::new();
    let scene = killed(&node, "300s");
    let pid = scene.command_pid();
    let running = format!("COMMAND still runs (pid {pid})");
    every_screen_says(
        &scene,
        "`netfix restore`, then `netfix resume`",
        2,
        &["the unit kubelet.service is paused"],
    );
    for text in [sentence(&scene), check(&scene).1] {
        assert!(text.contains(&running), "{text}");
        assert!(text.contains(&format!("`kill {pid}`")), "{text}");
    }
    let shown = scene.netfix("status").out;
    let line = shown.lines().find(|line| line.starts_with("command "));
    let line = line.expect("COMMAND");
    assert!(
        line.contains(&format!("waits, pid {pid}, runs for ")),
        "{line}"
    );
    let next = status(&scene)["next"].clone();
    assert_eq!(next["step"], "wait-for-command", "{next}");
    assert_eq!(next["running"]["pid"], pid, "{next}");
    // Pods that are back change nothing: COMMAND may take their network again.
    resume_refuses(&scene, &[&running]);
    scene.netfix("restore").exits(0);
    resume_refuses(&scene, &[&running]);
    scene.assert_held(KUBELET);
    scene.netfix("resume --force").exits(0);
    assert!(scene.machine.is_alive(pid), "COMMAND was stopped");
    scene.assert_whole();
    assert!(scene.machine.signal(pid, Signal::SIGKILL));
}

#[test]
fn while_pods_are_lost_every_screen_names_restore_first_whether_kubelet_is_held_or_runs() {
    let node = Node::new();
    let scene = killed(&node, "300s");
    scene.end_command();
    every_screen_says(&scene, RESTORE, 2, &["the unit kubelet.service is paused"]);
    assert!(scene.netfix("report").exits(0).out.contains(RESTORE));
    assert_explained(&scene, &[RESTORE, START, CLOSE]);
    let text = sentence(&scene);
    assert!(
        text.contains("kubelet.service is stopped and masked"),
        "{text}"
    );
    assert!(text.contains("2 pods have lost their network"), "{text}");
    let names = [0, 1].map(|at| scene.pods[at].name());
    resume_refuses(&scene, &names);
    scene.assert_held(KUBELET);
    scene.netfix("restore").exits(0);
    every_screen_says(&scene, START, 2, &["netfix restore`"]);
    // kubelet is started by hand.
    for words in ["unmask --runtime kubelet.service", "start kubelet.service"] {
        let done = scene.machine.systemctl(words);
        done.unwrap_or_else(|e| panic!("{e}"));
    }
    every_screen_says(&scene, CLOSE, 1, &["is stopped"]);
    scene.pods[0].ip("link del eth0");
    every_screen_says(&scene, RESTORE, 2, &["is stopped"]);
    resume_refuses(&scene, &[scene.pods[0].name()]);
    scene.netfix("restore").exits(0);
    scene.netfix("resume").exits(0);
    scene.assert_whole();
    assert_eq!(check(&scene), (Some(0), String::new()));
}

#[test]
fn after_the_deadline_has_restored_all_only_the_record_is_left() {
    let node = Node::new();
    let scene = killed(&node, "12s");
    scene.end_command();
    let runs = wait_until(|| scene.runs(KUBELET));
    assert!(runs, "{}", scene.machine.systemd_state());
    scene.assert_networks();
    let kubelet = scene.touchable();
    let never = ["netfix restore`", "is paused", "not resumed", "is stopped"];
    every_screen_says(&scene, CLOSE, 1, &never);
    let text = sentence(&scene);
    assert!(text.contains("kubelet.service runs"), "{text}");
    scene.netfix("resume").exits(0);
    assert_eq!(scene.touchable(), kubelet, "kubelet was started again");
    scene.assert_whole();
}

#[test]
fn resume_refuses_to_start_a_kubelet_that_was_paused_by_hand_over_lost_pods() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    scene.netfix("pause").exits(0);
    let lose = scene.script("lose", &scene.reloading());
    tool::run(scene.machine.exec("sh").arg("-e").arg(lose));
    let names = [0, 1].map(|at| scene.pods[at].name());
    resume_refuses(&scene, &names);
    every_screen_says(&scene, RESTORE, 2, &[]);
    scene.assert_held(KUBELET);
    scene.netfix("restore").exits(0);
    every_screen_says(&scene, START, 1, &["netfix restore`"]);
    assert!(check(&scene).1.contains("by hand"));
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}

#[test]
fn pods_that_no_checkpoint_can_restore_leave_only_a_resume_by_force() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("pause").exits(0);
    tool::run(scene.machine.exec("ip").args(["link", "del", "eth0"]));
    let names = [0, 1].map(|at| scene.pods[at].name());
    let run = scene.netfix("resume").exits(4).stderr_has(&names);
    run.stderr_has(&["Run `netfix resume --force`"])
        .lacks("netfix restore`");
    scene
        .netfix("status")
        .exits(0)
        .stdout_has(&["Run `netfix resume --force`"]);
    scene.assert_held(KUBELET);
    scene.netfix("resume --force");
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
}

#[test]
fn resume_starts_kubelet_over_lost_pods_with_force_or_at_the_deadline() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.netfix("snapshot").exits(0);
    for forced in [true, false] {
        let deadline = if forced { "300s" } else { "5s" };
        scene
            .netfix(&format!("pause --deadline {deadline}"))
            .exits(0);
        tool::run(scene.machine.exec("ip").args(["link", "del", "eth0"]));
        if forced {
            resume_refuses(&scene, &[scene.pods[0].name()]);
            scene.netfix("resume --force");
        } else {
            let runs = wait_until(|| scene.runs(KUBELET));
            assert!(runs, "{}", scene.machine.systemd_state());
            scene.netfix("resume").exits(4);
            scene.netfix("resume --force");
        }
        scene.assert_runs(KUBELET);
        scene.assert_nothing_left();
        scene.load_driver();
        scene.netfix("restore").exits(0);
    }
    scene.assert_whole();
    let records = scene.records();
    let of_windows = records.iter().filter(|record| record["kind"].is_null());
    assert_eq!(of_windows.count(), 2);
    assert!(fs::metadata(node.state_dir().join("window.json")).is_err());
}
