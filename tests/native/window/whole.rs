//! A window without problems.

use std::collections::BTreeMap;

use serde_json::Value;

use super::nics;
use super::scene::{Scene, codes, of_pods, phases, quick};
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
        "{record}\n{}",
        scene.log_of(&record)
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

/// The window has rehearsed its snapshot before COMMAND, and says what came of it.
fn assert_rehearsed(scene: &Scene<'_>) {
    let record = scene.record();
    let figures = &record["rehearsal"];
    assert_eq!(figures["pods"], figures["identical"], "{record}");
    assert_eq!(figures["pods"], scene.pods.len(), "{record}");
    scene
        .netfix("report")
        .exits(0)
        .stdout_has(&["come back identical"]);
    let words = "rehearsed: 2 of 2 pods come back identical (";
    assert!(scene.log_of(&record).contains(words), "{record}");
}

/// The next window answers with one document that has its record.
fn assert_document(scene: &Scene<'_>, options: &str, command: &str) {
    let words = format!("upgrade {HASTE} {options} -o json -- {command}");
    let document = scene.netfix(&words).exits(0).json();
    assert_eq!(
        (&document["command"], &document["exit"]),
        (&"upgrade".into(), &0.into())
    );
    let records = scene.records();
    assert!(
        records.len() == 2 && records.iter().all(|record| record["exit"] == 0),
        "{records:?}"
    );
    let (mut report, record) = (document["report"].clone(), &records[1]);
    assert_eq!(report["computed"]["open"], false, "{report}");
    // The checksum is that of the file, and `computed` follows from the rest.
    let both = report.as_object_mut().expect("an object");
    both.remove("computed");
    let mut stored = record.as_object().expect("an object").clone();
    stored.remove("checksum");
    assert_eq!(*both, stored, "the answer and the record differ");
    let log = record["log"].as_str().expect("a log");
    assert!(std::path::Path::new(log).is_file(), "{log} is not there");
    assert_eq!(of_pods(&document, "state"), ["restored", "restored"]);
    scene.assert_whole();
}

#[test]
fn in_the_foreground_everything_is_as_before_and_the_record_is_good() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let (command, driver) = (scene.reload(), nics::kind(&scene));
    let run = scene.upgrade("", &command).exits(0);
    assert_streams(&scene, &run);
    scene.assert_whole();
    assert_good_record(&scene, &command);
    assert_rehearsed(&scene);
    nics::assert_same_driver(&scene, &driver);
    assert_document(&scene, "--foreground", &command);
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
    assert_document(&scene, "", &command);
}

#[test]
fn what_daemons_own_comes_back_from_the_snapshot_of_the_window() {
    let node = Node::new();
    let pods = vec![quick(node.pod("web")).simple()];
    pods[0].ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
    pods[0].ip("addr add 10.53.53.53/32 dev lo");
    let scene = Scene::with_pods(&node, pods);
    scene.machine.start_kubelet(ADMINISTRATOR);
    scene.upgrade("", &scene.reload()).exits(0);
    scene.assert_whole();
    // And where netfix dies in the window.
    let body = format!("{}\nkill -KILL $PPID", scene.reloading());
    scene.upgrade("", &scene.script("dies", &body));
    scene.netfix("restore").exits(0);
    scene.netfix("resume").exits(0);
    scene.assert_whole();
}

#[test]
fn a_harmless_command_is_no_outage_and_no_pod_is_read_between_pause_and_command() {
    let node = Node::new();
    let scene = Scene::new(&node);
    // A rehearsal reads the pods again, and its twins.
    let run = scene.upgrade("-vv --no-rehearsal", "true").exits(0);
    scene.assert_whole();
    let record = scene.record();
    assert_eq!(of_pods(&record, "state"), ["in-sync", "in-sync"]);
    assert_eq!(of_pods(&record, "lost"), [Value::Null, Value::Null]);
    assert_eq!(of_pods(&record, "rebuilt"), [false, false]);
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
    // Before the pause each namespace is read once.
    let each: Vec<_> = readings(before).into_values().collect();
    assert_eq!(each, vec![1; scene.pods.len() + 1], "{}", run.transcript());
    assert_eq!(readings(paused).len(), 1, "{}", run.transcript());
}
