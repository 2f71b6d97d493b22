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
fn a_pod_that_is_being_deleted_or_is_gone_is_not_a_finding() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    // As a runtime does it: first the interface, a moment later the namespace.
    pods[1].ip("link del eth0");
    check_during(&node, || pods[1].ns.delete())
        .exits(0)
        .has_no("degraded");
    node.netfix("check").exits(0).has_no("netns-gone");
    node.netfix("check -v")
        .exits(0)
        .names("netns-gone", pods[1].name(), &[]);
}

#[test]
fn a_parent_without_carrier_or_a_missing_one_is_critical_unless_carrier_comes_during_the_check() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.gateway.ip("link set up0 down");
    node.netfix("check")
        .exits(2)
        .errors(&[("no-carrier", "")])
        .names("no-carrier", "", &["eth0"]);
    check_during(&node, || drop(node.gateway.ip("link set up0 up")))
        .exits(0)
        .has_no("no-carrier");
    node.lose();
    node.netfix("check")
        .exits(2)
        .errors(&[("parent-missing", ""), ("degraded", pod.name())])
        .names("parent-missing", "", &["eth0"]);
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
    std::thread::sleep(Duration::from_millis(2500));
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
fn a_state_directory_or_rights_that_do_not_suffice_are_critical_or_unknown() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let folder = node.state_dir();
    let folder = folder.display();
    let check_after = |prelude: &str| {
        let script = format!("{prelude} && exec \"$@\"");
        let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
        Run::of(&mut node.netfix_command(&wrapper, "check"))
    };
    check_after(&format!(
        "mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    ))
    .exits(2)
    .errors(&[("unwritable", "")])
    .names("unwritable", "", &["Read-only file system"]);
    check_after(&format!(
        "cp -a {folder} {folder}.full && mount -t tmpfs -o size=256k,mode=700 none {folder} && cp -a {folder}.full/. {folder}/"
    ))
    .exits(2)
    .errors(&[("no-space", "")]);
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
    node.netfix("check other-*")
        .exits(3)
        .errors(&[("not-found", "")]);
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
