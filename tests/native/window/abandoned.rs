//! Windows whose netfix was killed: monitoring reports them, and `resume` observes every pod before it closes them.

use std::time::Duration;

use serde_json::Value;

use super::scene::{KUBELET, LOSING, Scene, codes, of_pods, phases};
use crate::common::background::wait_until;
use crate::common::{Node, Run};

/// A window whose netfix was killed while COMMAND ran, after the loss of the NIC.
fn killed(node: &Node) -> Scene<'_> {
    killed_with(node, "300s")
}

fn killed_with<'n>(node: &'n Node, deadline: &str) -> Scene<'n> {
    let scene = Scene::new(node);
    let body = format!(
        "{LOSING}\n{}\ntouch {}\nexec sleep 600 </dev/null >/dev/null 2>&1",
        scene.loading(),
        scene.path("begun").display()
    );
    let upgrade = scene.start_upgrade(
        &format!("--deadline {deadline}"),
        &scene.script("waits", &body),
    );
    scene.wait_for_file("begun");
    scene.command_pid();
    upgrade.kill();
    scene.end_command();
    scene.assert_held(KUBELET);
    scene
}

fn report(scene: &Scene<'_>) -> Value {
    let run: Run = scene.netfix("report -o json").exits(0);
    run.json()["report"]["computed"].clone()
}

#[test]
fn resume_reports_pods_that_are_not_restored() {
    let node = Node::new();
    let scene = killed(&node);
    let pods = [0, 1].map(|at| scene.pods[at].name());
    scene.netfix("resume").exits(4).stderr_has(&pods);
    let run = scene.netfix("resume --force -o json").exits(5);
    let lost = run.coded("degraded").into_iter();
    let mut lost: Vec<String> = lost.filter_map(|problem| problem.pod).collect();
    lost.sort();
    let mut pods = pods.map(str::to_owned);
    pods.sort();
    assert_eq!(lost, pods, "{}", run.transcript());
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
    let record = scene.record();
    assert_eq!(
        (&record["exit"], &record["closed_by"]),
        (&5.into(), &"resume".into()),
        "{record}"
    );
    assert_eq!(of_pods(&record, "state"), ["degraded", "degraded"]);
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
    let nothing = Value::Array(Vec::new());
    assert_eq!(of_pods(&record, "after"), [nothing.clone(), nothing]);
    assert!(codes(&record, "error").contains(&"degraded".to_owned()));
    assert_eq!(report(&scene)["verdict"], "pods-affected");
    scene.netfix("restore").exits(0);
    scene.assert_networks();
}

#[test]
fn a_restore_before_resume_belongs_to_the_record() {
    let node = Node::new();
    let scene = killed(&node);
    scene.netfix("restore").exits(0);
    let window = scene.window().expect("an open window");
    assert_eq!(of_pods(&window, "state"), ["restored", "restored"]);
    let answered = of_pods(&window, "answered");
    std::thread::sleep(Duration::from_secs(1));
    scene.netfix("verify").exits(0);
    scene.netfix("resume -o json").exits(0).errors(&[]);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(record["exit"], 1, "{record}");
    assert!(phases(&record).contains(&"restore".to_owned()), "{record}");
    assert_eq!(of_pods(&record, "state"), ["restored", "restored"]);
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
    // The restore ended the outage, not the resume.
    assert_eq!(of_pods(&record, "answered"), answered, "{record}");
    let computed = report(&scene);
    assert_eq!(computed["verdict"], "interrupted", "{computed}");
    assert_eq!(computed["pods"]["back"], 2, "{computed}");
    let outages = computed["outages"]["pods"].as_array().map(Vec::len);
    assert_eq!(outages, Some(2), "{computed}");
}

#[test]
fn resume_reports_pods_that_are_gone() {
    let node = Node::new();
    let scene = killed(&node);
    let name = scene.pods[1].name();
    scene.netfix("restore").exits(0);
    scene.machine.disown(&scene.pods[1].ns);
    let run = scene.netfix("resume -o json").exits(5);
    let gone = run.coded("pod-gone");
    assert_eq!(gone.len(), 1, "{}", run.transcript());
    assert_eq!(gone[0].pod.as_deref(), Some(name));
    scene.assert_runs(KUBELET);
    let record = scene.record();
    assert_eq!(record["exit"], 5, "{record}");
    let mut fates: Vec<Value> = of_pods(&record, "fate");
    fates.sort_by_key(Value::to_string);
    assert_eq!(fates, ["gone", "same"], "{record}");
    assert_eq!(of_pods(&record, "rebuilt"), [false, false], "{record}");
}

/// A window whose deadline was stopped by hand, and has passed.
fn overdue(node: &Node) -> Scene<'_> {
    let scene = killed_with(node, "12s");
    for timer in scene.deadlines() {
        let stopped = scene.machine.systemctl(&format!("stop {timer}"));
        stopped.unwrap_or_else(|e| panic!("{e}"));
    }
    scene
}

#[test]
fn a_snapshot_that_finds_kubelet_paused_after_the_deadline_has_the_pods_restored_and_kubelet_started()
 {
    let node = Node::new();
    let scene = overdue(&node);
    scene
        .netfix("snapshot -o json")
        .exits(1)
        .has_no("window-open");
    assert_eq!(scene.deadlines().len(), 0, "the deadline has not passed");
    std::thread::sleep(Duration::from_secs(12));
    assert!(!scene.runs(KUBELET));
    scene
        .netfix("snapshot -o json")
        .exits(1)
        .names("window-open", "", &[KUBELET]);
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "{}",
        scene.machine.systemd_state()
    );
    scene.assert_networks();
    scene.netfix("resume").exits(0);
    scene.assert_whole();
    scene
        .netfix("snapshot -o json")
        .exits(0)
        .has_no("window-open");
}

#[test]
fn a_snapshot_leaves_a_pause_alone_whose_netfix_lives() {
    let node = Node::new();
    let scene = Scene::new(&node);
    // COMMAND ends before the deadline; the wait for the NIC need not.
    let lose = scene.script("lose", LOSING);
    let upgrade = scene.start_upgrade("--deadline 5s --nic-wait 8s", &lose);
    scene.wait_for_phase("restore");
    for timer in scene.deadlines() {
        let stopped = scene.machine.systemctl(&format!("stop {timer}"));
        stopped.unwrap_or_else(|e| panic!("{e}"));
    }
    std::thread::sleep(Duration::from_secs(6));
    scene.netfix("snapshot -o json").has_no("window-open");
    assert!(!scene.runs(KUBELET));
    assert_eq!(scene.deadlines().len(), 0);
    upgrade.finish();
    scene.assert_runs(KUBELET);
}
