//! `pause` and `resume` on all kinds of units; and units that neither of them changes.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::scene::{FOLDERS, KUBELET, Scene, phases};
use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::run::Run;
use crate::common::systemd::PACKAGES;
use crate::common::{Node, ReportedProblem, tool};

pub const PLAIN: &str = "[Service]\nExecStart=/bin/sleep infinity\n";

/// Installs a unit of a package and starts it.
pub fn install(scene: &Scene<'_>, unit: &str, text: &str) {
    scene.machine.put(&format!("{PACKAGES}/{unit}"), text);
    for words in ["daemon-reload", &format!("start {unit}")] {
        scene
            .machine
            .systemctl(words)
            .unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Stops a unit and removes its file, so that another one can have its name.
pub fn remove(scene: &Scene<'_>, unit: &str) {
    let systemctl = |words: &str| {
        scene
            .machine
            .systemctl(words)
            .unwrap_or_else(|e| panic!("{e}"));
    };
    systemctl(&format!("stop {unit}"));
    let files = FOLDERS.map(|folder| format!("{folder}/{unit}"));
    tool::run(scene.machine.exec("rm").arg("-f").args(files));
    systemctl("daemon-reload");
    // systemd limits how often a unit starts.
    systemctl("reset-failed");
}

/// Without a unit to pause, netfix prints a note with the unit and the reason, and no error.
fn finds_no_unit(run: &Run, unit: &str, word: &str) {
    assert!(
        !run.problems().iter().any(ReportedProblem::is_error),
        "{}",
        run.transcript()
    );
    let notes = run.coded("not-found");
    let is_it = |note: &ReportedProblem| note.object == unit && note.message.contains(word);
    assert!(
        notes.iter().any(is_it),
        "{unit} {word}\n{}",
        run.transcript()
    );
}

/// A pause that holds the unit, and a resume that leaves only a good record, which it returns.
fn pause_and_resume(scene: &Scene<'_>, unit: &str) -> Value {
    let earlier = scene.records().len();
    let begin = Instant::now();
    scene.netfix("pause").exits(0);
    let bound = u64::try_from(begin.elapsed().as_millis()).expect("a moment") + 1;
    scene.assert_held(unit);
    let hold = scene.window().expect("an open window")["hold"].clone();
    assert_eq!(hold["unit"], unit, "{hold}");
    scene.netfix("resume").exits(0);
    scene.assert_runs(unit);
    scene.assert_nothing_left();
    let record = scene.records().pop().expect("a record");
    let hold = &record["hold"];
    let at = |name: &str| {
        hold[name]
            .as_u64()
            .unwrap_or_else(|| panic!("no {name}: {record}"))
    };
    assert!(
        at("armed") <= at("paused") && at("paused") <= at("resumed"),
        "{record}"
    );
    assert!(at("paused") <= bound, "a pause within {bound} ms: {record}");
    assert_eq!(
        (&record["exit"], &record["closed_by"]),
        (&0.into(), &"resume".into()),
        "{record}"
    );
    assert_eq!(phases(&record), ["pause", "resume"]);
    scene.netfix("resume").exits(0).errors(&[]);
    assert_eq!(scene.records().len(), earlier + 1);
    record
}

fn of_a_package_and_of_the_administrator(scene: &Scene<'_>) {
    for folder in FOLDERS {
        scene.machine.start_kubelet(folder);
        pause_and_resume(scene, KUBELET);
        scene.assert_networks();
        remove(scene, KUBELET);
    }
}

fn one_that_fails_at_its_stop(scene: &Scene<'_>) {
    let text = format!("{PLAIN}KillSignal=SIGUSR1\nRestart=on-failure\n");
    install(scene, KUBELET, &text);
    scene
        .machine
        .systemctl("stop kubelet.service")
        .expect("a stop");
    assert_eq!(
        scene.state(KUBELET).1,
        "failed",
        "the unit is not one that fails"
    );
    scene
        .machine
        .systemctl("start kubelet.service")
        .expect("a start");
    pause_and_resume(scene, KUBELET);
    remove(scene, KUBELET);
}

fn one_with_restart_always(scene: &Scene<'_>) {
    install(
        scene,
        KUBELET,
        &format!("{PLAIN}Restart=always\nRestartSec=100ms\n"),
    );
    scene.netfix("pause").exits(0);
    std::thread::sleep(Duration::from_millis(500));
    scene.assert_held(KUBELET);
    scene.netfix("resume").exits(0);
    let pid = scene.machine.unit(KUBELET, "MainPID");
    tool::run(scene.machine.exec("kill").args(["-KILL", &pid]));
    let again = || scene.runs(KUBELET) && scene.machine.unit(KUBELET, "MainPID") != pid;
    assert!(wait_until(again), "{}", scene.machine.systemd_state());
    scene.assert_nothing_left();
    remove(scene, KUBELET);
}

fn one_that_crashes_again_and_again(scene: &Scene<'_>) {
    let text = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=300ms\n";
    install(scene, KUBELET, text);
    let restarts = || {
        scene
            .machine
            .unit(KUBELET, "NRestarts")
            .parse::<u32>()
            .unwrap_or_default()
    };
    assert!(
        wait_until(|| restarts() > 1),
        "{}",
        scene.machine.systemd_state()
    );
    scene.netfix("pause").exits(0);
    scene.assert_held(KUBELET);
    let held = scene
        .machine
        .unit(KUBELET, "InactiveEnterTimestampMonotonic");
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(
        scene
            .machine
            .unit(KUBELET, "InactiveEnterTimestampMonotonic"),
        held,
        "it was started"
    );
    scene.netfix("resume").exits(0);
    let before = restarts();
    assert!(
        wait_until(|| restarts() > before),
        "{}",
        scene.machine.systemd_state()
    );
    assert_eq!(
        (scene.state(KUBELET).0, scene.masks(KUBELET)),
        ("loaded".to_owned(), Vec::new())
    );
    scene.assert_nothing_left();
    remove(scene, KUBELET);
}

/// The process that the unit starts beside its own, which stays.
fn start_with_a_child(scene: &Scene<'_>, folder: &str) -> u32 {
    let child = scene.path("child");
    let script = scene.script(
        "k3s",
        &format!(
            "[ -e {0} ] || {{ setsid sleep 600 & echo $! >{0}; }}\nexec sleep infinity",
            child.display()
        ),
    );
    scene.machine.put(
        &format!("{folder}/k3s.service"),
        &format!("[Service]\nExecStart={script}\nKillMode=process\n"),
    );
    scene.machine.systemctl("daemon-reload").expect("a reload");
    scene
        .machine
        .systemctl("start k3s.service")
        .expect("a start");
    assert!(wait_until(
        || fs::read_to_string(&child).is_ok_and(|pid| !pid.is_empty())
    ));
    let pid = fs::read_to_string(&child).expect("a pid");
    pid.trim().parse().expect("a number")
}

fn ones_that_leave_processes_running_which_survive(scene: &Scene<'_>) {
    for folder in FOLDERS {
        let pid = start_with_a_child(scene, folder);
        pause_and_resume(scene, "k3s.service");
        assert!(
            scene.machine.is_alive(pid),
            "{folder}: the container is dead"
        );
        assert!(scene.machine.signal(pid, Signal::SIGKILL));
        scene.wait_for_end(&pid.to_string());
        fs::remove_file(scene.path("child")).expect("its pid");
        remove(scene, "k3s.service");
    }
}

fn one_that_stops_slowly_and_is_waited_for(scene: &Scene<'_>) {
    let text = "[Service]\nExecStart=/bin/sleep infinity\nExecStop=/bin/sleep 2\n";
    install(scene, "k3s-agent.service", text);
    let begin = Instant::now();
    let record = pause_and_resume(scene, "k3s-agent.service");
    assert!(
        begin.elapsed() >= Duration::from_secs(2),
        "the unit is not slow"
    );
    let paused = record["hold"]["paused"].as_u64().expect("a moment");
    assert!(paused >= 2000, "it was not yet stopped after {paused} ms");
}

#[test]
fn units_of_all_kinds_are_paused_and_resumed() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    of_a_package_and_of_the_administrator(&scene);
    one_that_fails_at_its_stop(&scene);
    one_with_restart_always(&scene);
    one_that_crashes_again_and_again(&scene);
    ones_that_leave_processes_running_which_survive(&scene);
    one_that_stops_slowly_and_is_waited_for(&scene);
}

fn a_running_unit_that_could_not_be_restarted_is_refused(scene: &Scene<'_>) {
    scene
        .machine
        .systemctl("mask --runtime kubelet.service")
        .expect("a mask");
    let (state, touchable) = (scene.state(KUBELET), scene.touchable());
    assert_eq!(state, ("masked".to_owned(), "active".to_owned()));
    let marker = scene.path("ran");
    for run in [
        scene.netfix("pause"),
        scene.upgrade("", &format!("touch {}", marker.display())),
    ] {
        run.exits(4).errors(&[("kubelet-not-paused", "")]).names(
            "kubelet-not-paused",
            "",
            &[KUBELET],
        );
    }
    assert_eq!(
        (scene.state(KUBELET), scene.touchable()),
        (state, touchable)
    );
    assert!(!marker.exists(), "COMMAND was run");
    scene.assert_nothing_left();
}

fn a_stopped_unit_is_left_unchanged(scene: &Scene<'_>) {
    for masked in [false, true] {
        if masked {
            scene
                .machine
                .systemctl("mask --runtime kubelet.service")
                .expect("a mask");
        }
        let (state, masks) = (scene.state(KUBELET), scene.masks(KUBELET));
        let word = if masked { "masked" } else { "" };
        finds_no_unit(&scene.netfix("pause").exits(0), KUBELET, word);
        if masked {
            let run = scene.upgrade("-o json", &scene.reload()).exits(0);
            finds_no_unit(&run, KUBELET, word);
            assert_eq!(run.json()["exit"], 0);
            scene.assert_networks();
            assert!(scene.record()["hold"].is_null());
        }
        assert_eq!((scene.state(KUBELET), scene.masks(KUBELET)), (state, masks));
        scene.netfix("resume").exits(0).errors(&[]);
        scene.assert_nothing_left();
    }
}

#[test]
fn a_masked_unit_is_refused_while_it_runs_and_a_stopped_one_is_left_unchanged() {
    let node = Node::new();
    let scene = Scene::new(&node);
    a_running_unit_that_could_not_be_restarted_is_refused(&scene);
    for words in ["unmask --runtime kubelet.service", "stop kubelet.service"] {
        scene.machine.systemctl(words).expect("no mask and a stop");
    }
    let stopped = ("loaded".to_owned(), "inactive".to_owned());
    assert_eq!(scene.state(KUBELET), stopped);
    a_stopped_unit_is_left_unchanged(&scene);
}

#[test]
fn without_kubelet_pause_reports_it_and_upgrade_continues() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    finds_no_unit(&scene.netfix("pause").exits(0), "kubelet", "");
    scene.assert_nothing_left();
    scene
        .netfix("pause --unit missing")
        .exits(4)
        .errors(&[("kubelet-not-paused", "")])
        .names("kubelet-not-paused", "", &["missing.service"]);
    let marker = scene.path("ran");
    let run = scene.upgrade("--unit missing", &format!("touch {}", marker.display()));
    run.exits(4).errors(&[("kubelet-not-paused", "")]).names(
        "kubelet-not-paused",
        "",
        &["missing.service"],
    );
    assert!(!marker.exists(), "COMMAND was run");
    let upgraded = scene.upgrade("-o json", &scene.reload()).exits(0);
    finds_no_unit(&upgraded, "kubelet", "");
    scene.assert_networks();
    scene.assert_nothing_left();
    assert!(scene.record()["hold"].is_null());
}

#[test]
fn with_two_running_units_the_user_must_select_one() {
    let node = Node::new();
    let scene = Scene::new(&node);
    install(&scene, "k3s.service", PLAIN);
    let touchable = scene.touchable();
    scene
        .netfix("pause")
        .exits(4)
        .errors(&[("kubelet-not-paused", "")])
        .names(
            "kubelet-not-paused",
            "",
            &["kubelet.service", "k3s.service", "--unit"],
        );
    assert_eq!(scene.touchable(), touchable);
    scene.assert_runs("k3s.service");
    scene.assert_nothing_left();
    scene.netfix("pause --unit k3s").exits(0);
    scene.assert_held("k3s.service");
    assert_eq!(scene.touchable(), touchable, "the other one was touched");
    scene.netfix("resume").exits(0);
    scene.assert_runs("k3s.service");
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
}

#[test]
fn without_systemd_pause_reports_it_and_upgrade_continues() {
    let node = Node::new();
    let machine = Machine::start(&node);
    let run = |words: &str| {
        Run::inside(
            &machine,
            &node.state_dir(),
            &format!("{words} --runtime none"),
        )
    };
    let paused = Run::inside(&machine, &node.state_dir(), "pause").exits(0);
    finds_no_unit(&paused, "kubelet", "");
    Run::inside(&machine, &node.state_dir(), "pause --unit kubelet")
        .exits(4)
        .errors(&[("systemd-unreachable", "")]);
    let pod = node.pod("web").simple();
    machine.adopt(&pod.ns);
    let before = pod.capture();
    let upgraded = Run::of(
        machine
            .exec(crate::common::run::BINARY)
            .args("upgrade --yes --watch 0s --runtime none -o json -- ip -n".split_whitespace())
            .arg(pod.name())
            .args("link del eth0".split_whitespace())
            .env("NETFIX_STATE_DIR", node.state_dir()),
    );
    let upgraded = upgraded.exits(0).errors(&[]);
    finds_no_unit(&upgraded, "kubelet", "");
    assert_eq!(
        upgraded.json()["pods"][0]["state"],
        "restored",
        "{}",
        upgraded.transcript()
    );
    pod.assert_same_as(&before);
    run("status").exits(0);
}
