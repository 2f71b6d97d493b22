//! A window rehearses its restore before anything is lost, and refuses where not all would come back.

use std::fs;

use serde_json::Value;

use super::scene::{Scene, codes};
use crate::common::{Node, Pod, Run};

/// A route of the pod's kernel that its kernel would make again.
fn lose_the_broadcast_route(pod: &Pod<'_>) {
    let routes = pod.ip("-j route show table local type broadcast dev eth0");
    let routes: Value = serde_json::from_str(&routes).expect("JSON");
    let to = routes[0]["dst"].as_str().expect("a broadcast route");
    pod.ip(&format!("route del broadcast {to} dev eth0 table local"));
}

/// The figures of a dry run.
fn figures(run: &Run) -> Value {
    run.json()["node"]["rehearsal"].clone()
}

/// The record of the last window.
fn newest(scene: &Scene<'_>) -> Value {
    scene.records().pop().expect("a record")
}

#[test]
fn a_window_that_would_not_bring_all_back_is_refused_before_the_loss() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let pod = &scene.pods[0];
    lose_the_broadcast_route(pod);
    let before = pod.capture();
    let ran = scene.path("ran");
    let command = scene.script("mark", &format!("touch {}", ran.display()));
    for options in ["--dry-run", "--yes"] {
        let run = scene
            .netfix(&format!("upgrade {options} --watch 0s -- {command}"))
            .exits(4);
        assert!(!ran.exists(), "{options}: COMMAND was run");
        run.stderr_has(&["rehearsal-differs", pod.name(), "table 255", "--force"]);
    }
    let run = scene
        .netfix(&format!("upgrade --dry-run -o json -- {command}"))
        .exits(4);
    run.errors(&[("rehearsal-differs", pod.name()), ("unsupported", "")]);
    pod.assert_same_as(&before);
    // Like an object that no restore brings back.
    scene.upgrade("--no-rehearsal", "true").exits(0);
    let record = newest(&scene);
    assert!(record.get("rehearsal").is_none(), "{record}");
    scene.upgrade("--force", &command).exits(0);
    let record = newest(&scene);
    assert_eq!(record["rehearsal"]["identical"], 1, "{record}");
    assert!(codes(&record, "warning").contains(&"rehearsal-differs".to_owned()));
    assert!(ran.exists(), "COMMAND was not run");
}

#[test]
fn the_dry_run_shows_what_the_rehearsal_found_and_what_the_outage_may_be() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let command = scene.reload();
    let dry = format!("upgrade --dry-run -- {command}");
    scene.netfix(&dry).exits(0).stdout_has(&[
        "\nrehearsed: 2 of 2 pods come back identical (",
        "\nexpected outage: restore ",
        ", driver reload not measured yet\n",
    ]);
    let json = format!("upgrade --dry-run -o json -- {command}");
    let found = figures(&scene.netfix(&json).exits(0));
    assert_eq!(
        (&found["pods"], &found["identical"], &found["unproven"]),
        (&2.into(), &2.into(), &0.into()),
        "{found}"
    );
    assert_eq!(found["reload_ms"], Value::Null, "{found}");
    let without = scene.netfix(&format!(
        "upgrade --dry-run --no-rehearsal -o json -- {command}"
    ));
    assert_eq!(figures(&without.exits(0)), Value::Null);
    // What a window has measured is known to the next one with this command.
    scene.upgrade("", &command).exits(0);
    let found = figures(&scene.netfix(&json).exits(0));
    let record = scene.record();
    let all = |key: &str| record[key].as_array().expect("a list").clone();
    let lost = all("pods")
        .iter()
        .filter_map(|pod| pod["lost"].as_u64())
        .min();
    let phases = all("phases");
    let command = phases.iter().find(|phase| phase["name"] == "command");
    let ended = command.and_then(|phase| phase["to"].as_u64());
    let away = ended.zip(lost).map(|(ended, lost)| ended - lost);
    assert_eq!(found["reload_ms"].as_u64(), away, "{found}");
    // The probe of addresses is a part of what is expected.
    assert_eq!(found["probe_ms"], 200, "{found}");
    let other = scene.netfix("upgrade --dry-run -o json -- true").exits(0);
    assert_eq!(figures(&other)["reload_ms"], Value::Null);
}

#[test]
fn what_daemons_own_on_host_and_pods_is_rehearsed_as_a_window_restores_it() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
    node.ns
        .ip("route add 10.78.0.0/16 dev eth0 proto bgp metric 20");
    node.snapshot();
    node.assert_rehearsed(1);
}

#[test]
fn what_is_not_rehearsed_is_never_counted_as_proven() {
    let node = Node::new();
    let scene = Scene::new(&node);
    let pod = &scene.pods[0];
    node.gateway
        .ip("link add mv7 link up0 type macvlan mode bridge");
    node.gateway
        .ip(&format!("link set mv7 netns {}", pod.name()));
    let run = scene
        .netfix("upgrade --dry-run --force -o json -- true")
        .exits(0);
    let found = figures(&run);
    assert_eq!(
        (&found["pods"], &found["identical"], &found["unproven"]),
        (&1.into(), &1.into(), &1.into()),
        "{found}"
    );
    run.names("not-rehearsed", pod.name(), &["another namespace"]);
    let words = "rehearsed: 1 of 2 pods comes back identical, 1 not rehearsed (";
    scene
        .netfix("upgrade --dry-run --force -- true")
        .exits(0)
        .stdout_has(&[words]);
    scene.upgrade("--force", "true");
    let record = scene.record();
    assert_eq!(record["rehearsal"]["unproven"], 1, "{record}");
    assert!(codes(&record, "info").contains(&"not-rehearsed".to_owned()));
    scene
        .netfix("report")
        .stdout_has(&[&words["rehearsed: ".len()..]]);
    let check = "check --rehearse";
    scene
        .netfix(check)
        .exits(2)
        .stdout_has(&[words, "another namespace"]);
    let line = scene.netfix(&format!("{check} --nagios")).exits(2);
    assert_eq!(line.out.lines().count(), 1, "{}", line.transcript());
    line.stdout_has(&[words]);
}

#[test]
fn a_rehearsal_that_cannot_take_place_is_a_warning_and_proves_nothing() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    let log = node.temp().join("points");
    let run = |order: &str| {
        let words = "upgrade --dry-run --no-pause -o json";
        // Beside the namespaces of other tests, and on several processors, no two runs pass their points in the same order.
        let mut command = node.script_alone("true", "exec taskset --cpu-list 0 \"$@\"", words);
        command
            .args(["--", "true"])
            .env("NETFIX_FAILPOINT", order)
            .env("NETFIX_FAILPOINT_LOG", &log);
        let _ = fs::remove_file(&log);
        let run = Run::of(&mut command);
        let points = fs::read_to_string(&log).expect("the log of the points");
        let new = points.lines().filter(|line| line.contains(" unshare"));
        let number = |line: &str| line.split(' ').next().unwrap_or_default().to_owned();
        (run, new.map(number).collect::<Vec<_>>())
    };
    let (whole, points) = run("0:kill");
    assert_eq!(figures(&whole.exits(0))["identical"], 2);
    // Those of the twin of the host, and of where all ends that is sent.
    for at in [points.len() - 2, points.len() - 1] {
        // Threads pass their points in another order each time.
        let mut number = points[at].clone();
        let hit = (0..200).find_map(|_| {
            let (run, points) = run(&format!("{number}:ENOMEM"));
            let passed = points.get(at)?.clone();
            let is_hit = passed == number;
            number = passed;
            is_hit.then_some(run)
        });
        let run = hit.expect("the failure point").exits(0);
        assert_eq!(figures(&run), Value::Null, "{}", run.transcript());
        let found = run.coded("rehearsal-differs");
        assert!(
            found.len() == 1 && !found[0].is_error() && found[0].has("ENOMEM"),
            "{}",
            run.transcript()
        );
    }
}
