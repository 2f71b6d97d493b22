//! The pre-check for cron and monitoring: it detects lost pods, and changes nothing.

use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::common::{Node, Pod, Run};

/// The output lines that begin with this word.
fn lines<'a>(run: &'a Run, word: &str) -> Vec<&'a str> {
    run.out
        .lines()
        .filter(|line| line.starts_with(word))
        .collect()
}

#[test]
fn a_covered_node_is_ok_and_prints_nothing_with_quiet() {
    let node = Node::new();
    let _pods = node.simple_pods(3);
    node.snapshot();
    node.netfix("check")
        .exits(0)
        .stdout_has(&["OK: ", "3 of 3"]);
    let quiet = node.netfix("check -q").exits(0);
    assert!(
        quiet.out.is_empty() && quiet.err.is_empty(),
        "{}",
        quiet.transcript()
    );
}

#[test]
fn every_pod_that_lost_its_interface_is_reported_as_critical() {
    let node = Node::new();
    let pods = node.simple_pods(5);
    node.snapshot();
    node.lose_and_reload();
    let run = node
        .netfix("check -q")
        .exits(2)
        .stdout_has(&["CRITICAL: degraded: 5 pods (", "CRITICAL: 5 of 5 "]);
    assert_eq!(lines(&run, "CRITICAL").len(), 2, "{}", run.transcript());
    let run = node.netfix("check -v").exits(2);
    for pod in &pods {
        let named = |line: &&&str| line.contains("degraded") && line.contains(pod.name());
        let found = lines(&run, "CRITICAL").iter().filter(named).count();
        assert_eq!(
            found,
            1,
            "{} has not one line\n{}",
            pod.name(),
            run.transcript()
        );
    }
    node.netfix("restore --nic-wait 10s").exits(0);
    node.netfix("check -q").exits(0);
}

#[test]
fn a_check_changes_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    let files = node.state_files();
    let host = node.capture();
    let bare: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.netfix("check").exits(2);
    assert_eq!(node.state_files(), files, "the state folder");
    host.assert_same(&node.capture(), "the host");
    for (pod, bare) in pods.iter().zip(&bare) {
        bare.assert_same(&pod.capture(), pod.name());
    }
}

#[test]
fn a_pod_newer_than_the_snapshot_is_a_warning() {
    let node = Node::new();
    let _old = node.simple_pods(2);
    node.snapshot();
    let late = node.pod("late").simple();
    let run = node.netfix("check").exits(1);
    let found = lines(&run, "WARNING");
    assert!(
        found
            .iter()
            .any(|line| line.contains("checkpoint-missing") && line.contains(late.name())),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_pod_that_lost_everything_before_any_snapshot_is_critical() {
    let node = Node::new();
    let _old = node.simple_pods(1);
    node.snapshot();
    let late = node.pod("late").simple();
    node.lose_and_reload();
    node.netfix("restore").exits(5);
    node.netfix("check")
        .exits(2)
        .errors(&[("checkpoint-missing", late.name())]);
}

#[test]
fn a_deleted_pod_is_not_a_finding() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[1].ns.delete();
    node.netfix("check").exits(0).has_no("netns-gone");
    node.netfix("check -v")
        .exits(0)
        .names("netns-gone", pods[1].name(), &[]);
}

#[test]
fn a_pod_under_deletion_is_not_a_finding() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    // As a runtime does it: first the interface, a moment later the namespace.
    pods[1].ip("link del eth0");
    check_during(&node, || pods[1].ns.delete())
        .exits(0)
        .has_no("degraded");
}

#[test]
fn a_link_that_gets_carrier_during_the_check_is_no_finding() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    node.gateway.ip("link set up0 down");
    check_during(&node, || drop(node.gateway.ip("link set up0 up")))
        .exits(0)
        .has_no("no-carrier");
}

/// Runs a check, and `happens` half a second after it began.
fn check_during(node: &Node, happens: impl FnOnce()) -> Run {
    let mut command = node.netfix_command(&[], "check");
    let check = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("netfix starts");
    std::thread::sleep(Duration::from_millis(500));
    happens();
    let output = check.wait_with_output().expect("the check ends");
    Run::from_output("check".to_owned(), &output)
}

#[test]
fn drift_that_breaks_nothing_is_a_warning_with_one_line() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    pod.ip("route add 10.99.0.0/16 via 10.88.0.1");
    node.netfix("check").exits(0);
    node.snapshot();
    pod.ip("route del 10.99.0.0/16");
    pod.ip("link set eth0 txqueuelen 77");
    let run = node.netfix("check").exits(1);
    let about: Vec<_> = lines(&run, "WARNING")
        .into_iter()
        .filter(|line| line.contains(pod.name()))
        .collect();
    assert!(
        about.len() == 1 && about[0].contains("drift"),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_checkpoint_without_a_recent_verification_is_stale() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.netfix("check --max-age 1h").exits(0);
    std::thread::sleep(Duration::from_secs(4));
    node.netfix("check --max-age 1s")
        .exits(1)
        .errors(&[])
        .warnings(&[("checkpoint-stale", pod.name())]);
    // Verified again: the file is not rewritten, but not stale.
    let again = Instant::now();
    let snapshot = node.netfix_json("snapshot").exits(0);
    assert_eq!(snapshot.pod(&pod)["state"], "unchanged");
    let run = node.netfix("check --max-age 1h -o json").exits(0);
    let age = run.json()["check"]["oldest_age"].as_u64().expect("an age");
    assert!(
        age <= again.elapsed().as_secs() + 1,
        "it counts from the first snapshot: {age} s\n{}",
        run.transcript()
    );
}

#[test]
fn a_corrupt_checkpoint_of_a_running_pod_that_no_generation_has_is_critical() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.remove_generations();
    fs::write(node.checkpoint_of(&pods[0]), "{").expect("a corrupt checkpoint");
    node.netfix("check")
        .exits(2)
        .errors(&[("checkpoint-corrupt", pods[0].name())])
        .stdout_has(&["1 of 2 "]);
}

#[test]
fn two_pods_with_one_address_are_critical() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    for pod in &pods {
        pod.ip("addr add 10.88.77.77/16 dev eth0");
    }
    node.netfix("snapshot").exits(5);
    node.netfix("check")
        .exits(2)
        .errors(&[
            ("address-conflict", pods[0].name()),
            ("address-conflict", pods[1].name()),
        ])
        .names(
            "address-conflict",
            pods[0].name(),
            &["10.88.77.77", pods[1].name()],
        )
        .names(
            "address-conflict",
            pods[1].name(),
            &["10.88.77.77", pods[0].name()],
        );
}

#[test]
fn a_node_without_any_snapshot_is_critical() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let run = node.netfix_alone("check").exits(2);
    run.errors(&[("checkpoint-missing", "")])
        .warnings(&[("checkpoint-missing", pod.name())]);
}

#[test]
fn a_parent_without_carrier_is_critical() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    node.gateway.ip("link set up0 down");
    node.netfix("check")
        .exits(2)
        .errors(&[("no-carrier", "")])
        .names("no-carrier", "", &["eth0"]);
}

#[test]
fn a_missing_nic_is_critical() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.lose();
    node.netfix("check")
        .exits(2)
        .errors(&[("parent-missing", ""), ("degraded", pod.name())])
        .names("parent-missing", "", &["eth0"]);
}

#[test]
fn a_read_only_state_directory_is_critical() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let folder = node.state_dir();
    let script = format!(
        "mount --bind {0} {0} && mount -o remount,bind,ro {0} && exec \"$@\"",
        folder.display()
    );
    let mut command =
        node.netfix_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], "check");
    Run::of(&mut command)
        .exits(2)
        .errors(&[("unwritable", "")])
        .names("unwritable", "", &["Read-only file system"]);
}

#[test]
fn too_little_space_for_another_snapshot_is_critical() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let folder = node.state_dir();
    let script = format!(
        "cp -a {0} {0}.full && mount -t tmpfs -o size=256k,mode=700 none {0} && cp -a {0}.full/. {0}/ && exec \"$@\"",
        folder.display()
    );
    let mut command =
        node.netfix_command(&["unshare", "--mount", "sh", "-c", &script, "sh"], "check");
    Run::of(&mut command).exits(2).errors(&[("no-space", "")]);
}

#[test]
fn insufficient_rights_are_unknown_and_name_the_capability() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let mut command = node.netfix_command(&["setpriv", "--bounding-set=-net_admin"], "check");
    Run::of(&mut command)
        .exits(3)
        .errors(&[("permission-denied", "")])
        .names("permission-denied", "", &["CAP_NET_ADMIN"]);
}

#[test]
fn an_unreachable_runtime_is_unknown_but_a_known_loss_is_still_critical() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let socket = node.temp().join("dead.sock");
    // A socket file without a listener, as a dead runtime leaves it.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("a socket"));
    let check = format!(
        "check --runtime cri --runtime-endpoint unix://{}",
        socket.display()
    );
    node.netfix(&check)
        .exits(3)
        .errors(&[("runtime-unreachable", "")]);
    node.lose_and_reload();
    node.netfix(&check)
        .exits(2)
        .errors(&[("runtime-unreachable", ""), ("degraded", pods[0].name())]);
}

#[test]
fn selectors_that_match_nothing_are_unknown() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    node.netfix("check other-*")
        .exits(3)
        .errors(&[("not-found", "")]);
}

#[test]
fn a_device_leaves_out_the_pods_on_other_drivers_but_no_lost_pod() {
    let node = Node::new();
    let (_web, aside) = (node.pod("web").simple(), node.pod_on_other_nic("aside"));
    node.snapshot();
    for device in ["eth7", "lo"] {
        node.netfix(&format!("check --nic {device}"))
            .exits(3)
            .errors(&[("not-found", "")])
            .names("not-found", "", &[device]);
    }
    aside.ip("addr add ff05::7/128 dev eth0 autojoin");
    node.netfix("check")
        .exits(2)
        .errors(&[("unsupported", aside.name())]);
    let run = node.netfix("check --nic eth0").exits(0);
    let named = format!("; left out: {}", aside.name());
    run.stdout_has(&["OK: 1 of 1 selected pod", "; 1 pod left out;", &named]);
    let view = node.netfix_json("check --nic eth0").exits(0).json();
    assert_eq!(view["check"]["left_out"], 1, "{view:#}");
    // Its devices are gone, and so is the one of the option.
    node.lose();
    let run = node.netfix("check --nic eth0").exits(2);
    assert!(!run.coded("degraded").is_empty(), "{}", run.transcript());
}

#[test]
fn without_any_pod_a_check_is_ok_and_says_so() {
    let node = Node::new();
    node.netfix_alone("snapshot").exits(0);
    let run = node.netfix_alone("check").exits(0);
    assert!(
        run.out.contains("OK: no pod is running"),
        "{}",
        run.transcript()
    );
}
