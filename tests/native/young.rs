//! Pods and objects that are younger than the last snapshot, and pods whose present checkpoint cannot be used: they are no alarm
//! while they are well, and are restored from a generation or from libcni's cache.

use std::fs;

use serde_json::{Value, json};

use crate::common::capture::Capture;
use crate::common::cni::static_ipam;
use crate::common::libcni::{Attached, Network, cache_dir, sandbox_id, short_name, uid};
use crate::common::runtimes::{FakeCri, Sandbox, Script, auto, dead_socket, id};
use crate::common::{Node, Pod, Run};

/// A pod that a macvlan plugin made, as libcni runs it.
fn attach(node: &Node, pod: &Pod<'_>, address: &str) -> Attached {
    let addresses = [address, "fd88::2:10/64"];
    let plugin = json!({"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": static_ipam(&addresses)});
    Network::new(node, "lab", &[plugin]).attach(pod, "eth0")
}

/// netfix with libcni's cache.
fn with_cache(node: &Node, words: &str) -> Run {
    let folder = cache_dir(node);
    node.netfix(&format!("{words} --cni-cache-dir {}", folder.display()))
}

/// `check` on a machine where the runtime has its cache.
fn check_with_cache(node: &Node, words: &str) -> Run {
    let script = format!(
        "mount -t tmpfs none /var/lib && mkdir /var/lib/cni && mount --bind {} /var/lib/cni && exec \"$@\"",
        cache_dir(node).display()
    );
    let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    Run::of(&mut node.netfix_command(&wrapper, words))
}

/// The pod has what it had, but for what libcni does not record.
fn assert_recreated(pod: &Pod<'_>, before: &Capture, run: &Run) {
    let unknown = ["ifindex", "txqlen", "ndisc_notify"];
    let mut lines = before.differences(&pod.capture());
    lines.retain(|line| !unknown.iter().any(|word| line.contains(word)));
    assert!(
        lines.is_empty(),
        "{}\n{}",
        lines.join("\n"),
        run.transcript()
    );
}

fn state_of(run: &Run, pod: &Pod<'_>) -> (Value, Value) {
    let view = run.pod(pod);
    (view["state"].clone(), view["lost"].clone())
}

/// The problems of a pod with this code.
fn coded_of(run: &Run, code: &str, pod: &Pod<'_>) -> Vec<String> {
    let mut found = run.coded(code);
    found.retain(|problem| problem.pod.as_deref() == Some(pod.name()));
    found.into_iter().map(|problem| problem.severity).collect()
}

#[test]
fn a_pod_newer_than_a_young_snapshot_is_counted_as_new_and_no_finding() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    let late = node.pod("late").simple();
    let run = node.netfix("check").exits(0);
    let run = run.stdout_has(&["OK: 2 of 2 selected pods match a fresh checkpoint, 1 new; "]);
    assert_eq!(run.out.lines().count(), 1, "{}", run.transcript());
    let file = node.temp().join("netfix.prom");
    let run = node
        .netfix_alone(&format!("check --textfile {} -o json", file.display()))
        .exits(0);
    assert_eq!(state_of(&run, &late), (json!("new"), Value::Null));
    assert_eq!(run.json()["check"]["pods"]["new"], 1);
    assert_eq!(run.json()["problems"], json!([]), "{}", run.transcript());
    let metrics = fs::read_to_string(&file).expect("the metrics");
    for line in [
        "netfix_pods{state=\"new\"} 1",
        "netfix_pods{state=\"no-checkpoint\"} 0",
        "netfix_pods_lost{cause=\"link-gone\"} 0",
        "netfix_pods_lost{cause=\"no-checkpoint\"} 0",
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
    node.netfix("check --nagios").exits(0).stdout_has(&[
        "NETFIX OK - 2 of 2",
        " new=1;;;0 ",
        " lost=0;;0;0 ",
    ]);
    node.netfix("check --max-new 0s")
        .exits(1)
        .errors(&[])
        .warnings(&[("checkpoint-missing", late.name())]);
    // Only pods of which a snapshot had nothing are new.
    fs::remove_file(node.checkpoint_of(&pods[0])).expect("the checkpoint goes");
    node.remove_generations();
    node.netfix("check")
        .exits(1)
        .warnings(&[("checkpoint-missing", pods[0].name())]);
}

#[test]
fn a_pod_in_the_place_of_a_former_one_is_new() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    // Its MAC is free again at once; the kernel tears a namespace down later.
    pods[1].ip("link del eth0");
    pods[1].ns.replace();
    pods[1].macvlan("mode bridge", "");
    pods[1].up_with_address();
    let run = node.netfix_json("check").exits(0);
    let states: Vec<Value> = run.json()["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|view| view["id"] == pods[1].name())
        .map(|view| view["state"].clone())
        .collect();
    assert_eq!(states, [json!("new")], "{}", run.transcript());
}

#[test]
fn a_new_pod_that_lost_its_interface_is_restored_from_libcnis_cache() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.netfix_alone("snapshot").exits(0);
    let late = node.pod("late");
    let attached = attach(&node, &late, "10.88.2.10/16");
    let (before, others) = (late.capture(), [pods[0].capture(), pods[1].capture()]);
    check_with_cache(&node, "check").exits(0);
    node.lose_and_reload();
    let run = check_with_cache(&node, "check -o json").exits(2);
    assert_eq!(
        state_of(&run, &late),
        (json!("degraded"), json!("link-gone"))
    );
    assert_eq!(coded_of(&run, "degraded", &late), ["error"]);
    assert_eq!(coded_of(&run, "from-cni-cache", &late), ["warning"]);
    // Without it nobody knows what the pod had.
    let run = node.netfix_json("check").exits(2);
    assert_eq!(
        state_of(&run, &late),
        (json!("no-checkpoint"), json!("no-checkpoint"))
    );
    with_cache(&node, "plan")
        .exits(0)
        .stdout_has(&["3 selected pods"]);
    with_cache(&node, "restore --dry-run --source checkpoints")
        .exits(5)
        .errors(&[("checkpoint-missing", late.name())]);
    let run = with_cache(&node, "restore -o json").exits(0).errors(&[]);
    assert_eq!(state_of(&run, &late).0, json!("restored"));
    assert_eq!(coded_of(&run, "from-cni-cache", &late), ["warning"]);
    assert_recreated(&late, &before, &run);
    attached.check(&node, &late).expect("its plugin's CHECK");
    for (pod, before) in pods.iter().zip(&others) {
        pod.assert_same_as(before);
    }
    // It has its interface again, and is as new as before.
    check_with_cache(&node, "check")
        .exits(0)
        .stdout_has(&["1 new"]);
}

#[test]
fn a_new_pod_that_lost_its_addresses_is_restored_from_libcnis_cache() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    let late = node.pod("late");
    let attached = attach(&node, &late, "10.88.2.10/16");
    late.ip("addr flush dev eth0");
    for _ in 0..2 {
        let run = check_with_cache(&node, "check -o json").exits(2);
        assert_eq!(
            state_of(&run, &late),
            (json!("degraded"), json!("addresses"))
        );
        // A snapshot does not make it a good state.
        let run = check_with_cache(&node, "snapshot -o json").exits(5);
        assert_eq!(coded_of(&run, "degraded", &late), ["error"]);
    }
    let run = with_cache(&node, "restore -o json").exits(0).errors(&[]);
    assert_eq!(state_of(&run, &late).0, json!("restored"));
    attached.check(&node, &late).expect("its plugin's CHECK");
}

#[test]
fn a_new_pod_that_kept_another_interface_is_restored_too() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    let late = node.pod("late");
    attach(&node, &late, "10.88.2.10/16");
    late.ip("link add veth0 type veth peer name veth1");
    let before = late.capture();
    check_with_cache(&node, "check")
        .exits(0)
        .stdout_has(&["1 new"]);
    node.lose_and_reload();
    let run = check_with_cache(&node, "check -o json").exits(2);
    assert_eq!(
        state_of(&run, &late),
        (json!("degraded"), json!("link-gone"))
    );
    let run = with_cache(&node, "restore --watch 1s -o json").exits(0);
    assert_recreated(&late, &before, &run);
    // It is watched and counted like any other.
    assert_eq!(state_of(&run, &late).0, json!("restored"));
    assert_eq!(run.json()["pods"].as_array().map(Vec::len), Some(2));
}

#[test]
fn the_record_of_a_former_pod_does_not_hide_the_cache() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[1].ns.replace();
    attach(&node, &pods[1], "10.88.2.10/16");
    let before = pods[1].capture();
    node.lose_and_reload();
    let run = with_cache(&node, "restore");
    assert_recreated(&pods[1], &before, &run);
    assert!(pods[0].has_eth0());
}

/// What a runtime reports of a pod that libcni's cache has under its sandbox id.
fn sandbox(pod: &Pod<'_>, sandbox: String) -> Sandbox {
    Sandbox {
        id: sandbox,
        uid: uid(pod),
        ..Sandbox::of(pod, "late-0", 1)
    }
}

#[test]
fn an_entry_is_used_only_for_the_sandbox_that_the_runtime_reports() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.snapshot();
    let late = node.pod("late");
    attach(&node, &late, "10.88.2.10/16");
    let before = late.capture();
    node.lose_and_reload();
    let restore = |name: &str, reported: String| {
        let script = Script {
            sandboxes: vec![sandbox(&late, reported)],
            ..Script::default()
        };
        let runtime = FakeCri::start(&node.temp().join(name), script);
        with_cache(&node, &format!("restore {}", auto(&runtime.socket)))
    };
    let run = restore("another.sock", id(7)).exits(5);
    assert!(!late.has_eth0(), "{}", run.transcript());
    let dead = node.temp().join("dead.sock");
    dead_socket(&dead);
    let run = with_cache(&node, &format!("restore {}", auto(&dead))).exits(5);
    run.warnings(&[("runtime-unreachable", "")]);
    assert!(!late.has_eth0());
    let run = restore("runtime.sock", sandbox_id(&late)).exits(0);
    assert_recreated(&late, &before, &run);
}

#[test]
fn without_any_snapshot_pods_are_selected_by_their_names_and_restored_from_the_cache() {
    let node = Node::new();
    let (late, other) = (node.pod("late"), node.pod("other"));
    attach(&node, &late, "10.88.2.10/16");
    let plugin = json!({"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": static_ipam(&["10.88.2.20/16"])});
    Network::new(&node, "lab", &[plugin]).attach(&other, "eth0");
    let before = other.capture();
    node.lose_and_reload();
    let run = with_cache(&node, &format!("restore shop/{}", short_name(&late))).exits(0);
    assert!(late.has_eth0() && !other.has_eth0(), "{}", run.transcript());
    let run = with_cache(&node, "restore").exits(0);
    assert_recreated(&other, &before, &run);
}

#[test]
fn a_corrupt_checkpoint_is_replaced_by_that_of_the_newest_generation_that_has_one() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.snapshot();
    pods[1].ip("link set eth0 mtu 1400");
    node.snapshot();
    fs::write(node.kept_file(2, &pods[1]), "{").expect("a corrupt copy");
    pods[1].ip("link set eth0 mtu 1500");
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    fs::write(node.checkpoint_of(&pods[1]), "{").expect("a corrupt checkpoint");
    fs::remove_file(node.checkpoint_of(&pods[2])).expect("the checkpoint goes");
    let corrupt = [
        ("checkpoint-corrupt", pods[1].name()),
        ("from-generation", pods[1].name()),
        ("from-generation", pods[2].name()),
    ];
    node.netfix_json("check")
        .exits(1)
        .errors(&[])
        .warnings(&corrupt);
    node.lose_and_reload();
    let run = node.netfix_json("check").exits(2);
    assert_eq!(
        state_of(&run, &pods[1]),
        (json!("degraded"), json!("link-gone"))
    );
    node.netfix_json("diff").exits(3).warnings(&corrupt);
    node.netfix(&format!("show {}", pods[1].name()))
        .exits(0)
        .stdout_has(&["Run `netfix restore"]);
    let run = node
        .netfix_json("restore")
        .exits(0)
        .errors(&[])
        .warnings(&corrupt);
    let run = run.names("from-generation", pods[1].name(), &["generation 1"]);
    let run = run.names("from-generation", pods[2].name(), &["generation 2"]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert_eq!(run.json()["pods"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_generation_is_not_used_for_a_pod_that_it_is_not_about() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    fs::remove_file(node.checkpoint_of(&pods[1])).expect("the checkpoint goes");
    pods[1].ns.replace();
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("checkpoint-missing", pods[1].name())])
        .has_no("from-generation");
}

#[test]
fn what_came_after_the_snapshot_and_would_be_lost_is_named_once() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.netfix_alone("snapshot").exits(0);
    pod.ip("link add d0 type veth peer name d1");
    pod.ip("link set d0 up");
    pod.ip("addr add 10.77.0.1/24 dev d0");
    node.ns.ip(&format!(
        "link add link eth0 name new1 netns {} type macvlan mode bridge",
        pod.ns.name()
    ));
    pod.ip("link set new1 name net1");
    pod.ip("link set net1 up");
    pod.ip("addr add 10.99.1.5/24 dev net1");
    pod.ip("addr add 10.88.77.77/16 dev eth0");
    pod.ip("route add 10.98.0.0/16 via 10.88.0.1");
    let run = node.netfix("check").exits(0);
    assert_eq!(run.out.lines().count(), 2, "{}", run.transcript());
    let run = run.stdout_has(&[
        "INFO: surplus: ",
        "link net1: is in no checkpoint, like 3 more objects: a loss of the NIC would take them",
        "OK: 1 of 1 selected pod",
    ]);
    assert!(run.out.contains(pod.name()), "{}", run.transcript());
    let quiet = node.netfix("check -q").exits(0);
    assert!(quiet.out.is_empty(), "{}", quiet.transcript());
    let run = node.netfix_json("check --max-new 0s").exits(1).errors(&[]);
    assert_eq!(
        coded_of(&run, "surplus", &pod)
            .iter()
            .filter(|severity| *severity == "warning")
            .count(),
        1,
        "{}",
        run.transcript()
    );
    node.snapshot();
    node.netfix("check --max-new 0s")
        .exits(0)
        .lacks("in no checkpoint");
}
