//! Windows about the pods on one driver: those on a NIC of another driver are left out.

use serde_json::Value;

use super::scene::{Scene, of_pods, quick};
use crate::common::systemd::PACKAGES;
use crate::common::{Node, OTHER_NIC, Pod};

/// A third pod, on a NIC of another driver.
fn scene(node: &Node) -> Scene<'_> {
    let mut pods = vec![
        quick(node.pod("web")).simple(),
        quick(node.pod("api")).simple(),
    ];
    pods.push(quick(node.pod_on_other_nic("aside")));
    let scene = Scene::with_pods(node, pods);
    scene.machine.start_kubelet(PACKAGES);
    scene
}

/// The ids of these pods, sorted.
fn ids(pods: &[Pod<'_>]) -> Vec<String> {
    let mut ids: Vec<_> = pods.iter().map(|pod| pod.name().to_owned()).collect();
    ids.sort();
    ids
}

fn recorded(scene: &Scene<'_>) -> Vec<String> {
    let ids = of_pods(&scene.record(), "id");
    let mut ids: Vec<_> = ids
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    ids.sort();
    ids
}

fn a_device_that_is_missing_or_without_pods_refuses_the_window(scene: &Scene<'_>) {
    scene.node.ns.ip("link add spare type bridge");
    for (name, text) in [
        ("eth7", "no such device"),
        ("spare", "no pod has an interface on this device"),
    ] {
        let run = scene.upgrade(&format!("--nic {name}"), &scene.reload());
        run.exits(4).stderr_has(&[text]);
        assert!(scene.records().is_empty());
    }
    scene.node.ns.ip("link del spare");
    scene.assert_networks();
}

fn only_the_pods_on_the_driver_of_the_device_are_counted(scene: &Scene<'_>) {
    scene
        .upgrade("--nic eth0", &scene.reload())
        .exits(0)
        .stdout_has(&["2 of 2"]);
    scene.assert_whole();
    assert_eq!(recorded(scene), ids(&scene.pods[..2]));
}

fn a_left_out_pod_that_loses_its_network_is_restored_and_reported(scene: &Scene<'_>) {
    let aside = scene.pods[2].name().to_owned();
    let both = format!(
        "set -e\nip link del other\n{OTHER_NIC}\n{}",
        scene.reloading()
    );
    let both = scene.script("both", &both);
    let run = scene.upgrade("--nic eth0 -o json", &both).exits(0);
    scene.assert_networks();
    let states = run.json()["pods"].clone();
    let states = states.as_array().expect("pods");
    let state = states.iter().find(|pod| pod["id"] == aside.as_str());
    assert_eq!(state.map(|pod| &pod["state"]), Some(&"restored".into()));
    // Without its NIC it cannot be restored.
    let gone = format!("set -e\nip link del other\n{}", scene.reloading());
    let gone = scene.script("gone", &gone);
    let run = scene.upgrade("--nic eth0", &gone).exits(5);
    assert!(
        run.coded("parent-missing")
            .iter()
            .any(|problem| problem.pod.as_deref() == Some(&aside))
    );
}

#[test]
fn a_window_on_a_device_is_about_the_pods_on_its_driver_and_restores_the_others() {
    let node = Node::new();
    let scene = scene(&node);
    a_device_that_is_missing_or_without_pods_refuses_the_window(&scene);
    only_the_pods_on_the_driver_of_the_device_are_counted(&scene);
    a_left_out_pod_that_loses_its_network_is_restored_and_reported(&scene);
}
