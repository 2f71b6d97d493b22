//! What the guard may do, and when: a link that flaps, a person's work beside it, holds, reports, and windows that nobody closes.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Guard, beside, once, quick, remembered, unplanned, upgrade};
use crate::common::background::{Background, wait_until};
use crate::common::runtimes::{ContainerOfPod, FakeCri, Sandbox, Script};
use crate::common::{Node, Pod, Run, tool};
use crate::window::scene::Scene;

#[test]
fn a_nic_that_flaps_is_restored_at_once_each_time_with_an_outage_of_its_own() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "--watch 60s --backoff 1h");
    for windows in 1..=4 {
        node.lose_and_reload();
        guard.closes(windows);
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        // The next loss is in the watch of this restore.
        thread::sleep(Duration::from_secs(2));
    }
    for window in guard.windows() {
        let ended = window["ended"].as_u64().expect("an end");
        for pod in window["pods"].as_array().expect("the pods") {
            let outage = pod["answered"].as_u64().zip(pod["lost"].as_u64());
            let outage = outage.map(|(answered, lost)| answered - lost);
            assert!(outage.is_some_and(|outage| outage <= ended), "{pod:#}");
        }
        assert_eq!(window["phases"][0]["name"], "loss");
    }
    assert_eq!(remembered(&node)["losses"]["eth0"]["attempts"], 4);
    assert!(!guard.text().contains("loss-repeats"), "{}", guard.text());
}

#[test]
fn in_the_watch_a_link_that_somebody_deletes_stays_deleted_and_a_person_restores_at_once() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "--watch 60s");
    node.lose_and_reload();
    guard.closes(1);
    pods[1].ip("link del eth0");
    // Any event makes it look again.
    node.ns.ip("link add other0 type bridge");
    thread::sleep(Duration::from_secs(3));
    assert!(!pods[1].has_eth0(), "{}", guard.text());
    beside(&node, "status")
        .exits(0)
        .stdout_has(&["watching the pods of the last restore"]);
    node.netfix("restore").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert_eq!(guard.windows().len(), 1, "{}", guard.text());
}

/// A CRI runtime with these sandboxes, the options that select it, and a snapshot of its pods.
fn with_cri(node: &Node, sandboxes: impl Iterator<Item = Sandbox>) -> (FakeCri, String) {
    let script = Script {
        sandboxes: sandboxes.collect(),
        ..Script::default()
    };
    let cri = FakeCri::start(&node.temp().join("cri.sock"), script);
    let runtime = format!(
        "--runtime cri --runtime-endpoint unix://{}",
        cri.socket.display()
    );
    node.netfix(&format!("snapshot {runtime}")).exits(0);
    (cri, runtime)
}

#[test]
fn what_becomes_of_a_pod_in_the_watch_is_added_to_the_record_of_its_restore() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let numbered = (1..).zip(&pods);
    let sandboxes = numbered.map(|(number, pod)| Sandbox::of(pod, pod.name(), number));
    let (cri, runtime) = with_cri(&node, sandboxes);
    let guard = Guard::start(&node, &format!("--watch 3s {runtime}"));
    node.lose_and_reload();
    let window = guard.closes(1).remove(0);
    assert_eq!(window["exit"], 0, "{window:#}");
    assert_eq!(window["pods"][0]["rebuilt"], serde_json::Value::Null);
    // kubelet makes another sandbox of the same pod.
    cri.change(|script| script.sandboxes[0].attempt += 1);
    guard.says("the watch is over: 1 of 2 pods verified: not rebuilt");
    guard.says("pod-rebuilt");
    let window = guard.windows().remove(0);
    assert_eq!(window["exit"], 5, "{window:#}");
    let rebuilt = |at: usize| window["pods"][at]["rebuilt"].as_bool();
    assert_eq!(
        [rebuilt(0), rebuilt(1)]
            .iter()
            .flatten()
            .filter(|one| **one)
            .count(),
        1,
        "{window:#}"
    );
    let phases = window["phases"].as_array().expect("phases");
    assert_eq!(phases.last().expect("a phase")["name"], "proof");
    assert_eq!(remembered(&node)["last"]["exit"], 5);
}

#[test]
fn a_container_that_was_restarted_while_its_pod_was_lost_is_in_the_record_of_the_restore() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let numbered = (1..).zip(&pods);
    let sandboxes = numbered.map(|(number, pod)| Sandbox {
        containers: vec![ContainerOfPod::running("app", 0)],
        ..Sandbox::of(pod, pod.name(), number)
    });
    let (cri, runtime) = with_cri(&node, sandboxes);
    let guard = Guard::start(&node, &format!("--watch 2s {runtime}"));
    node.lose();
    guard.says("waiting for eth0");
    // Its liveness probe fails.
    cri.change(|script| {
        script.sandboxes[0].end_containers(137);
        script.sandboxes[0].restart();
    });
    node.reload();
    guard.closes(1);
    guard.says("pod-restarted");
    guard.says("the watch is over: no pod was rebuilt (2 of 2 checked); 1 restarted");
    let window = guard.windows().remove(0);
    assert_eq!(window["exit"], 5, "{window:#}");
    let restarts = |pod: &serde_json::Value| pod["container_changes"][0]["restarts"].as_u64();
    let all = window["pods"].as_array().expect("the pods");
    let mut restarts: Vec<_> = all.iter().map(restarts).collect();
    restarts.sort();
    assert_eq!(restarts, [None, Some(1)], "{window:#}");
}

#[test]
fn a_person_keeps_the_guard_still_until_the_end_of_the_hold() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    beside(&node, "guard --hold 1h")
        .exits(0)
        .stderr_has(&["held until"]);
    guard.says("held until");
    node.lose_and_reload();
    thread::sleep(Duration::from_secs(3));
    assert!(pods.iter().all(|pod| !pod.has_eth0()), "{}", guard.text());
    beside(&node, "status").stdout_has(&["held until"]);
    beside(&node, "guard --hold 0s")
        .exits(0)
        .stderr_has(&["no longer held"]);
    guard.closes(1);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    // One that ends by itself.
    beside(&node, "guard --hold 4s").exits(0);
    guard.says("held until");
    node.lose_and_reload();
    guard.closes(2);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_person_waits_for_the_restore_of_the_guard_unless_told_otherwise() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    let window = node.state_dir().join("window.json");
    let words = ["restore", "snapshot", "restore --lock-wait 0s"];
    for ((words, exit), windows) in words.into_iter().zip([0, 0, 4]).zip(1..) {
        node.lose_and_reload();
        // Its probes take a second.
        assert!(wait_until(|| window.exists()), "{}", guard.text());
        let run = node.netfix(words).exits(exit);
        run.stderr_has(&["(guard)"]);
        guard.closes(windows);
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
    }
}

#[test]
fn what_the_guard_learns_while_another_netfix_works_is_written_afterwards() {
    let node = Node::new();
    let _well = node.pod("well").simple();
    let taken = node.pod("taken").simple();
    node.snapshot();
    let _guard = Guard::start(&node, "--backoff 1s");
    // Another machine's address by now.
    node.gateway
        .ip(&format!("addr add {}/32 dev lo", taken.address()));
    node.lose_and_reload();
    let incomplete = || {
        remembered(&node)["incomplete"]
            .as_object()
            .map_or(0, serde_json::Map::len)
    };
    assert!(wait_until(|| incomplete() == 1), "{}", remembered(&node));
    // The lock of another netfix, while the pod goes.
    let lock = node.state_dir().join("lock").display().to_string();
    let holder = tool::command("flock", [&lock, "sleep", "6"]).spawn();
    let mut holder = holder.expect("flock(1)");
    drop(taken);
    holder.wait().expect("its end");
    assert!(wait_until(|| incomplete() == 0), "{}", remembered(&node));
    assert!(wait_until(|| remembered(&node)["again_at"].is_null()));
}

#[test]
fn a_pause_holds_the_guard_where_no_kubelet_runs() {
    let node = Node::new();
    let scene = Scene::without_kubelet(&node);
    node.snapshot();
    // Without a guard there is nothing to hold.
    let nothing_to_hold = scene.netfix("pause").exits(0);
    assert!(!nothing_to_hold.transcript().contains("held"));
    let guard = Guard::start(&node, "");
    scene
        .netfix("pause --deadline 1h")
        .exits(0)
        .stderr_has(&["guard: held until"]);
    guard.says("held until");
    // A shorter one leaves that.
    scene.netfix("pause --deadline 10s").exits(0);
    node.lose_and_reload();
    thread::sleep(Duration::from_secs(3));
    let is_lost = |pod: &Pod| !pod.has_eth0();
    assert!(scene.pods.iter().all(is_lost), "{}", guard.text());
    scene
        .netfix("resume")
        .exits(0)
        .stderr_has(&["guard: no longer held"]);
    guard.closes(1);
    scene.assert_networks();
    // That of a person is not its own.
    beside(&node, "guard --hold 1h").exits(0);
    scene.netfix("resume").exits(0);
    beside(&node, "status").stdout_has(&["held until"]);
}

#[test]
fn a_guard_that_only_reports_says_once_what_it_would_restore_and_changes_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let guard = Guard::start(&node, "--report-only");
    node.lose_and_reload();
    guard.says("would restore all pods on eth0");
    node.ns.ip("link add other0 type bridge");
    thread::sleep(Duration::from_secs(3));
    assert_eq!(
        guard.text().matches("would restore").count(),
        1,
        "{}",
        guard.text()
    );
    assert!(pods.iter().all(|pod| !pod.has_eth0()));
    assert!(guard.windows().is_empty());
    assert_eq!(remembered(&node)["reported"], 1);
    beside(&node, "status").stdout_has(&["reports only: 1 restore"]);
    let file = node.temp().join("metrics.prom");
    beside(&node, &format!("check --textfile {}", file.display()));
    let metrics = fs::read_to_string(file).expect("metrics");
    assert!(
        metrics.contains("netfix_guard_reported_total 1"),
        "{metrics}"
    );
    assert!(metrics.contains("netfix_guard_running 1"), "{metrics}");
    drop(guard);
    once(&node, "--report-only")
        .exits(1)
        .stderr_has(&["would restore"]);
    node.restore();
    once(&node, "--report-only").exits(0);
}

#[test]
fn a_window_whose_netfix_was_killed_is_closed_and_its_pods_come_back() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let window = node.state_dir().join("window.json");
    let mut command = upgrade(
        &node,
        "--force",
        &["sh", "-c", "ip link del eth0; sleep 60"],
    );
    let killed = Background::start(command.stdin(Stdio::null()), node.temp().join("upgrade"));
    let has_run = || {
        let text = fs::read_to_string(&window).unwrap_or_default();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        record["run"]["process"]["pid"]
            .as_i64()
            .filter(|_| !node.ns.has_link("eth0"))
    };
    assert!(wait_until(|| has_run().is_some()), "{}", killed.text());
    let program = has_run().expect("its process");
    let pid = Pid::from_raw(killed.id().cast_signed());
    kill(pid, Signal::SIGKILL).expect("it is ours");
    // While COMMAND runs, the window is not left.
    once(&node, "")
        .exits(0)
        .stderr_has(&["the window of `netfix upgrade` is open"]);
    let program = Pid::from_raw(i32::try_from(program).expect("a pid"));
    let _ = kill(program, Signal::SIGKILL);
    killed.finish();
    node.reload();
    let run = once(&node, "").exits(0);
    assert!(pods[0].has_eth0(), "{}", run.transcript());
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert!(!window.exists());
    assert_eq!(unplanned(&node).len(), 1);
    let listed = beside(&node, "report --list -o json").exits(0);
    assert!(
        listed.out.contains("\"upgrade\""),
        "{}",
        listed.transcript()
    );
}

#[test]
fn a_damaged_record_of_the_host_does_not_keep_the_pods_from_coming_back() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    // Another generation has the host.
    pods[0].ip("route add 10.77.0.0/16 dev eth0");
    node.snapshot();
    pods[0].ip("route del 10.77.0.0/16 dev eth0");
    node.snapshot();
    let file = node.state_dir().join("node.json");
    let text = fs::read_to_string(&file).expect("node.json");
    fs::write(&file, &text[..text.len() / 2]).expect("a damaged file");
    node.lose_and_reload();
    let run = node.netfix(&quick("--once"));
    assert!(
        run.err.contains("2 of 2 pods restored"),
        "{}",
        run.transcript()
    );
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.netfix("check")
        .exits(2)
        .names("checkpoint-corrupt", "", &["newest generation"]);
}

#[test]
fn a_restore_by_hand_is_in_the_history_of_the_node_and_pushes_no_window_out() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.netfix("restore").exits(0);
    assert!(
        !node.state_dir().join("windows").exists(),
        "nothing was restored"
    );
    node.lose_and_reload();
    node.netfix("restore").exits(0);
    assert!(pods.iter().all(Pod::has_eth0));
    let run = beside(&node, "report --list").exits(0);
    run.stdout_has(&["restore", "All restored", "2 of 2"]);
    let run = beside(&node, "report").exits(0);
    run.stdout_has(&["2 of 2 pods restored; no gateway was asked: `netfix verify` does"]);
    node.netfix("check").exits(0);
    // After a window, a restore by hand repairs what that left: the report is still about the window.
    let words = "upgrade --yes --foreground --no-pause --watch 0s";
    let window = node.script_alone("true", "exec \"$@\" -- true", words);
    Run::of(&mut { window }).exits(0);
    pods[0].ip("link del eth0");
    node.netfix("restore").exits(0);
    let listed = beside(&node, "report --list -o json").exits(0).json();
    let listed = listed["windows"].as_array().expect("windows").clone();
    assert_eq!(listed.len(), 3, "{listed:#?}");
    let run = beside(&node, "report").exits(0);
    run.stdout_has(&["opened by netfix upgrade"]);
}

#[test]
fn a_damaged_checkpoint_of_a_pod_that_answers_is_a_warning_of_verify() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    fs::write(node.checkpoint_of(&pods[0]), "{").expect("a damaged file");
    let run = node.netfix("verify").exits(0).errors(&[]);
    run.warnings(&[("checkpoint-corrupt", pods[0].name())]);
}

#[test]
fn what_a_person_gives_up_is_in_the_history_of_the_node() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("addr flush dev eth0");
    let accept = format!("snapshot --accept {}", pods[0].name());
    node.netfix(&accept).exits(0);
    // Once.
    node.netfix(&accept).exits(4);
    let listed = beside(&node, "report --list -o json").exits(0).json();
    let windows = listed["windows"].as_array().expect("windows");
    assert_eq!(windows.len(), 1, "{listed:#}");
    let line = &windows[0]["window"];
    assert_eq!(line["verdict"], "given-up");
    assert_eq!(line["cause"], pods[0].name());
    let run = beside(&node, "report").exits(0);
    let run = run.stdout_has(&["Given up: 1 pod: what is there now is the good state"]);
    run.stdout_has(&["has lost all its addresses"]);
}

#[test]
fn the_record_of_a_restore_by_hand_has_what_the_kernel_logged_meanwhile() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let path = node.temp().join("kernel-log");
    let mut text = "3,5,1,-;ice 0000:3b:00.0 eth0: before the restore\n".to_owned();
    fs::write(&path, &text).expect("a log");
    node.lose();
    let mut command = node.netfix_command(&[], "restore -v --nic-wait 60s");
    command.env("NETFIX_KMSG", &path);
    let restore = Background::start(&mut command, node.temp().join("restore"));
    // It reads on from what is there when it begins.
    let has_open = |entry: fs::DirEntry| {
        let files = fs::read_dir(entry.path().join("fd"));
        let mut files = files.into_iter().flatten().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|to| to == path))
    };
    let is_read = || {
        let mut processes = fs::read_dir("/proc").expect("processes").flatten();
        processes.any(has_open)
    };
    assert!(wait_until(is_read), "{}", restore.text());
    text += "3,6,2,-;ice 0000:3b:00.0 eth0: Reached MAC filter limit, forcing promisc mode\n";
    fs::write(&path, &text).expect("a log");
    node.reload();
    let said = restore.finish();
    assert!(pods[0].has_eth0(), "{said}");
    let run = beside(&node, "report").exits(0);
    let run = run.stdout_has(&["Reached MAC filter limit"]);
    assert!(!run.out.contains("before the restore"), "{}", run.out);
}
