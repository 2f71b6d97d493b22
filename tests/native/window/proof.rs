//! The check that no pod was rebuilt: by the ids of a real containerd; by the kernel alone if there is no runtime;
//! without a verdict if the runtime cannot be queried.

use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::beside::Beside;
use super::scene::{KUBELET, Scene, hasty, of_pods, records};
use crate::common::background::wait_until;
use crate::common::capture::Capture;
use crate::common::cri::{PodSpec, Sandbox};
use crate::common::kept::json;
use crate::common::run::BINARY;
use crate::common::{CriNode, CriPod, Node, Run, tool};

/// Duplicate address detection runs in these pods: up to two seconds.
const CRI: &str = "--answer-wait 10s --runtime cri --runtime-endpoint unix:///run/containerd/containerd.sock -o json";

fn words(options: &str, command: &str) -> String {
    hasty(&format!("--foreground {CRI} {options}"), command)
}

/// A node with real sandboxes, and a real container in the first one.
pub(super) struct Real {
    pub cri: CriNode,
    pub pods: Vec<CriPod>,
    container: String,
    before: Vec<Capture>,
}

impl Real {
    pub fn new(count: usize) -> Self {
        let cri = CriNode::new();
        let pods = cri.pods(count);
        let container = cri.cri().run_container(&pods[0].sandbox.id, "app");
        let before = pods.iter().map(|pod| cri.capture(pod)).collect();
        Self {
            cri,
            pods,
            container,
            before,
        }
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = self.cri.machine.exec(program);
        command
            .env("NETFIX_STATE_DIR", self.cri.node.state_dir())
            .env("NO_COLOR", "1")
            .env_remove("NETFIX_RUNTIME");
        command
    }

    fn upgrade(&self, options: &str, upgrade: &str) -> Run {
        let words = words(options, upgrade);
        Run::of(
            self.command("timeout")
                .args(["600", BINARY])
                .args(words.split_whitespace()),
        )
    }

    /// The same beside the test.
    pub fn start(&self, options: &str, upgrade: &str) -> Beside {
        let mut command = self.command(BINARY);
        command.args(words(options, upgrade).split_whitespace());
        Beside::start_in(&self.cri.node.temp(), command)
    }

    /// A COMMAND that creates a file, and waits for a file of the test.
    pub fn waiting(&self) -> String {
        let path = |name: &str| self.cri.node.temp().join(name).display().to_string();
        let wait = format!(
            "touch {}; while [ ! -e {} ]; do sleep 0.05; done\n",
            path("begun"),
            path("go")
        );
        std::fs::write(path("waiting"), wait).expect("a script");
        format!("sh {}", path("waiting"))
    }

    pub fn wait_for_command(&self) {
        assert!(
            wait_until(|| self.cri.node.temp().join("begun").exists()),
            "COMMAND never began"
        );
    }

    /// Replaces a pod's sandbox, as kubelet does; returns the new one.
    pub fn rebuild(&self, pod: usize) -> String {
        let Sandbox {
            id,
            namespace,
            name,
            uid,
            attempt,
            ..
        } = self.pods[pod].sandbox.clone();
        self.cri.cri().remove(&id);
        let again = PodSpec {
            attempt: attempt + 1,
            ..PodSpec::new(&namespace, &name, &uid)
        };
        self.cri.cri().run(&[again]).remove(0)
    }

    /// Until COMMAND has ended; a netfix that was killed may not have written its process.
    pub fn wait_for_end_of_command(&self) {
        let mut command = self.command("pgrep");
        command.args(["-f", &self.waiting()]);
        let has_ended = || {
            let found = command.output().expect("pgrep runs");
            !found.status.success()
        };
        assert!(wait_until(has_ended), "COMMAND does not end");
    }

    pub fn go(&self) {
        std::fs::write(self.cri.node.temp().join("go"), "").expect("a sign");
    }

    pub fn record(&self) -> Value {
        let mut all = records(&self.cri.node);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    fn wait_for_rebuild_check(&self) {
        let file = self.cri.node.state_dir().join("window.json");
        let proof = || {
            let window = std::fs::read(&file)
                .map(|bytes| json(&bytes))
                .unwrap_or_default();
            window["phases"]
                .as_array()
                .and_then(|all| all.last().cloned())
                .is_some_and(|last| last["name"] == "proof")
        };
        assert!(wait_until(proof), "the rebuild check never starts");
    }
}

/// The pod's entry in a record.
fn entry(record: &Value, pod: &CriPod) -> Value {
    let all = record["pods"].as_array().into_iter().flatten();
    let mut found = all.filter(|entry| entry["sandbox"] == *pod.sandbox.id);
    found
        .next()
        .cloned()
        .unwrap_or_else(|| panic!("no {} in {record}", pod.transcript()))
}

/// The pod is proven by the ids that the runtime has.
fn assert_proven(real: &Real, record: &Value, pod: &CriPod) -> Value {
    let (Sandbox { id, attempt, .. }, entry) =
        (real.cri.cri().status(&pod.sandbox.id), entry(record, pod));
    assert_eq!(entry["rebuilt"], false, "{entry}");
    assert_eq!(entry["lives_before"], entry["lives_after"], "{entry}");
    let lives = &entry["lives_after"];
    assert_eq!(
        (&lives["sandbox"], &lives["attempt"]),
        (&id.into(), &attempt.into())
    );
    lives["containers"].clone()
}

#[test]
fn real_pods_that_lost_their_network_are_restored_and_proven_by_the_ids_of_the_runtime() {
    let real = Real::new(2);
    let upgrade = real.start("", &real.waiting());
    real.wait_for_command();
    real.cri.node.lose_and_reload();
    real.go();
    let run = upgrade.finish().exits(0);
    let record = real.record();
    assert_eq!(
        of_pods(&record, "rebuilt"),
        [false, false],
        "{}",
        run.transcript()
    );
    real.cri.assert_same_as(&real.pods, &real.before);
    real.cri.assert_cni_check(&real.pods);
    let containers = assert_proven(&real, &record, &real.pods[0]);
    assert_eq!(
        (&containers[0]["name"], &containers[0]["id"]),
        (&"app".into(), &real.container.as_str().into())
    );
    let none = assert_proven(&real, &record, &real.pods[1]);
    assert_eq!(none, Value::Array(Vec::new()));
}

#[test]
fn a_rebuilt_pod_and_a_container_that_ended_in_its_sandbox_are_reported_and_the_others_proven() {
    let real = Real::new(3);
    let upgrade = real.start("", &real.waiting());
    real.wait_for_command();
    let id = real.pods[1].sandbox.id.clone();
    let successor = real.rebuild(1);
    let cri = real.cri.cri();
    cri.stop_container(&real.container);
    let again = cri.run_container(&real.pods[0].sandbox.id, "app2");
    real.go();
    let run = upgrade.finish().exits(5);
    let only = |code: &str| {
        let found = run.coded(code);
        assert_eq!(found.len(), 1, "{code}\n{}", run.transcript());
        (
            found[0].pod.clone().expect("a pod"),
            found[0].message.clone(),
            found[0].is_error(),
        )
    };
    let (pod, message, is_error) = only("pod-rebuilt");
    assert_eq!((pod.as_str(), is_error), (&id[..12], true));
    assert!(
        message.contains(&id[..12]) && message.contains(&successor[..12]),
        "{message}"
    );
    let (_, message, _) = only("pod-restarted");
    assert!(
        message.contains("app") && message.contains(&real.container[..12]),
        "{message}"
    );
    assert!(!message.contains(&again[..12]), "{message}");
    let record = real.record();
    for pod in &real.pods {
        let is_rebuilt = pod.sandbox.id == id;
        assert_eq!(entry(&record, pod)["rebuilt"], is_rebuilt, "{record}");
    }
    assert_eq!(
        entry(&record, &real.pods[1])["lives_after"]["sandbox"],
        *successor
    );
}

#[test]
fn a_runtime_that_dies_while_pods_are_watched_proves_nothing_and_refuses_the_next_window() {
    let mut real = Real::new(2);
    let upgrade = real.start("--watch 60s", "true");
    real.wait_for_rebuild_check();
    real.cri.kill();
    // SIGINT ends the wait for the runtime early.
    let begin = Instant::now();
    upgrade.signal(Signal::SIGINT);
    let run = upgrade.finish().exits(5);
    assert!(
        begin.elapsed() < Duration::from_secs(50),
        "it continued to wait"
    );
    let run = run.errors(&[("interrupted", ""), ("runtime-unreachable", "")]);
    assert_eq!(
        of_pods(&real.record(), "rebuilt"),
        [Value::Null, Value::Null],
        "{}",
        run.transcript()
    );
    for lie in [
        "no pod was rebuilt.",
        "none was rebuilt",
        "no pod was rebuilt (",
    ] {
        assert!(
            !run.out.contains(lie) && !run.err.contains(lie),
            "{lie:?}\n{}",
            run.transcript()
        );
    }
    let reported = real.cri.netfix("report").exits(0);
    assert!(
        !reported.out.contains("none was rebuilt"),
        "{}",
        reported.transcript()
    );
    let ran = real.cri.node.temp().join("ran");
    let touch = format!("touch {}", ran.display());
    let run = real.upgrade("", &touch).exits(4);
    let refusals = run.coded("runtime-unreachable").len();
    assert_eq!(refusals, 1, "{}", run.transcript());
    assert!(!ran.exists(), "COMMAND was run");
    real.upgrade("--force", &touch).exits(4);
    assert!(
        !ran.exists(),
        "--force does not skip a runtime that cannot be queried"
    );
}

#[test]
fn a_runtime_that_returns_while_pods_are_watched_is_queried() {
    let mut real = Real::new(2);
    let upgrade = real.start("--watch 1s", "true");
    real.wait_for_rebuild_check();
    real.cri.kill();
    std::thread::sleep(Duration::from_millis(1500));
    real.cri.start();
    upgrade.finish().exits(0);
    assert_eq!(of_pods(&real.record(), "rebuilt"), [false, false]);
}

#[test]
fn without_a_runtime_a_namespace_replaced_under_its_name_is_reported() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let name = scene.pods[1].name();
    // As a runtime does: another namespace at the same path, with the pod's process in it.
    let body = format!(
        "ip netns pids {name} | xargs -r kill -KILL\numount /run/netns/{name}\nrm /run/netns/{name}\nip netns add {name}\n\
         ip netns exec {name} sh -c 'exec >/dev/null 2>&1; sleep infinity &'"
    );
    let command = scene.script("replace", &body);
    // The mount outside keeps the old namespace too.
    tool::run(&mut tool::command(
        "umount",
        ["-l", &format!("/run/netns/{name}")],
    ));
    let run = scene.upgrade("-o json", &command).exits(5);
    let rebuilt = run.coded("pod-rebuilt");
    assert_eq!(rebuilt.len(), 1, "{}", run.transcript());
    assert_eq!(rebuilt[0].pod.as_deref(), Some(name));
    let record = scene.record();
    let of = |pod: &str| {
        record["pods"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|entry| entry["id"] == pod)
            .cloned()
    };
    assert_eq!(of(name).expect("an entry")["rebuilt"], true);
    assert_eq!(
        of(scene.pods[0].name()).expect("an entry")["rebuilt"],
        false
    );
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
}
