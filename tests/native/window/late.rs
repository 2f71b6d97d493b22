//! Pods that get their network between the snapshot and COMMAND: what was empty at the snapshot proves nothing.

use std::fs;

use super::scene::{KUBELET, Scene, hasty, of_pods, quick};
use crate::common::systemd::PACKAGES;
use crate::common::{Node, Pod, Run};

/// Two pods with a network, and one whose sandbox is still being set up.
fn scene(node: &Node) -> Scene<'_> {
    let pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod("api")).simple(),
        quick(node.pod("late")),
    ];
    let scene = Scene::with_pods(node, pods);
    scene.machine.start_kubelet(PACKAGES);
    scene
}

/// Runs a window; `meanwhile` happens after the snapshot, before kubelet is paused.
fn upgrade(scene: &Scene<'_>, options: &str, meanwhile: impl FnOnce()) -> Run {
    let [begun, go] = ["begun", "go"].map(|name| scene.path(name));
    let body = format!(
        "touch {}\nuntil [ -e {} ]; do sleep 0.05; done",
        begun.display(),
        go.display()
    );
    let before = scene.script("before", &body);
    let options = format!("--foreground {options} --before {before}");
    let upgrade = scene.start(&hasty(&options, &scene.reload()));
    scene.wait_for_file("begun");
    meanwhile();
    fs::write(go, "").expect("a file");
    upgrade.finish()
}

/// What CNI ADD does.
fn add_network(pod: &Pod<'_>) {
    pod.macvlan("mode bridge", "");
    pod.up_with_address();
}

fn has_network(pod: &Pod<'_>) -> bool {
    let addresses = pod.ip("-j addr show");
    pod.has_eth0() && addresses.contains(&pod.address()) && !pod.ip("route show default").is_empty()
}

#[test]
fn a_sandbox_that_gets_its_network_after_the_snapshot_is_saved_and_restored() {
    let node = Node::new();
    let scene = scene(&node);
    let late = &scene.pods[2];
    let run = upgrade(&scene, "", || add_network(late)).exits(0);
    assert!(has_network(late), "{}", run.transcript());
    run.stdout_has(&["All well: 3 of 3 pods back"])
        .stderr_has(&["1 pod got the network after the snapshot"]);
    let record = scene.record();
    assert!(of_pods(&record, "id").contains(&late.name().into()));
    assert!(node.checkpoint_of(late).exists());
    scene.netfix("check").exits(0);
}

#[test]
fn without_a_pause_too_and_so_is_a_namespace_that_is_new_since_the_snapshot() {
    let node = Node::new();
    let scene = scene(&node);
    let late = &scene.pods[2];
    let mut fresh = None;
    let run = upgrade(&scene, "--no-pause", || {
        add_network(late);
        let pod = quick(node.pod("fresh"));
        scene.machine.adopt(&pod.ns);
        add_network(&pod);
        fresh = Some(pod);
    });
    let run = run.exits(0);
    assert!(has_network(late), "{}", run.transcript());
    let is_back = fresh.as_ref().is_some_and(has_network);
    assert!(is_back, "{}", run.transcript());
    run.stdout_has(&["All well: 4 of 4 pods back"]);
    assert!(node.checkpoint_of(late).exists());
    scene.netfix("check").exits(0);
}

#[test]
fn a_late_pod_with_an_object_that_cannot_be_restored_stops_the_window_before_command() {
    let node = Node::new();
    let scene = scene(&node);
    let late = &scene.pods[2];
    let run = upgrade(&scene, "", || {
        add_network(late);
        late.add_bpf_filter();
    });
    run.exits(4).stderr_has(&["filter bpf", late.name()]);
    assert!(has_network(late), "COMMAND was run");
    scene.assert_runs(KUBELET);
}

#[test]
fn a_pod_that_lost_what_no_checkpoint_has_is_never_behind_all_well() {
    let node = Node::new();
    let scene = scene(&node);
    // A namespace that is created and cut off while COMMAND runs.
    let [begun, go] = ["begun", "go"].map(|name| scene.path(name));
    let body = format!(
        "set -e\ntouch {}\nuntil [ -e {} ]; do sleep 0.05; done\n{}",
        begun.display(),
        go.display(),
        scene.reloading()
    );
    let command = scene.script("slow", &body);
    let upgrade = scene.start(&hasty("--foreground", &command));
    scene.wait_for_file("begun");
    let fresh = quick(node.pod("fresh"));
    scene.machine.adopt(&fresh.ns);
    add_network(&fresh);
    fs::write(go, "").expect("a file");
    let run = upgrade.finish().exits(5);
    assert!(!fresh.has_eth0());
    run.stdout_has(&[
        "Pods affected: 2 of 3 pods back, 1 not back",
        "checkpoint-missing",
        fresh.name(),
    ]);
}
