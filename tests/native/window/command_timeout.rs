//! A command of the user that hangs: it is ended, and all pods are restored before the deadline starts kubelet.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::rollback::{lose, marked, rollback};
use super::scene::{KUBELET, LOSING, Scene, of_pods, phases};
use crate::common::Node;
use crate::common::background::{HANG, wait_until};

/// Ignores what a person sends.
const DEAF: &str = "trap '' INT TERM; while :; do sleep 0.1; done";

/// A script that takes the NIC away, brings it back, and then hangs; the process that hangs is in the file `pid`.
fn hanging(scene: &Scene<'_>, hang: &str) -> String {
    let pid = scene.path("pid");
    let hang = hang.replace("PID", &pid.display().to_string());
    scene.script("hangs", &format!("{}\n{hang}", scene.reloading()))
}

fn pid(scene: &Scene<'_>) -> u32 {
    let text = fs::read_to_string(scene.path("pid")).expect("a pid");
    text.trim().parse().expect("a number")
}

/// Every pod was lost and restored, kubelet was paused all the time, and nothing of COMMAND is left.
fn assert_ended_in_time(scene: &Scene<'_>) -> Value {
    scene.assert_networks();
    scene.assert_nothing_left();
    let left = wait_until(|| !scene.machine.is_alive(pid(scene)));
    assert!(left, "what hung still runs");
    let record = scene.record();
    assert_eq!(record["exit"], 1, "{record}");
    assert_eq!(of_pods(&record, "state"), ["restored", "restored"]);
    let hold = &record["hold"];
    if !hold.is_null() {
        scene.assert_runs(KUBELET);
        let at = |key: &str| {
            hold[key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key}: {hold}"))
        };
        assert!(
            at("resumed") < at("armed") + at("deadline") * 1000,
            "after the deadline: {hold}"
        );
    }
    record
}

#[test]
fn a_command_that_hangs_is_ended_and_all_pods_are_restored_before_the_deadline() {
    let in_child = format!("sh -c \"echo \\$\\$ >PID; {DEAF}\"");
    let hangs = [
        format!("echo $$ >PID\n{DEAF}"),
        format!("{in_child} &\nwait"),
        // In a process group of its own.
        format!("setsid --wait {in_child}"),
    ];
    let node = Node::new();
    let scene = Scene::new(&node);
    for hang in hangs {
        let command = hanging(&scene, &hang);
        let begin = Instant::now();
        let run = scene
            .upgrade("--command-timeout 5s --deadline 120s -o json", &command)
            .exits(1)
            .names("command-failed", "", &["5 s", "--command-timeout"])
            .errors(&[("command-failed", "")]);
        assert!(begin.elapsed() < HANG, "it hung: {hang}");
        run.stderr_has(&["COMMAND (pid ", "still runs after 5 s", "SIGTERM"]);
        let record = assert_ended_in_time(&scene);
        assert_eq!(record["run"]["timed_out"], 5000, "{record}");
        scene
            .netfix("report")
            .exits(0)
            .stdout_has(&["killed after 5 s (--command-timeout)"]);
        fs::remove_dir_all(scene.node.state_dir().join("windows")).expect("the record");
    }
}

#[test]
fn without_an_option_the_limit_leaves_time_for_the_restore() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = hanging(&scene, "echo $$ >PID\nexec sleep 1000");
    scene
        .upgrade("--deadline 30s -o json", &command)
        .exits(1)
        .errors(&[("command-failed", "")]);
    assert_ended_in_time(&scene);
}

#[test]
fn without_a_kubelet_the_limit_counts_from_the_start_of_command() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    let command = hanging(&scene, "echo $$ >PID\nexec sleep 1000");
    let begin = Instant::now();
    scene
        .upgrade("--deadline 6s -o json", &command)
        .exits(1)
        .errors(&[("command-failed", "")]);
    assert!(begin.elapsed() < HANG, "it hung");
    let record = assert_ended_in_time(&scene);
    assert_eq!(record["run"]["timed_out"], 3000, "{record}");
}

#[test]
fn a_command_that_ends_well_after_sigterm_has_failed_all_the_same() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let loading = scene.loading().replace('\n', "; ").replace('\'', "\"");
    let body = format!(
        "trap '{loading}; exit 0' TERM\n{LOSING}\necho $$ >{}\nwhile :; do sleep 0.1; done",
        scene.path("pid").display()
    );
    let command = scene.script("late", &body);
    scene
        .upgrade("--command-timeout 2s -o json", &command)
        .exits(1)
        .errors(&[("command-failed", "")]);
    let record = assert_ended_in_time(&scene);
    assert_eq!(record["run"]["exit"], 0, "{record}");
    scene
        .netfix("report")
        .exits(0)
        .stdout_has(&["COMMAND failed", "(--command-timeout); exit 0"]);
}

#[test]
fn a_command_that_even_sigkill_does_not_end_does_not_stop_the_restore() {
    let node = Node::new();
    let scene = Scene::new(&node);
    // The kernel reports the end of a traced process to the tracer first, and this one has stopped.
    let tracer = scene.path("tracer");
    let hang = format!(
        "echo $$ >PID\n(setsid sh -c 'echo $$ >{tracer}; exec strace -qq -o /dev/null -p '$$ >/dev/null 2>&1 &)\n\
         until grep -q 'TracerPid:.[1-9]' /proc/$$/status; do sleep 0.05; done\n\
         kill -STOP $(cat {tracer})\n{DEAF}",
        tracer = tracer.display()
    );
    let command = hanging(&scene, &hang);
    let begin = Instant::now();
    scene
        .upgrade("--command-timeout 6s --deadline 60s -o json", &command)
        .exits(1)
        .names("command-failed", "", &["SIGKILL"])
        .errors(&[("command-failed", "")]);
    assert!(begin.elapsed() < HANG, "it hung");
    scene.assert_networks();
    scene.assert_runs(KUBELET);
    let text = fs::read_to_string(&tracer).expect("the tracer");
    let tracer = text.trim().parse().expect("a pid");
    scene
        .machine
        .signal(tracer, nix::sys::signal::Signal::SIGKILL);
}

#[test]
fn a_rollback_that_hangs_is_ended_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let body = format!(
        "{}\necho $$ >{}\n{DEAF}",
        scene.loading(),
        scene.path("pid").display()
    );
    let load = marked(&scene, "load", &body);
    let options =
        format!("--nic-wait 500ms --command-timeout 6s --deadline 60s --rollback {load} -o json");
    scene
        .upgrade(&options, &lose(&scene))
        .exits(1)
        .names("command-failed", "", &["rollback", "6 s"])
        .errors(&[("rolled-back", ""), ("command-failed", "")]);
    let record = assert_ended_in_time(&scene);
    assert_eq!(rollback(&record)["timed_out"], 6000, "{record}");
    assert_eq!(record["run"].get("timed_out"), None, "{record}");
}

#[test]
fn a_window_that_continues_after_a_death_ends_its_command_too() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let begun = scene.path("begun");
    let body = format!("{LOSING}\ntouch {}\nexec sleep 2", begun.display());
    let upgrade = scene.start_upgrade("--deadline 60s", &scene.script("short", &body));
    scene.wait_for_file("begun");
    upgrade.kill();
    std::thread::sleep(Duration::from_secs(3));
    let command = scene.script(
        "hangs",
        &format!(
            "{}\necho $$ >{}\nexec sleep 1000",
            scene.loading(),
            scene.path("pid").display()
        ),
    );
    scene
        .upgrade("--deadline 60s --command-timeout 2s -o json", &command)
        .exits(1)
        .errors(&[("command-failed", "")]);
    let record = assert_ended_in_time(&scene);
    assert_eq!(
        phases(&record)
            .iter()
            .filter(|one| *one == "command")
            .count(),
        2
    );
}
