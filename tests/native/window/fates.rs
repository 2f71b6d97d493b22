//! What a window calls a pod of which a container was restarted, that was deleted or that its runtime tears down. The runtime is
//! a fake one: it reports what a test wants while a window runs.

use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::beside::Beside;
use super::lost_again::AT_ONCE;
use super::scene::{KUBELET, Scene, of_pods};
use crate::common::background::{wait_until, within};
use crate::common::kept::json;
use crate::common::runtimes::{ContainerOfPod, FakeCri, Sandbox, Script};
use crate::common::{Node, Pod, Run};

/// Two pods of a runtime with one container each, on a node with kubelet.
struct Stage<'n> {
    scene: Scene<'n>,
    cri: FakeCri,
    ids: [String; 2],
}

impl<'n> Stage<'n> {
    fn new(node: &'n Node) -> Self {
        let scene = Scene::new(node);
        let sandbox = |pod: &Pod<'_>, name: &str, number: u8| Sandbox {
            containers: vec![ContainerOfPod::running("app", 0)],
            ..Sandbox::of(pod, name, number)
        };
        let sandboxes = vec![
            sandbox(&scene.pods[0], "web", 1),
            sandbox(&scene.pods[1], "api", 2),
        ];
        let ids = [0, 1].map(|pod| sandboxes[pod].short_id().to_owned());
        let script = Script {
            sandboxes,
            ..Script::default()
        };
        let cri = FakeCri::start(&scene.path("cri.sock"), script);
        Self { scene, cri, ids }
    }

    fn options(&self, options: &str) -> String {
        let socket = self.cri.socket.display();
        format!("-o json {options} --runtime cri --runtime-endpoint unix://{socket}")
    }

    /// A window whose COMMAND reloads the NIC, up to its last phase.
    fn watched(&self) -> Beside {
        self.watched_for("5s")
    }

    fn watched_for(&self, time: &str) -> Beside {
        let options = self.options(&format!("--watch {time}"));
        let upgrade = self.scene.start_upgrade(&options, &self.scene.reload());
        self.scene.wait_for_phase("proof");
        upgrade
    }

    /// A window in whose COMMAND something happens, after the NIC is lost.
    fn during_command(&self, happens: impl FnOnce()) -> Run {
        let [begun, go] = ["begun", "go"].map(|name| self.scene.path(name));
        let body = format!(
            "set -e\n{}\ntouch {}\nwhile [ ! -e {} ]; do sleep 0.05; done\n{}",
            super::scene::LOSING,
            begun.display(),
            go.display(),
            self.scene.loading()
        );
        let command = self.scene.script("command", &body);
        let upgrade = self.scene.start_upgrade(&self.options(""), &command);
        self.scene.wait_for_file("begun");
        happens();
        std::fs::write(go, "").expect("a sign");
        upgrade.finish()
    }

    fn change(&self, pod: usize, change: impl FnOnce(&mut Sandbox)) {
        self.cri.change(|script| change(&mut script.sandboxes[pod]));
    }

    /// The runtime no longer lists the second pod's sandbox as ready.
    fn end_sandbox(&self) {
        self.cri.change(|script| script.sandboxes.truncate(1));
    }

    /// The second pod is deleted, with its namespace.
    fn delete(&self) {
        self.end_sandbox();
        self.scene.machine.disown(&self.scene.pods[1].ns);
    }

    fn report(&self) -> Value {
        let report = self.scene.netfix("report -o json").exits(0);
        json(report.out.as_bytes())["report"].clone()
    }

    /// The word for each pod, in the order of their ids.
    fn assert_fates(&self, expected: [&str; 2]) {
        let record = self.scene.record();
        assert_eq!(of_pods(&record, "fate"), expected, "{record}");
        assert_eq!(of_pods(&record, "rebuilt"), [false, false], "{record}");
    }
}

#[test]
fn after_the_resume_a_killed_container_fails_the_window_as_restarted_and_a_deleted_pod_is_gone() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let upgrade = stage.watched();
    stage.change(0, |sandbox| sandbox.end_containers(137));
    stage.change(0, Sandbox::restart);
    stage.delete();
    upgrade
        .finish()
        .exits(5)
        .errors(&[("pod-restarted", &stage.ids[0])])
        .names("pod-restarted", &stage.ids[0], &["restarted", "exit 137"])
        .names("pod-gone", &stage.ids[1], &["gone: deleted, or killed"])
        .has_no("pod-rebuilt");
    stage.assert_fates(["restarted", "gone"]);
    let report = stage.report();
    let computed = &report["computed"];
    assert_eq!(computed["verdict"], "pods-affected", "{computed}");
    assert_eq!(computed["pods"]["back"], 1, "{computed}");
    assert_eq!(computed["pods"]["gone"], 1, "{computed}");
    assert!(report["pods"][1]["gone"].is_u64(), "{report}");
    // Nothing of the answer calls a pod rebuilt.
    let text = stage.scene.netfix("report").exits(0);
    text.stdout_has(&["no pod was rebuilt (2 of 2 checked)", "shop/api"]);
    stage.scene.assert_runs(KUBELET);
}

#[test]
fn while_kubelet_is_paused_a_container_may_end_by_itself_and_a_deleted_pod_fails_the_window_as_gone()
 {
    let node = Node::new();
    let stage = Stage::new(&node);
    let run = stage.during_command(|| {
        stage.change(0, |sandbox| sandbox.end_containers(1));
        stage.change(0, Sandbox::restart);
        stage.delete();
    });
    run.exits(5)
        .errors(&[("pod-gone", &stage.ids[1])])
        .names("pod-gone", &stage.ids[1], &["while kubelet", "was paused"])
        .names(
            "pod-restarted",
            &stage.ids[0],
            &["ended before kubelet ran again"],
        );
    stage.assert_fates(["restarted", "gone"]);
    let computed = stage.report()["computed"].clone();
    assert_eq!(computed["verdict"], "pods-affected", "{computed}");
    assert_eq!(computed["outages"]["unanswered"], 0, "{computed}");
}

#[test]
fn a_pod_that_goes_before_kubelet_is_paused_is_no_failure_of_the_window() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let before = stage.scene.script(
        "before",
        &format!(
            "touch {}\nwhile [ ! -e {} ]; do sleep 0.05; done",
            stage.scene.path("begun").display(),
            stage.scene.path("go").display()
        ),
    );
    let options = stage.options(&format!("--before {before}"));
    let upgrade = stage.scene.start_upgrade(&options, &stage.scene.reload());
    stage.scene.wait_for_file("begun");
    stage.delete();
    std::fs::write(stage.scene.path("go"), "").expect("a sign");
    upgrade
        .finish()
        .exits(0)
        .errors(&[])
        .names("pod-gone", &stage.ids[1], &["gone"]);
    stage.assert_fates(["same", "gone"]);
    let outages = &stage.report()["computed"]["outages"];
    assert_eq!(outages["unanswered"], 0, "{outages}");
}

/// For netfix to see the loss, and to restore what it would.
const MOMENT: Duration = Duration::from_secs(2);

#[test]
fn nothing_is_restored_in_a_pod_that_its_runtime_tears_down() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let upgrade = stage.watched();
    stage.end_sandbox();
    let pod = &stage.scene.pods[1];
    pod.ip("link del eth0");
    thread::sleep(MOMENT);
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    upgrade
        .finish()
        .exits(0)
        .errors(&[])
        .names("pod-gone", &stage.ids[1], &["gone: deleted, or killed"])
        .has_no("degraded");
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    stage.assert_fates(["same", "gone"]);
}

#[test]
fn a_sandbox_that_is_ready_until_its_network_is_gone_is_being_torn_down() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let upgrade = stage.watched();
    let (pod, lists) = (&stage.scene.pods[1], stage.cri.lists());
    pod.ip("link del eth0");
    assert!(wait_until(|| stage.cri.lists() > lists));
    stage.end_sandbox();
    thread::sleep(MOMENT);
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    upgrade.finish().exits(0).errors(&[]);
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    stage.assert_fates(["same", "gone"]);
}

#[test]
fn a_pod_whose_containers_have_all_ended_is_being_torn_down() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let upgrade = stage.watched();
    stage.change(1, |sandbox| sandbox.end_containers(143));
    let pod = &stage.scene.pods[1];
    pod.ip("link del eth0");
    thread::sleep(MOMENT);
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    stage.end_sandbox();
    upgrade.finish().exits(0).errors(&[]);
    assert!(!pod.has_eth0(), "restored in a pod that is torn down");
    stage.assert_fates(["same", "gone"]);
}

#[test]
fn a_pod_that_alone_loses_its_link_and_is_ready_is_restored_at_once_and_named() {
    let node = Node::new();
    let stage = Stage::new(&node);
    let upgrade = stage.watched_for("20s");
    let (scene, pod) = (&stage.scene, &stage.scene.pods[1]);
    pod.ip("link del eth0");
    let whole = || pod.has_eth0() && scene.phase().as_deref() == Some("proof");
    assert!(
        within(AT_ONCE, whole),
        "it waits for the end: {:?}",
        scene.phase()
    );
    upgrade
        .finish()
        .exits(0)
        .errors(&[])
        .names(
            "degraded",
            "",
            &["again", "1 pod", "shop/api", "host's links stayed"],
        )
        .lacks("network manager");
    stage.assert_fates(["same", "same"]);
    stage.scene.assert_whole();
}

#[test]
fn restore_with_settle_restores_nothing_in_a_pod_that_is_torn_down() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[0].capture();
    let sandboxes = vec![
        Sandbox::of(&pods[0], "web", 1),
        Sandbox::of(&pods[1], "api", 2),
    ];
    let id = sandboxes[1].short_id().to_owned();
    let script = Script {
        sandboxes,
        ..Script::default()
    };
    let cri = FakeCri::start(&node.temp().join("cri.sock"), script);
    let options = format!(
        "--runtime cri --runtime-endpoint unix://{}",
        cri.socket.display()
    );
    node.netfix(&format!("snapshot {options}")).exits(0);
    let words = format!("restore --watch 4s -v -o json {options}");
    let command: Command = node.netfix_command(&["timeout", "600"], &words);
    let restore = Beside::start_in(&node.temp(), command);
    restore.wait_for("for another loss");
    cri.change(|script| script.sandboxes.truncate(1));
    pods[1].ip("link del eth0");
    restore
        .finish()
        .exits(0)
        .errors(&[])
        .names("pod-gone", &id, &["no longer ready"]);
    assert!(!pods[1].has_eth0(), "restored in a pod that is torn down");
    pods[0].assert_same_as(&before);
}
