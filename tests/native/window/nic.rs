//! A NIC that does not return: kubelet starts again and netfix reports what is broken; or netfix waits for a person.

use nix::sys::signal::Signal;
use serde_json::Value;

use super::scene::{KUBELET, LOSING, Scene, of_pods, phases, quick};
use crate::common::Node;
use crate::common::background::wait_until;

const NEVER: &str = "--nic-wait 500ms";

/// Whether a pod in this state has its network.
fn is_good(state: &Value) -> bool {
    state == "restored" || state == "in-sync"
}

/// Loses the NIC and does not return it.
fn lose(scene: &Scene<'_>) -> String {
    scene.script("lose", LOSING)
}

#[test]
fn kubelet_runs_again_and_each_lost_pod_is_reported_then_and_later() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let status = |parts: &[&str]| {
        scene.netfix("status").exits(0).stdout_has(parts);
    };
    status(&["last       none"]);
    let run = scene
        .upgrade(&format!("{NEVER} -o json"), &lose(&scene))
        .exits(5);
    for pod in &scene.pods {
        assert!(run.err.contains(pod.name()), "{}", run.transcript());
        assert!(!pod.has_eth0());
    }
    run.errors(&scene.nic_is_missing(&[]));
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
    let record = scene.record();
    assert_eq!(record["exit"], 5);
    assert!(!of_pods(&record, "state").iter().any(is_good), "{record}");
    assert_eq!(of_pods(&record, "answered"), [Value::Null, Value::Null]);
    scene.netfix("wait").exits(5);
    let id = record["id"].as_str().expect("an id");
    status(&[
        "network    0 of 2 pods have their network: eth0 is missing\n",
        "lost       macvlan eth0 is gone: ",
        "next       Run `netfix restore`",
        "window     none open",
        &format!("last       {id}  Pods affected (exit 5)"),
    ]);
    let shown = scene.netfix("status -o json").exits(0).json()["status"].clone();
    assert_eq!(shown["last"]["id"], id);
    let line = &shown["last"]["window"];
    assert_eq!(line["exit"], 5, "{line}");
    assert_eq!(line["verdict"], "pods-affected", "{line}");
    assert_eq!(shown["network"]["lost"], 2, "{shown}");
    scene.load_driver();
    scene.netfix("restore").exits(0);
    scene.assert_networks();
    status(&["network    2 of 2 pods have their network\n", "(exit 5)"]);
}

#[test]
fn of_many_pods_that_are_not_restored_the_log_names_the_first_and_the_report_all() {
    const PODS: usize = 33;
    let node = Node::new();
    let names: Vec<String> = (0..PODS).map(|at| format!("pod{at}")).collect();
    let pods = names.iter().map(|name| quick(node.pod(name)).simple());
    let scene = Scene::with_pods(&node, pods.collect());
    let options = format!("{NEVER} --no-rehearsal");
    let run = scene.upgrade(&options, &lose(&scene)).exits(5);
    let lines = run.err.lines().filter(|line| line.contains("  pod "));
    assert_eq!(lines.count(), 30, "{}", run.transcript());
    run.stderr_has(&[
        "33 pods not restored:",
        "  and 3 more (`netfix report -v` lists all)",
    ]);
    let report = scene.netfix("report -v").exits(0);
    for pod in &scene.pods {
        assert!(report.out.contains(pod.name()), "{}", report.transcript());
    }
}

#[test]
fn netfix_waits_for_a_late_nic() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let body = format!(
        "{}\nsetsid sh -ec 'sleep 1\n{}' >/dev/null 2>&1 &",
        LOSING,
        scene.loading().replace('\'', "\"")
    );
    scene.upgrade("", &scene.script("late", &body)).exits(0);
    scene.assert_whole();
    let record = scene.record();
    for pod in record["pods"].as_array().expect("pods") {
        let at = |key: &str| {
            pod[key]
                .as_u64()
                .unwrap_or_else(|| panic!("no {key}: {pod}"))
        };
        assert!(at("answered") - at("lost") >= 1000, "{pod}");
    }
}

/// On hold the lock is free, but a second window is refused.
fn assert_no_second_window(scene: &Scene<'_>) {
    let (window, files) = (scene.window(), scene.node.state_files());
    for words in [
        "upgrade --yes --foreground -- true",
        "upgrade --yes -- true",
        "pause",
    ] {
        scene
            .netfix(words)
            .exits(4)
            .errors(&[("window-open", "")])
            .names("window-open", "", &[KUBELET]);
        assert_eq!(
            (&scene.window(), &scene.node.state_files()),
            (&window, &files),
            "{words}"
        );
        scene.assert_held(KUBELET);
    }
    // A snapshot in the middle of a loss replaces nothing good.
    scene.netfix("snapshot").exits(1);
}

/// The repair, then a restore and a resume, or a resume by force alone.
fn repair(scene: &Scene<'_>, is_restored: bool) {
    scene.load_driver();
    if is_restored {
        scene.netfix("restore").exits(0);
        scene.assert_networks();
        scene.assert_held(KUBELET);
        scene.netfix("resume").exits(0);
    } else {
        scene.netfix("resume").exits(4);
        scene.assert_held(KUBELET);
        scene.netfix("resume --force").exits(0);
    }
    scene.assert_runs(KUBELET);
}

#[test]
fn on_hold_the_window_ends_after_a_repair_a_restore_and_a_resume() {
    let node = Node::new();
    let scene = Scene::new(&node);
    for (earlier, is_restored) in [true, false].into_iter().enumerate() {
        let upgrade = scene.start_upgrade(&format!("{NEVER} --keep-paused -o json"), &lose(&scene));
        scene.wait_for_hold();
        let follow = scene.start("status --follow");
        scene.assert_held(KUBELET);
        let reported = scene.netfix("status -o json").json()["status"].clone();
        assert_eq!(
            (&reported["window"]["phase"], &reported["lock"]),
            (&"hold".into(), &Value::Null),
            "{reported}"
        );
        if is_restored {
            assert_no_second_window(&scene);
        }
        repair(&scene, is_restored);
        upgrade.finish().exits(0).errors(&[]);
        let followed = follow.finish().exits(0);
        let holds = followed.out.matches("kubelet stays paused for a repair");
        assert_eq!(holds.count(), 1, "{}", followed.transcript());
        followed.stdout_has(&["no pod was rebuilt (2 of 2 checked)"]);
        scene.assert_whole();
        let mut records = scene.records();
        assert_eq!(records.len(), earlier + 1, "{records:?}");
        let record = records.pop().expect("a record");
        assert_eq!(
            (&record["exit"], &record["command"]),
            (&0.into(), &"upgrade".into())
        );
        assert!(record["hold"]["resumed"].is_u64(), "{record}");
        assert!(of_pods(&record, "state").iter().all(is_good), "{record}");
        assert!(
            of_pods(&record, "answered").iter().all(Value::is_u64),
            "{record}"
        );
        assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
        assert!(phases(&record).contains(&"hold".to_owned()), "{record}");
    }
}

#[test]
fn on_hold_the_deadline_ends_the_wait() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade(
        &format!("{NEVER} --keep-paused --deadline 10s -o json"),
        &lose(&scene),
    );
    scene.wait_for_hold();
    scene.assert_held(KUBELET);
    upgrade.finish().exits(5).errors(&scene.nic_is_missing(&[]));
    scene.assert_runs(KUBELET);
    scene.assert_nothing_left();
    assert_eq!(scene.record()["exit"], 5);
}

#[test]
fn on_hold_a_repair_without_a_resume_is_seen_after_an_interrupt() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade(&format!("{NEVER} --keep-paused -o json"), &lose(&scene));
    scene.wait_for_hold();
    scene.load_driver();
    scene.netfix("restore").exits(0);
    upgrade.signal(Signal::SIGTERM);
    upgrade.wait_for("SIGTERM: netfix stops waiting for the repair (--keep-paused)");
    upgrade.finish().exits(1).errors(&[("interrupted", "")]);
    scene.assert_whole();
    let states = of_pods(&scene.record(), "state");
    assert!(states.iter().all(is_good), "{states:?}");
}

#[test]
fn on_hold_the_window_does_not_wait_without_a_loss_or_a_paused_kubelet() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.upgrade("--keep-paused", &scene.reload()).exits(0);
    scene.assert_whole();
    scene
        .machine
        .systemctl("stop kubelet.service")
        .expect("a stop");
    scene
        .upgrade(&format!("{NEVER} --keep-paused"), &lose(&scene))
        .exits(5);
    scene.assert_nothing_left();
}

#[test]
fn a_deadline_during_the_wait_for_the_nic_is_reported() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let upgrade = scene.start_upgrade("--nic-wait 60s --deadline 10s -o json", &lose(&scene));
    scene.wait_for_phase("restore");
    assert!(
        wait_until(|| scene.runs(KUBELET)),
        "the deadline never came"
    );
    scene.load_driver();
    upgrade
        .finish()
        .exits(5)
        .errors(&[("kubelet-not-paused", "")]);
    scene.assert_whole();
}
