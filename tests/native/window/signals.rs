//! A signal in the middle of a window: COMMAND gets it too, the pods are restored, and kubelet starts again.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal::{self, SIGHUP, SIGINT, SIGTERM};
use serde_json::Value;

use super::beside::Beside;
use super::scene::{KUBELET, LOSING, Scene, codes, hasty, of_pods};
use crate::common::Node;
use crate::common::background::{HANG, wait_until};
use crate::common::systemd::PACKAGES;

/// A script as the action of a trap.
fn on_one_line(script: &str) -> String {
    script.replace('\n', "; ").replace('\'', "\"")
}

/// Loses the NIC, waits for a signal or a file, returns the NIC.
fn patient_reload(scene: &Scene<'_>, trap: &str) -> String {
    let (begun, go) = (scene.path("begun"), scene.path("go"));
    let body = format!(
        "{trap}\n{}\ntouch {}\nwhile [ ! -e {} ]; do sleep 0.05; done\n{}",
        LOSING,
        begun.display(),
        go.display(),
        scene.loading()
    );
    scene.script("patient", &body)
}

/// Removes these files, for the next window of a scene.
fn forget(scene: &Scene<'_>, names: &[&str]) {
    for name in names {
        std::fs::remove_file(scene.path(name)).expect("a file of the last window");
    }
}

/// The record of the newest window, beside so many earlier ones.
fn newest(scene: &Scene<'_>, earlier: usize) -> Value {
    let mut all = scene.records();
    assert_eq!(all.len(), earlier + 1, "{all:?}");
    all.pop().expect("a record")
}

#[test]
fn command_gets_the_signal_too_and_everything_is_restored() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let heard = scene.path("heard");
    for (earlier, signal) in [SIGINT, SIGTERM].into_iter().enumerate() {
        let trap = |name: &str| {
            format!(
                "trap 'echo {name} >{0}; {1}; exit 3' {name}",
                heard.display(),
                on_one_line(&scene.loading())
            )
        };
        let command = patient_reload(&scene, &format!("{}\n{}", trap("INT"), trap("TERM")));
        let upgrade = scene.start_upgrade("", &command);
        scene.wait_for_file("begun");
        upgrade.signal(signal);
        // What it claims of the pods was seen.
        let said = format!("{signal} interrupted COMMAND; 2 of 2 pods restored");
        upgrade.finish().exits(1).stdout_has(&[&said]);
        let name = std::fs::read_to_string(&heard).expect("COMMAND heard nothing");
        assert_eq!(format!("SIG{}", name.trim()), signal.as_str());
        scene.assert_whole();
        let record = newest(&scene, earlier);
        let mut errors = codes(&record, "error");
        errors.sort();
        assert_eq!(errors, ["command-failed", "interrupted"], "{record}");
        assert_eq!(
            (&record["exit"], &record["run"]["exit"]),
            (&1.into(), &3.into())
        );
        assert_eq!(of_pods(&record, "state"), ["restored", "restored"]);
        forget(&scene, &["begun", "heard"]);
    }
}

fn signals_at_the_terminal_reach_the_unit(scene: &Scene<'_>) {
    let command = patient_reload(
        scene,
        &format!("trap '{}; exit 0' INT", on_one_line(&scene.loading())),
    );
    let upgrade = scene.start(&format!(
        "upgrade --yes --watch 0s --answer-wait 2s -o json -- {command}"
    ));
    scene.wait_for_file("begun");
    upgrade.signal(SIGINT);
    upgrade.finish().exits(1).errors(&[("interrupted", "")]);
    scene.assert_whole();
}

fn a_stopped_unit_ends_in_an_orderly_way(scene: &Scene<'_>) {
    let command = patient_reload(
        scene,
        &format!("trap '{}; exit 0' TERM", on_one_line(&scene.loading())),
    );
    let upgrade = scene.start(&hasty("-o json", &command));
    scene.wait_for_file("begun");
    scene
        .machine
        .systemctl("stop netfix-upgrade.service")
        .unwrap_or_else(|e| panic!("{e}"));
    upgrade.finish().exits(1).errors(&[("interrupted", "")]);
    scene.assert_whole();
}

#[test]
fn signals_at_the_terminal_and_a_stop_reach_the_unit() {
    let node = Node::new();
    let scene = Scene::new(&node);
    signals_at_the_terminal_reach_the_unit(&scene);
    forget(&scene, &["begun"]);
    a_stopped_unit_ends_in_an_orderly_way(&scene);
}

#[test]
fn a_lost_terminal_does_not_affect_the_unit() {
    let node = Node::new();
    let scene = Scene::new(&node);
    for (earlier, signal) in [SIGHUP, Signal::SIGKILL].into_iter().enumerate() {
        let command = patient_reload(&scene, "");
        let upgrade = scene.start(&format!(
            "upgrade --yes --watch 0s --answer-wait 2s -- {command}"
        ));
        scene.wait_for_file("begun");
        upgrade.signal(signal);
        drop(upgrade);
        scene.assert_held(KUBELET);
        std::fs::write(scene.path("go"), "").expect("a sign");
        let closed = wait_until(|| scene.window().is_none() && scene.records().len() > earlier);
        assert!(closed, "the window does not end: {:?}", scene.window());
        scene.assert_whole();
        assert_eq!(newest(&scene, earlier)["exit"], 0);
        forget(&scene, &["begun", "go"]);
    }
}

#[test]
fn a_lost_terminal_does_not_affect_any_phase() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = patient_reload(&scene, "");
    let mut upgrade = scene.start_upgrade("--watch 1s", &command);
    let mut signals = 0;
    let began = Instant::now();
    while !upgrade.has_ended() {
        assert!(
            began.elapsed() < HANG,
            "it does not end:\n{}",
            upgrade.stderr()
        );
        // Before its first output it may not ignore the signal yet.
        if !upgrade.stderr().is_empty() {
            upgrade.try_signal(SIGHUP);
            signals += 1;
        }
        if scene.path("begun").exists() && signals > 20 {
            std::fs::write(scene.path("go"), "").expect("a sign");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    upgrade.finish().exits(0);
    assert!(signals > 50, "{signals} signals are few");
    scene.assert_whole();
    assert_eq!(scene.record()["exit"], 0);
}

/// COMMAND as a signal names it: with its pid.
fn assert_said(scene: &Scene<'_>, upgrade: &Beside, text: &str) {
    upgrade.wait_for(text);
    let pid = scene.window().expect("a window")["run"]["process"]["pid"].clone();
    let line = format!("{text} (pid {pid})");
    assert!(upgrade.stderr().contains(&line), "{}", upgrade.stderr());
}

#[test]
fn each_signal_in_command_says_at_once_what_it_did_and_the_third_ends_one_that_ignores_them() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = patient_reload(&scene, "trap '' INT TERM");
    let upgrade = scene.start(&hasty("--nic-wait 300ms", &command));
    scene.wait_for_file("begun");
    for (signal, text) in [
        (SIGINT, "SIGINT passed to COMMAND"),
        (SIGTERM, "SIGTERM passed to COMMAND"),
        (SIGINT, "SIGINT: COMMAND killed"),
    ] {
        assert_eq!(
            scene.phase().as_deref(),
            Some("command"),
            "it was ended too early"
        );
        upgrade.signal(signal);
        assert_said(&scene, &upgrade, text);
    }
    let run = upgrade
        .finish()
        .exits(5)
        .stderr_has(&["; netfix restores the pods when it ends; a third one kills it"])
        .stdout_has(&["SIGINT interrupted COMMAND; 0 of 2 pods restored"]);
    assert_eq!(run.err.matches("a third one kills it").count(), 2);
    let record = scene.record();
    assert_eq!(record["run"]["signal"], 9, "{record}");
    let log = scene.log_of(&record);
    assert!(log.contains("SIGINT: COMMAND killed"), "{log}");
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
}

#[test]
fn a_signal_in_a_hook_says_who_got_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (begun, kubelet) = (scene.path("begun"), scene.touchable());
    let slow = scene.script("slow", &format!("touch {}\nsleep 60", begun.display()));
    let upgrade = scene.start_upgrade(&format!("--before {slow}"), "true");
    scene.wait_for_file("begun");
    upgrade.signal(SIGTERM);
    upgrade.wait_for("SIGTERM passed to --before (pid ");
    upgrade
        .finish()
        .exits(4)
        .stderr_has(&["; a third one kills it"]);
    scene.assert_untouched(&kubelet);
}

#[test]
fn signals_count_for_each_command_anew() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let heard = scene.path("heard");
    let begun = scene.path("after-begun");
    let command = patient_reload(
        &scene,
        &format!("trap 'exit 3' TERM\ntrap 'echo >>{}' INT", heard.display()),
    );
    let after = scene.script(
        "after",
        &format!(
            "trap 'exit 0' TERM\ntouch {}\nwhile :; do sleep 0.05; done",
            begun.display()
        ),
    );
    let upgrade = scene.start_upgrade(&format!("--nic-wait 300ms --after {after}"), &command);
    scene.wait_for_file("begun");
    upgrade.signal(SIGINT);
    assert!(wait_until(|| heard.exists()));
    upgrade.signal(SIGTERM);
    scene.wait_for_file("after-begun");
    upgrade.signal(SIGTERM);
    let run = upgrade.finish().exits(5);
    run.stderr_has(&["SIGTERM passed to --after"])
        .lacks("killed (pid");
}

#[test]
fn without_a_kubelet_nothing_says_that_it_starts_or_runs() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    let command = patient_reload(&scene, "");
    let upgrade = scene.start_upgrade("--nic-wait 300ms", &command);
    scene.wait_for_file("begun");
    upgrade.signal(SIGTERM);
    let run = upgrade.finish().exits(5);
    run.stderr_has(&["2 pods not restored:"])
        .stdout_has(&["0 of 2 pods restored"])
        .lacks("dockershim")
        .lacks("is about to start")
        .lacks("kubelet is")
        .lacks("resumed kubelet")
        .lacks("no unit found");
    let run = scene.upgrade("--nic-wait 300ms --no-pause --force", "true");
    run.lacks("kubelet: is not paused");
}

#[test]
fn during_the_wait_for_the_nic_a_signal_ends_the_wait_and_kubelet_runs() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade("--nic-wait 15m -o json", &scene.script("lose", LOSING));
    scene.wait_for_phase("restore");
    // Most often the wait has begun by then; before it, the signal ends it as well.
    std::thread::sleep(Duration::from_millis(500));
    upgrade.signal(SIGINT);
    upgrade.wait_for("SIGINT: netfix");
    let run = upgrade.finish().exits(5);
    run.errors(&scene.nic_is_missing(&["interrupted"]));
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
}

#[test]
fn while_pods_are_watched_a_signal_ends_the_watch_and_the_result_shows_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade("--watch 60s -o json", &scene.reload());
    scene.wait_for_phase("proof");
    upgrade.signal(SIGTERM);
    upgrade.wait_for("SIGTERM: netfix stops watching the pods");
    upgrade.finish().exits(1).errors(&[("interrupted", "")]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(record["exit"], 1);
    assert_eq!(codes(&record, "error"), ["interrupted"]);
    let proof = record["phases"]
        .as_array()
        .and_then(|all| all.last().cloned())
        .expect("a phase");
    assert_eq!(
        (&proof["name"], &proof["ok"]),
        (&"proof".into(), &false.into())
    );
}

/// A scene whose kubelet is such a service.
fn with_kubelet<'n>(node: &'n Node, service: &str) -> Scene<'n> {
    let scene = Scene::without_kubelet(node);
    let machine = &scene.machine;
    machine.put(
        &format!("{PACKAGES}/{KUBELET}"),
        &format!("[Service]\n{service}\n"),
    );
    machine.systemctl("daemon-reload").expect("a reload");
    machine.systemctl("start kubelet.service").expect("a start");
    scene
}

#[test]
fn a_signal_while_kubelet_stops_prevents_command() {
    let node = Node::new();
    let scene = with_kubelet(
        &node,
        "ExecStart=/bin/sleep infinity\nExecStop=/bin/sleep 1",
    );
    let marker = scene.path("ran");
    let upgrade = scene.start_upgrade("-o json", &format!("touch {}", marker.display()));
    scene.wait_for_phase("pause");
    upgrade.signal(SIGINT);
    upgrade.finish().exits(4).errors(&[("interrupted", "")]);
    assert!(!marker.exists(), "COMMAND was run");
    scene.assert_whole();
    assert!(scene.record()["run"].is_null());
}

#[test]
fn a_signal_during_the_snapshot_stops_the_window() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (kubelet, ran) = (scene.touchable(), scene.path("ran"));
    // Each file is slow to write.
    let trace = [
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-e",
        "inject=fsync:delay_enter=200000",
    ];
    let words = hasty("--foreground -o json", &format!("touch {}", ran.display()));
    let upgrade = Beside::start(&scene, scene.under(&trace, &words));
    upgrade.wait_for("taking a snapshot");
    let lock = std::fs::read_to_string(node.state_dir().join("lock")).expect("the lock's file");
    let pid = lock
        .split_whitespace()
        .nth(1)
        .and_then(|pid| pid.parse().ok());
    assert!(
        scene
            .machine
            .signal(pid.unwrap_or_else(|| panic!("no pid in {lock:?}")), SIGINT)
    );
    upgrade.finish().exits(4).errors(&[("interrupted", "")]);
    assert!(!ran.exists(), "COMMAND was run");
    scene.assert_untouched(&kubelet);
}

#[test]
fn a_signal_while_kubelet_starts_does_not_interrupt_the_start() {
    let node = Node::new();
    let scene = with_kubelet(
        &node,
        "ExecStartPre=/bin/sleep 1\nExecStart=/bin/sleep infinity",
    );
    let upgrade = scene.start_upgrade("-o json", &scene.reload());
    scene.wait_for_phase("resume");
    upgrade.signal(SIGTERM);
    upgrade.finish().exits(1).errors(&[("interrupted", "")]);
    scene.assert_whole();
    assert_eq!(of_pods(&scene.record(), "state"), ["restored", "restored"]);
}
