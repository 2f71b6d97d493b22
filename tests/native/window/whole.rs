//! A window without problems.

use std::collections::BTreeMap;

use serde_json::Value;

use super::scene::{FOLDERS, Scene, codes, of_pods, phases, quick};
use crate::common::Node;
use crate::common::run::Run;
use crate::common::systemd::ADMINISTRATOR;

const HASTE: &str = "--yes --watch 0s --nic-wait 20s --answer-wait 2s";
const COURSE: [&str; 8] = [
    "check", "snapshot", "pause", "command", "restore", "verify", "resume", "proof",
];

/// The record of a window in which every pod lost its network and was restored.
fn assert_good_record(scene: &Scene<'_>, command: &str) {
    let record = scene.record();
    assert_eq!(
        (&record["exit"], &record["command"]),
        (&0.into(), &"upgrade".into()),
        "{record}"
    );
    assert_eq!(phases(&record), COURSE);
    assert!(
        record["phases"]
            .as_array()
            .expect("phases")
            .iter()
            .all(|phase| phase["ok"] == true),
        "{record}"
    );
    assert_eq!(record["run"]["argv"], Value::from(vec![command]));
    assert_eq!(record["run"]["exit"], 0);
    assert_eq!(codes(&record, "error"), [""; 0]);
    assert_eq!(of_pods(&record, "id"), scene_ids(scene));
    for pod in record["pods"].as_array().expect("pods") {
        let at = |key: &str| {
            pod[key]
                .as_u64()
                .unwrap_or_else(|| panic!("no {key} of {pod}"))
        };
        assert!(at("lost") <= at("answered"), "{pod}");
        assert_eq!(
            (&pod["state"], &pod["rebuilt"]),
            (&"restored".into(), &false.into()),
            "{pod}"
        );
        assert_eq!(pod["before"], pod["after"], "{pod}");
    }
    let log = scene.log_of(&record);
    assert!(
        log.contains("\nthe driver is being upgraded\n") && log.contains("netfix: pausing"),
        "{log}"
    );
}

fn scene_ids(scene: &Scene<'_>) -> Vec<Value> {
    let mut ids: Vec<_> = scene.pods.iter().map(|pod| pod.name().to_owned()).collect();
    ids.sort();
    ids.into_iter().map(Value::from).collect()
}

/// The result on stdout, messages and COMMAND's output on stderr.
fn assert_streams(scene: &Scene<'_>, run: &Run) {
    let all = scene.pods.len();
    let verdict = format!("All well: {all} of {all} pods back;");
    assert!(run.out.contains(&verdict), "{}", run.transcript());
    assert!(
        !run.out.contains("the driver is being upgraded"),
        "{}",
        run.transcript()
    );
    assert!(
        run.err.contains("the driver is being upgraded"),
        "{}",
        run.transcript()
    );
    assert!(
        run.err.contains("netfix: pausing kubelet.service"),
        "{}",
        run.transcript()
    );
}

#[test]
fn in_the_foreground_everything_is_as_before_and_the_record_is_good() {
    for folder in FOLDERS {
        let node = Node::new();
        let scene = Scene::with_kubelet_in(&node, folder);
        let command = scene.reload();
        let run = scene.upgrade("", &command).exits(0);
        assert_streams(&scene, &run);
        scene.assert_whole();
        assert_good_record(&scene, &command);
    }
}

#[test]
fn as_a_unit_the_result_is_the_same() {
    let node = Node::new();
    let scene = Scene::with_kubelet_in(&node, ADMINISTRATOR);
    let unit = scene.path("unit");
    let body = format!(
        "systemctl is-active netfix-upgrade.service >{}",
        unit.display()
    );
    let command = scene.script(
        "reload",
        &format!(
            "echo the driver is being upgraded\n{body}\n{}",
            scene.reloading()
        ),
    );
    let run = scene
        .netfix(&format!("upgrade {HASTE} -- {command}"))
        .exits(0);
    assert_streams(&scene, &run);
    let state = std::fs::read_to_string(unit).expect("what COMMAND saw");
    assert_eq!(state.trim(), "active", "it was no unit");
    scene.assert_whole();
    assert_good_record(&scene, &command);
}

#[test]
fn what_daemons_own_comes_back_from_the_snapshot_of_the_window() {
    for dies in [false, true] {
        let node = Node::new();
        let pods = vec![quick(node.pod("web")).simple()];
        pods[0].ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
        pods[0].ip("addr add 10.53.53.53/32 dev lo");
        let scene = Scene::with_pods(&node, pods);
        scene.machine.start_kubelet(ADMINISTRATOR);
        if dies {
            let body = format!("{}\nkill -KILL $PPID", scene.reloading());
            scene.upgrade("", &scene.script("reload", &body));
            scene.netfix("restore").exits(0);
            scene.netfix("resume").exits(0);
        } else {
            scene.upgrade("", &scene.reload()).exits(0);
        }
        scene.assert_whole();
    }
}

#[test]
fn the_json_output_is_one_document_that_contains_the_report() {
    for foreground in ["", "--foreground"] {
        let node = Node::new();
        let scene = Scene::new(&node);
        let run = scene
            .netfix(&format!(
                "upgrade {HASTE} {foreground} -o json -- {}",
                scene.reload()
            ))
            .exits(0);
        let document = run.json();
        assert_eq!(
            (&document["command"], &document["exit"]),
            (&"upgrade".into(), &0.into())
        );
        let (mut report, record) = (document["report"].clone(), scene.record());
        assert_eq!(report["computed"]["open"], false, "{report}");
        // The checksum is that of the file, and `computed` follows from the rest.
        let both = report.as_object_mut().expect("an object");
        both.remove("computed");
        let mut stored = record.as_object().expect("an object").clone();
        stored.remove("checksum");
        assert_eq!(*both, stored, "the answer and the record differ");
        let log = record["log"].as_str().expect("a log");
        assert!(std::path::Path::new(log).is_file(), "{log} is not there");
        let states: Vec<_> = of_pods(&document, "state");
        assert_eq!(states, ["restored", "restored"]);
        scene.assert_whole();
    }
}

#[test]
fn a_harmless_command_is_a_good_window_without_an_outage() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.upgrade("", "true").exits(0);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(of_pods(&record, "state"), ["in-sync", "in-sync"]);
    assert_eq!(of_pods(&record, "lost"), [Value::Null, Value::Null]);
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
}

#[test]
fn before_the_pause_each_namespace_is_read_once_and_no_pod_between_pause_and_command() {
    let node = Node::new();
    let scene = Scene::new(&node);
    // A rehearsal reads the pods again, and its twins.
    let run = scene.upgrade("-vv --no-rehearsal", "true").exits(0);
    let readings = |text: &str| {
        let mut readings = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains("> RTM_GETADDR")) {
            let (_, place) = line.split_once(" netns ").expect("the namespace's cookie");
            let cookie = place.split(':').next().unwrap_or_default();
            *readings.entry(cookie.to_owned()).or_insert(0) += 1;
        }
        readings
    };
    let (before, after) = run.err.split_once("netfix: pausing").expect("a pause");
    let (paused, _) = after.split_once("netfix: running").expect("COMMAND");
    let each: Vec<_> = readings(before).into_values().collect();
    assert_eq!(each, vec![1; scene.pods.len() + 1], "{}", run.transcript());
    assert_eq!(readings(paused).len(), 1, "{}", run.transcript());
}

#[test]
fn two_windows_one_after_the_other_have_a_record_each() {
    let node = Node::new();
    let scene = Scene::new(&node);
    for count in 1..=2 {
        scene.upgrade("", &scene.reload()).exits(0);
        scene.assert_whole();
        let records = scene.records();
        assert_eq!(records.len(), count);
        assert!(
            records.iter().all(|record| record["exit"] == 0),
            "{records:?}"
        );
    }
}

#[test]
fn a_window_rehearses_its_snapshot_before_command_and_says_what_came_of_it() {
    let node = Node::new();
    let scene = Scene::new(&node);
    scene.upgrade("", &scene.reload()).exits(0);
    let record = scene.record();
    let figures = &record["rehearsal"];
    assert_eq!(figures["pods"], figures["identical"], "{record}");
    assert_eq!(figures["pods"], scene.pods.len(), "{record}");
    let report = scene.netfix("report").exits(0);
    assert!(
        report.out.contains("come back identical"),
        "{}",
        report.transcript()
    );
    assert!(
        scene
            .log_of(&record)
            .contains("rehearsed: 2 of 2 pods come back identical ("),
        "{record}"
    );
}
