//! Losses that are restored: the NIC, late or at once, a link on it, a young pod.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::{Guard, add_upper, once, pod_on, quick, remembered, unplanned};
use crate::common::background::wait_until;
use crate::common::cni::static_ipam;
use crate::common::libcni::{Network, cache_dir};
use crate::common::{Node, Pod, Run};

#[test]
fn pods_are_restored_when_their_nic_is_back_and_the_record_has_each_outage() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    node.lose();
    guard.says("waiting for eth0");
    thread::sleep(Duration::from_secs(2));
    assert!(pods.iter().all(|pod| !pod.has_eth0()), "{}", guard.text());
    node.reload();
    let windows = guard.closes(1);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let window = &windows[0];
    assert_eq!(window["exit"], 0, "{window:#}");
    assert_eq!(window["command"], "guard");
    assert_eq!(window["phases"][0]["name"], "loss");
    for pod in window["pods"].as_array().expect("the pods") {
        let outage = pod["answered"].as_u64().zip(pod["lost"].as_u64());
        let outage = outage.map(|(answered, lost)| answered - lost);
        assert!(outage.is_some_and(|outage| outage >= 2000), "{pod:#}");
        assert_eq!(pod["state"], "restored");
    }
    let memory = remembered(&node);
    assert_eq!(memory["restores"], 1, "{memory:#}");
    assert_eq!(memory["last"]["exit"], 0);
    assert_eq!(memory["last"]["window"], window["id"]);
    assert!(!node.state_dir().join("window.json").exists());
    // A second loss is restored like the first.
    node.lose_and_reload();
    guard.closes(2);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_loss_while_it_restores_is_restored_too() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    node.lose_and_reload();
    guard.says("restoring the pods on eth0");
    node.lose_and_reload();
    let is_back = || pods.iter().all(Pod::has_eth0) && !guard.windows().is_empty();
    assert!(wait_until(is_back), "{}", guard.text());
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_loss_while_gateways_are_awaited_ends_the_wait() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "--backoff 0s");
    let window = node.state_dir().join("window.json");
    let is_probing = || {
        let text = fs::read_to_string(&window).unwrap_or_default();
        let window: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let phases = window["phases"].as_array().cloned().unwrap_or_default();
        phases.last().is_some_and(|last| last["name"] == "verify")
    };
    // A busy machine may be late: then the whole time was over.
    let has_ended = |attempt: usize| {
        node.lose();
        node.reload_without_carrier();
        // The gateway is there, and does not have its addresses yet.
        node.gateway.ip("link set up0 up");
        assert!(wait_until(is_probing), "{}", guard.text());
        node.lose_and_reload();
        guard.closes(2 * attempt);
        let windows = guard.windows();
        let first = &windows[2 * attempt - 2];
        let problems = first["problems"].as_array().expect("problems").iter();
        let mut told = problems.filter_map(|one| one["message"].as_str());
        !told.any(|text| text.contains("no answer within 5 s"))
    };
    assert!((1..=5).any(has_ended), "{}", guard.text());
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_pod_that_cannot_be_completed_disarms_the_guard_for_nobody_and_comes_back_when_it_can() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    let guard = Guard::start(&node, "");
    let address = pods[0].address();
    let lose = || {
        node.lose();
        node.reload_without_carrier();
        // Another machine has taken the address meanwhile.
        let words = format!("addr add {address}/32 dev up0");
        node.gateway.ip(&words);
        node.give_carrier();
    };
    lose();
    guard.says("address-conflict");
    guard.says("tried again after 8 s");
    let memory = remembered(&node);
    assert!(
        memory["losses"]["eth0"]["attempts"].as_u64() <= Some(2),
        "{memory:#}"
    );
    assert_eq!(
        memory["incomplete"].as_object().map(serde_json::Map::len),
        Some(1)
    );
    assert!(!guard.text().contains("loss-repeats"), "{}", guard.text());
    // What was tried in vain leaves no record, once it has ended.
    let told = || guard.text().matches(": netfix report ").count();
    assert!(
        wait_until(|| guard.windows().len() == told()),
        "{}",
        guard.text()
    );
    let windows = told();
    assert!(windows <= 2, "{}", guard.text());
    // The next loss is restored for the others at once.
    lose();
    guard.closes(windows + 1);
    for (pod, before) in pods.iter().zip(&before).skip(1) {
        pod.assert_same_as(before);
    }
    node.gateway.ip(&format!("addr del {address}/32 dev up0"));
    let is_back = || pods[0].ip("addr show").contains(&format!("{address}/"));
    assert!(wait_until(is_back), "{}", guard.text());
    guard.closes(windows + 2);
    pods[0].assert_same_as(&before[0]);
    assert_eq!(remembered(&node)["incomplete"], json!({}));
    // Its outage began with the loss, not with the last attempt.
    let last = guard.windows().pop().expect("a window");
    let pod = &last["pods"][0];
    let outage = pod["answered"].as_u64().zip(pod["lost"].as_u64());
    assert!(
        outage.is_some_and(|(answered, lost)| answered - lost > 1500),
        "{pod:#}"
    );
}

#[test]
fn the_configuration_file_holds_for_the_guard_also_after_it_broke() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let file = node.temp().join("config.toml");
    let write = |text: &str| {
        fs::write(&file, text).expect("a file");
        let mode = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&file, mode).expect("its mode");
    };
    let with = |words: &str| {
        let mut command = node.netfix_command(&[], &quick(words));
        command.env("NETFIX_CONFIG", &file);
        command
    };
    write("nonsense = 1\n");
    Run::of(&mut with("--once"))
        .exits(2)
        .stderr_has(&["config.toml:1: nonsense"]);
    // Without a probe the pod gets the address that the gateway has.
    write("[guard]\nconflict-probe = \"off\"\n");
    let guard = Guard::run(&node, with(""));
    let address = pods[0].address();
    for windows in [1, 2] {
        node.lose();
        node.reload_without_carrier();
        node.gateway.ip(&format!("addr add {address}/16 dev up0"));
        node.give_carrier();
        guard.closes(windows);
        assert!(
            pods[0].ip("addr show").contains(&format!("{address}/")),
            "{}",
            guard.text()
        );
        write("nonsense = 1\n");
    }
    guard.says("config.toml:1: nonsense");
    guard.says("what the file set before stays");
}

#[test]
fn a_loss_before_the_guard_is_restored_and_a_link_on_the_nic_is_made_again_with_its_pods() {
    let node = Node::new();
    add_upper(&node);
    let pods = [pod_on(&node, "web", "vx0"), node.pod("db").simple()];
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose_and_reload();
    node.give_addresses();
    once(&node, "").exits(0);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert_eq!(unplanned(&node).len(), 1);
}

#[test]
fn a_pod_younger_than_the_snapshot_comes_back_from_libcnis_cache() {
    let node = Node::new();
    let old = node.pod("old").simple();
    let before = old.capture();
    node.snapshot();
    let young = node.pod("young");
    let ipam = static_ipam(&["10.88.2.10/16", "fd88::2:10/64"]);
    let plugin = json!({"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": ipam});
    Network::new(&node, "lab", &[plugin]).attach(&young, "eth0");
    node.lose_and_reload();
    let run = with_cache(&node, &quick("--once"));
    old.assert_same_as(&before);
    assert!(young.has_eth0(), "{}", run.transcript());
    let addresses = young.ip("addr show dev eth0 scope global");
    for address in ["10.88.2.10/16", "fd88::2:10/64"] {
        assert!(addresses.contains(address), "{addresses}");
    }
    let windows = unplanned(&node);
    let pods = windows[0]["pods"].as_array().expect("the pods").clone();
    assert_eq!(pods.len(), 2, "{pods:#?}");
    // Nobody saw when they lost it.
    assert!(pods.iter().all(|one| one["lost"].is_null()), "{pods:#?}");
    run.stderr_has(&["2 of 2 pods restored, lost before 20"]);
}

/// On a machine where the runtime has its cache.
fn with_cache(node: &Node, words: &str) -> Run {
    let script = format!(
        "mount -t tmpfs none /var/lib && mkdir /var/lib/cni && mount --bind {} /var/lib/cni && exec \"$@\"",
        cache_dir(node).display()
    );
    let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    Run::of(&mut node.netfix_command(&wrapper, words))
}

#[test]
fn the_record_has_what_the_kernel_logged_from_the_loss_on() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    let path = node.temp().join("kernel-log");
    let log = |text: &str| {
        let file = std::fs::File::options()
            .append(true)
            .create(true)
            .open(&path);
        std::io::Write::write_all(&mut file.expect("a log"), text.as_bytes()).expect("a line");
    };
    log("3,5,1,-;ice 0000:3b:00.0 eth0: before the guard\n");
    let mut command = node.netfix_command(&[], &quick(""));
    command.env("NETFIX_KMSG", &path);
    let guard = Guard::run(&node, command);
    node.lose();
    guard.says("waiting for eth0");
    // The driver is loaded before the restore begins.
    log("3,6,2,-;ice 0000:3b:00.0 eth0: Reached MAC filter limit, forcing promisc mode on VSI 6\n");
    node.reload();
    let window = guard.closes(1).remove(0);
    let lines = window["kernel"]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 1, "{window:#}");
    assert_eq!(lines[0]["cause"], "mac-filter-limit");
    assert_eq!(window["exit"], 0, "{window:#}");
    assert!(pods[0].has_eth0());
}
