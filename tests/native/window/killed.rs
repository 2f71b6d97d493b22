//! netfix killed in the middle of each phase, so it cannot clean up: the deadline starts kubelet, and the next command
//! ends with the state of an undisturbed window.

use std::fs;

use nix::sys::signal::Signal;
use serde_json::Value;

use super::scene::{KUBELET, LOSING, Scene, of_pods, phases};
use crate::common::background::wait_until;
use crate::common::run::injecting;
use crate::common::systemd::{ADMINISTRATOR, PACKAGES};
use crate::common::tool;
use crate::common::{GATEWAY4, GATEWAY6, Node, Run};

/// What makes a phase last until netfix is killed in it.
struct Case {
    phase: &'static str,
    /// The directory of kubelet's unit file.
    folder: &'static str,
    options: &'static str,
    /// Additional lines of kubelet's unit.
    unit: &'static str,
    /// What COMMAND does between the loss of the NIC and its return, while the file `go` does not exist.
    before_go: &'static str,
}

const CASE: Case = Case {
    phase: "",
    folder: PACKAGES,
    options: "",
    unit: "ExecStart=/bin/sleep infinity",
    before_go: ":",
};

const PAUSE: Case = Case {
    phase: "pause",
    unit: "ExecStart=/bin/sleep infinity\nExecStop=/bin/sleep 1",
    ..CASE
};
const COMMAND: Case = Case {
    phase: "command",
    before_go: "while [ ! -e $go ]; do sleep 0.05; done; echo still here",
    ..CASE
};
const RESTORE: Case = Case {
    phase: "restore",
    options: "--nic-wait 90s",
    before_go: "exit 0",
    ..CASE
};
const VERIFY: Case = Case {
    phase: "verify",
    options: "--answer-wait 90s",
    before_go: "silent=yes",
    ..CASE
};
const HOLD: Case = Case {
    phase: "hold",
    options: "--nic-wait 300ms --keep-paused",
    before_go: "exit 0",
    ..CASE
};
const RESUME: Case = Case {
    phase: "resume",
    unit: "ExecStartPre=/bin/sleep 1\nExecStart=/bin/sleep infinity",
    ..CASE
};
const PROOF: Case = Case {
    phase: "proof",
    options: "--watch 90s",
    ..CASE
};

/// The command after the kill.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Upgrade,
    RestoreAndResume,
}

/// When the command runs.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    AtOnce,
    AfterTheDeadline,
}

impl Case {
    fn start_kubelet(&self, scene: &Scene<'_>) {
        scene.machine.put(
            &format!("{}/{KUBELET}", self.folder),
            &format!("[Service]\n{}\n", self.unit),
        );
        for words in ["daemon-reload", "start kubelet.service"] {
            scene
                .machine
                .systemctl(words)
                .unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// One COMMAND for both windows.
    fn command(&self, scene: &Scene<'_>) -> String {
        let [go, runs, pid] =
            ["go", "runs", "pid"].map(|name| scene.path(name).display().to_string());
        let silent = scene.loading_with(&[]).replace("up; '", "up'");
        let body = format!(
            "go={go}\necho run >>{runs}\necho $$ >{pid}.new\nmv {pid}.new {pid}\nsilent=no\n{lose} 2>/dev/null\n[ -e $go ] || {{ {hook}; }}\n\
             if [ $silent = yes ]; then\n{silent}\nelse\n{load}\nfi",
            lose = LOSING,
            hook = self.before_go,
            load = scene.loading()
        );
        scene.script("command", &body)
    }

    /// What a person or the hardware does after the kill, so that a restore can succeed.
    fn repair(&self, scene: &Scene<'_>) {
        fs::write(scene.path("go"), "").expect("a sign");
        match self.phase {
            "command" => {
                let pid = fs::read_to_string(scene.path("pid")).expect("COMMAND's pid");
                scene.wait_for_end(&pid);
            }
            "restore" | "hold" => scene.load_driver(),
            "verify" => {
                scene
                    .node
                    .gateway
                    .ip(&format!("addr add {GATEWAY4}/16 dev up0"));
                scene
                    .node
                    .gateway
                    .ip(&format!("addr add {GATEWAY6}/64 dev up0"));
            }
            _ => {}
        }
    }

    fn kill_and_go_on(&self, next: Next, when: When) {
        let reported = format!("{next:?} {when:?}");
        let node = Node::new();
        let scene = Scene::without_kubelet(&node);
        self.start_kubelet(&scene);
        let command = self.command(&scene);
        let deadline = match when {
            When::AtOnce => "60s",
            When::AfterTheDeadline => "10s",
        };
        let upgrade =
            scene.start_upgrade(&format!("--deadline {deadline} {}", self.options), &command);
        scene.wait_for_phase(self.phase);
        if self.phase == "command" {
            scene.wait_for_file("pid");
        }
        let phase = scene.phase();
        if self.phase == "command" {
            let lost = || {
                let window = scene.window().unwrap_or_default();
                of_pods(&window, "lost").iter().all(Value::is_u64)
            };
            assert!(
                wait_until(lost),
                "{reported}: the loss is not recorded: {:?}",
                scene.window()
            );
        }
        upgrade.kill();
        assert_eq!(
            phase.as_deref(),
            Some(self.phase),
            "{reported}: the phase was over"
        );
        if self.phase == "command" {
            let pid = fs::read_to_string(scene.path("pid"))
                .expect("COMMAND's pid")
                .trim()
                .parse()
                .expect("a pid");
            assert!(
                scene.machine.is_alive(pid),
                "{reported}: COMMAND died with netfix"
            );
        }
        if when == When::AfterTheDeadline {
            let back = wait_until(|| scene.runs(KUBELET));
            assert!(
                back,
                "{reported}: kubelet stays behind: {}",
                scene.machine.systemd_state()
            );
        }
        self.repair(&scene);
        match next {
            Next::Upgrade => {
                scene.upgrade("--deadline 60s", &command).exits(0);
                assert_eq!(
                    Self::runs(&scene),
                    if self.phase == "pause" { 1 } else { 2 },
                    "{reported}"
                );
            }
            Next::RestoreAndResume => {
                // Beside them the deadline restores too.
                scene.netfix("restore --lock-wait 30s").exits(0);
                scene.netfix("resume --lock-wait 30s").exits(0);
            }
        }
        scene.assert_whole();
        self.check_record(&scene, next);
        if self.phase == COMMAND.phase {
            // The next window is a normal one.
            scene.upgrade("", &command).exits(0);
            scene.assert_whole();
            assert_eq!(scene.records().len(), 2, "{reported}");
        }
    }

    /// How often COMMAND ran.
    fn runs(scene: &Scene<'_>) -> usize {
        fs::read_to_string(scene.path("runs"))
            .unwrap_or_default()
            .lines()
            .count()
    }

    /// There is one record, which contains both runs.
    fn check_record(&self, scene: &Scene<'_>, next: Next) {
        let record = scene.record();
        let phases = phases(&record);
        let count = |name: &str| phases.iter().filter(|phase| *phase == name).count();
        let killed = record["phases"].as_array().into_iter().flatten();
        let killed: Vec<_> = killed
            .filter(|phase| phase["ok"].is_null())
            .map(|phase| phase["name"].clone())
            .collect();
        assert_eq!(
            killed,
            [self.phase],
            "the phase that was killed has no end: {record}"
        );
        match next {
            Next::Upgrade => {
                assert_eq!(record["exit"], 0, "{record}");
                assert_eq!(
                    count("command"),
                    if self.phase == "pause" { 1 } else { 2 },
                    "{record}"
                );
                assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
                for pod in record["pods"].as_array().expect("pods") {
                    let at = |key: &str| pod[key].as_u64();
                    assert!(at("answered").is_some(), "lost and not found: {pod}");
                    assert!(at("lost").is_some(), "the loss is not recorded: {pod}");
                    assert!(
                        at("lost") <= at("answered"),
                        "lost after it was found: {pod}"
                    );
                }
            }
            Next::RestoreAndResume => {
                assert_eq!(
                    (&record["exit"], &record["closed_by"]),
                    (&1.into(), &"resume".into()),
                    "{record}"
                );
                assert_eq!(of_pods(&record, "rebuilt"), [false, false], "{record}");
                for pod in record["pods"].as_array().expect("pods") {
                    assert_eq!(pod["after"], pod["before"], "{pod}");
                    assert!(pod["answered"].is_u64(), "{pod}");
                }
            }
        }
        let log = scene.log_of(&record);
        assert!(
            log.contains("netfix: pausing kubelet.service"),
            "the log of the first run is lost:\n{log}"
        );
    }

    /// These next commands in parallel: most of the time is the wait for the deadline. The sweep kills an upgrade at each of its
    /// points, and runs it again at once.
    fn go_on(&self, ways: &[(When, Next)]) {
        std::thread::scope(|scope| {
            for (when, next) in ways {
                scope.spawn(move || self.kill_and_go_on(*next, *when));
            }
        });
    }
}

const AT_THE_DEADLINE: [(When, Next); 2] = [
    (When::AfterTheDeadline, Next::Upgrade),
    (When::AfterTheDeadline, Next::RestoreAndResume),
];
const EARLY_OR_LATE: [(When, Next); 2] = [
    (When::AtOnce, Next::RestoreAndResume),
    (When::AfterTheDeadline, Next::Upgrade),
];
const ALL: [(When, Next); 3] = [EARLY_OR_LATE[0], AT_THE_DEADLINE[0], AT_THE_DEADLINE[1]];

#[test]
fn while_kubelet_stops() {
    PAUSE.go_on(&AT_THE_DEADLINE);
}

#[test]
fn while_command_runs_and_continues() {
    COMMAND.go_on(&ALL);
}

#[test]
fn while_command_runs_with_kubelets_unit_in_etc() {
    Case {
        folder: ADMINISTRATOR,
        ..COMMAND
    }
    .go_on(&AT_THE_DEADLINE[..1]);
}

#[test]
fn during_the_wait_for_the_nic() {
    RESTORE.go_on(&EARLY_OR_LATE);
}

#[test]
fn while_the_gateways_are_probed() {
    VERIFY.go_on(&EARLY_OR_LATE);
}

#[test]
fn during_the_wait_for_a_person() {
    HOLD.go_on(&EARLY_OR_LATE);
}

#[test]
fn while_kubelet_starts() {
    RESUME.go_on(&EARLY_OR_LATE);
}

#[test]
fn while_the_pods_are_watched() {
    PROOF.go_on(&AT_THE_DEADLINE);
}

#[test]
fn during_the_snapshot_nothing_is_changed_yet() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let kubelet = scene.touchable();
    let marker = scene.path("ran");
    let renames = "?rename,?renameat,?renameat2";
    let inject = format!("inject={renames}:signal=KILL:when=1");
    let trace = injecting(&inject);
    let words = format!("upgrade --yes --foreground -- touch {}", marker.display());
    let run = Run::of(&mut scene.under(&trace, &words));
    assert_eq!(
        run.code,
        None.or(run.code.filter(|code| *code == 137)),
        "{}",
        run.transcript()
    );
    assert!(!marker.exists(), "COMMAND was run");
    assert_eq!(scene.touchable(), kubelet);
    assert_eq!(
        (scene.window(), scene.records()),
        (None, Vec::<Value>::new())
    );
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
}

#[test]
fn repeatedly_in_one_window_that_the_last_run_completes() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let lose = scene.script("lose", &format!("{LOSING} 2>/dev/null; true"));
    let course = [
        ("restore", "--nic-wait 90s"),
        ("hold", "--nic-wait 300ms --keep-paused"),
        ("restore", "--nic-wait 90s"),
    ];
    for (phase, options) in course {
        let upgrade = scene.start_upgrade(&format!("--deadline 60s {options}"), &lose);
        scene.wait_for_phase(phase);
        upgrade.kill();
        scene.assert_held(KUBELET);
    }
    scene
        .upgrade("", &scene.script("load", &scene.loading()))
        .exits(0);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(
        phases(&record)
            .iter()
            .filter(|phase| *phase == "command")
            .count(),
        4,
        "{record}"
    );
    assert_eq!(record["exit"], 0);
    // Lost in the first run, restored in the last.
    for pod in record["pods"].as_array().expect("pods") {
        let at = |key: &str| {
            pod[key]
                .as_u64()
                .unwrap_or_else(|| panic!("no {key}: {pod}"))
        };
        let first = record["phases"]
            .as_array()
            .and_then(|all| all.iter().find(|phase| phase["name"] == "command"));
        assert!(
            first
                .is_some_and(|first| (first["from"].as_u64()..=first["to"].as_u64())
                    .contains(&Some(at("lost")))),
            "{record}"
        );
        assert!(at("lost") < at("answered"), "{pod}");
    }
}

#[test]
fn a_deadline_that_has_come_does_not_start_kubelet_in_the_window_that_goes_on() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = COMMAND.command(&scene);
    let upgrade = scene.start_upgrade("--deadline 300s", &command);
    scene.wait_for_file("pid");
    upgrade.kill();
    let mut deadline = scene.machine.exec("systemd-run");
    let late = format!(
        "sleep 5; systemctl unmask --runtime {KUBELET}; systemctl daemon-reload; systemctl start {KUBELET}"
    );
    tool::run(deadline.args(["--unit=netfix-deadline-1", "sh", "-c", &late]));
    COMMAND.repair(&scene);
    let longer = scene.script("longer", &format!("sleep 8\n{command}"));
    scene
        .upgrade("--deadline 60s", &longer)
        .exits(0)
        .errors(&[]);
    scene.assert_whole();
}

#[test]
fn as_a_unit_command_continues_and_the_next_upgrade_succeeds_whatever_is_done_already() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = COMMAND.command(&scene);
    let upgrade = scene.start(&format!(
        "upgrade --yes --watch 0s --answer-wait 2s --deadline 60s -- {command}"
    ));
    scene.wait_for_phase("command");
    scene.wait_for_file("pid");
    let pid = scene
        .machine
        .unit("netfix-upgrade.service", "MainPID")
        .parse()
        .expect("a pid");
    assert!(scene.machine.signal(pid, Signal::SIGKILL));
    upgrade.finish().exits(1).stderr_has(&["9"]);
    scene.assert_held(KUBELET);
    // COMMAND still runs in the unit of the killed netfix.
    COMMAND.repair(&scene);
    // A window that is open is completed, even if all is done already.
    scene
        .netfix(&format!(
            "upgrade --yes --watch 0s --answer-wait 2s --unless true -- {command}"
        ))
        .exits(0)
        .has_no("already-done");
    scene.assert_whole();
    assert_eq!(scene.record()["exit"], 0);
}
