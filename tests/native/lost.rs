//! A snapshot never turns a finding into health: what is lost before it is lost after it, until it is restored or a person gives
//! it up by name.

use std::fs;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use serde_json::{Value, from_str};

use super::runtime::cri;
use crate::common::capture::Capture;
use crate::common::runtimes::{Sandbox, auto};
use crate::common::{Node, Pod};

/// What `ip -j` shows of the pod's routes of a family.
fn routes(pod: &Pod<'_>, family: &str) -> Vec<Value> {
    from_str(&pod.ip(&format!("-j {family} route show"))).expect("JSON of ip")
}

fn has_default(pod: &Pod<'_>, family: &str) -> bool {
    let routes = routes(pod, family);
    routes.iter().any(|route| route["dst"] == "default")
}

/// Two snapshots of the timer: both keep the good checkpoint of the first of these pods and call it lost, as `check` does before
/// and after them.
fn stays_lost(node: &Node, pod: &Pod<'_>, words: &[&str]) {
    let stored = node.stored_of(pod);
    for _ in 0..2 {
        node.netfix("check")
            .exits(2)
            .names("degraded", pod.name(), words);
        let run = node.netfix("snapshot").exits(5);
        run.errors(&[("degraded", pod.name())])
            .names("degraded", pod.name(), words);
    }
    node.netfix("check")
        .exits(2)
        .names("degraded", pod.name(), words);
    assert_eq!(
        node.stored_of(pod),
        stored,
        "the good checkpoint was replaced"
    );
}

/// Restores what was kept: the pod is as before.
fn comes_back(node: &Node, pod: &Pod<'_>, before: &Capture) {
    node.netfix("restore").exits(0);
    pod.assert_same_as(before);
    node.netfix("snapshot").exits(0);
    node.netfix("check").exits(0);
}

#[test]
fn a_pod_whose_link_was_down_and_up_again_stays_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    pods[0].ip("addr add fd88::99/64 dev eth0");
    pods[0].ip("-6 route add default via fd88::1");
    let before = pods[0].capture();
    node.snapshot();
    pods[0].ip("link set eth0 down");
    pods[0].ip("link set eth0 up");
    assert!(!has_default(&pods[0], "-4") && !has_default(&pods[0], "-6"));
    let words = [
        "macvlan eth0",
        "has lost all its IPv6 addresses",
        "generation 1",
    ];
    stays_lost(&node, &pods[0], &words);
    comes_back(&node, &pods[0], &before);
    assert!(has_default(&pods[0], "-4") && has_default(&pods[0], "-6"));
}

#[test]
fn a_pod_without_its_default_route_stays_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[0].capture();
    node.snapshot();
    pods[0].ip("route del default");
    stays_lost(&node, &pods[0], &["has lost its default route"]);
    let show = node
        .netfix_json(&format!("show {}", pods[0].name()))
        .exits(0);
    assert_eq!(show.json()["show"]["lost_what"], "default-route");
    comes_back(&node, &pods[0], &before);
}

/// A link that another program made again with this MAC, with its address and default route.
fn made_again(pod: &Pod<'_>) {
    pod.ip("link del eth0");
    pod.macvlan("mode bridge", "address 02:00:00:77:77:77");
    pod.up_with_address();
}

#[test]
fn a_link_that_another_program_made_again_keeps_its_mac() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    made_again(&pods[0]);
    let before = pods[0].capture();
    let words = ["02:00:00:77:77:77", &pods[0].mac()];
    for verb in ["diff", "restore", "check"] {
        let run = node.netfix_json(verb);
        let run = run.names("drift", pods[0].name(), &words);
        run.has_no("degraded");
        pods[0].assert_same_as(&before);
    }
    node.netfix("snapshot").exits(0);
    node.netfix("check").exits(0);
}

#[test]
fn a_link_that_was_made_again_by_half_stays_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    made_again(&pods[0]);
    pods[0].ip("route del default");
    stays_lost(&node, &pods[0], &["is another device now"]);
    node.netfix("restore").exits(0);
    let links: Value = from_str(&pods[0].ip("-j link show dev eth0")).expect("JSON of ip");
    assert_eq!(links[0]["address"], pods[0].mac());
    assert!(has_default(&pods[0], "-4"));
    node.netfix("snapshot").exits(0);
}

#[test]
fn what_changed_and_is_not_lost_is_recorded() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip("route add 10.99.0.0/16 via 10.88.0.1 proto bgp");
    pods[0].ip("addr add 10.88.77.7/32 dev eth0");
    node.snapshot();
    for change in [
        "route del 10.99.0.0/16",
        "addr del 10.88.77.7/32 dev eth0",
        "route replace default via 10.88.0.9",
        "link set eth0 address 02:00:00:77:77:77",
        "link set eth0 mtu 1400",
    ] {
        pods[0].ip(change);
        let run = node.netfix_json("snapshot").exits(0);
        assert_eq!(run.pod(&pods[0])["state"], "saved", "{change}");
        node.netfix("check").exits(0);
    }
}

#[test]
fn a_bare_pod_that_a_runtime_reports_is_never_recorded_as_empty() {
    let node = Node::new();
    let web = node.pod("web").simple().with_process();
    node.snapshot();
    let fresh = node.pod("fresh").simple().with_process();
    node.lose_and_reload();
    let sandboxes = [
        Sandbox::of(&web, "web-0", 1),
        Sandbox::of(&fresh, "fresh", 2),
    ];
    let id = sandboxes[1].short_id().to_owned();
    let runtime = cri(&node, &sandboxes);
    let auto = auto(&runtime.socket);
    node.netfix(&format!("restore {auto}")).exits(5);
    for _ in 0..3 {
        node.netfix(&format!("check {auto}")).exits(2);
        let run = node.netfix_json(&format!("snapshot {auto}")).exits(5);
        let run = run.errors(&[("checkpoint-missing", &id)]);
        assert_eq!(run.pod(&fresh)["state"], "no-checkpoint");
    }
    node.netfix(&format!("restore {auto}")).exits(5);
    node.netfix("verify")
        .errors(&[("checkpoint-missing", fresh.name())]);
    let run = node
        .netfix_json(&format!("snapshot {auto} --accept fresh"))
        .exits(0);
    assert_eq!(run.pod(&fresh)["state"], "empty");
    node.netfix(&format!("snapshot {auto}"))
        .exits(0)
        .stdout_has(&["1 selected pod saved, 1 without interfaces"]);
    node.netfix(&format!("check {auto}")).exits(0);
    node.netfix(&format!("restore {auto}")).exits(0);
}

#[test]
fn a_pod_that_got_and_lost_its_interface_after_the_snapshot_is_not_empty() {
    let node = Node::new();
    let _web = node.simple_pods(1);
    let late = node.pod("late");
    late.ip("link set lo up");
    let run = node.netfix_json("snapshot").exits(0);
    assert_eq!(run.pod(&late)["state"], "empty");
    let late = late.simple();
    // The kernel sends its first messages of IPv6 within a second.
    thread::sleep(Duration::from_millis(1500));
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("checkpoint-missing", late.name())]);
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("checkpoint-missing", late.name())]);
    node.netfix("check")
        .exits(2)
        .names("checkpoint-missing", late.name(), &[]);
}

#[test]
fn a_namespace_with_a_busy_loopback_device_is_empty() {
    let node = Node::new();
    let _web = node.simple_pods(1);
    let idle = node.pod("idle");
    idle.ip("link set lo up");
    idle.ns.enter(|| {
        for address in ["127.0.0.1", "::1"] {
            let socket = UdpSocket::bind((address, 0)).expect("a socket");
            for _ in 0..500 {
                // The first is answered by ICMP, which the next send reports.
                let _ = socket.send_to(b"x", (address, 9));
            }
        }
    });
    let run = node
        .netfix_json("snapshot")
        .exits(0)
        .has_no("checkpoint-missing");
    assert_eq!(run.pod(&idle)["state"], "empty");
}

#[test]
fn a_damaged_checkpoint_of_a_lost_pod_is_not_given_up() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("link set eth0 mtu 1400");
    node.snapshot();
    let path = node.state_dir().join("checkpoints").join(pods[0].name());
    fs::remove_file(&path).expect("the checkpoint goes");
    fs::write(&path, "{ damaged").expect("a damaged checkpoint");
    pods[0].ip("link del eth0");
    let run = node.netfix("snapshot").exits(5);
    run.names("degraded", pods[0].name(), &["is gone", "generation 2"]);
    assert_eq!(fs::read_to_string(&path).expect("the file"), "{ damaged");
    fs::remove_file(&path).expect("an operator deletes it");
    for _ in 0..2 {
        let run = node.netfix("snapshot").exits(5);
        run.names("degraded", pods[0].name(), &["is gone", "generation 2"]);
    }
    node.restore();
    assert!(pods[0].ip("-o link show dev eth0").contains("mtu 1400"));
    node.netfix("snapshot").exits(0);
}

#[test]
fn a_host_without_its_address_and_default_route_stays_lost() {
    let node = Node::new();
    let _pods = node.simple_pods(2);
    node.snapshot();
    let before = node.capture();
    let recorded = fs::read_to_string(node.state_dir().join("node.json")).expect("a node state");
    node.ns.ip("addr del 10.88.0.2/16 dev eth0");
    for _ in 0..2 {
        let run = node.netfix("check").exits(2);
        run.has_no("drift")
            .names("degraded", "", &["eth0", "has lost all its IPv4 addresses"]);
        let run = node.netfix("snapshot").exits(5);
        run.errors(&[("degraded", "")])
            .names("degraded", "", &["eth0", "generation 1"]);
    }
    let now = fs::read_to_string(node.state_dir().join("node.json")).expect("a node state");
    let state = |text: &str| from_str::<Value>(text).expect("JSON")["state"].clone();
    assert_eq!(state(&now), state(&recorded), "the good state was replaced");
    node.netfix("restore").exits(0);
    node.assert_same_as(&before);
    node.netfix("snapshot").exits(0);
    node.ns.ip("route del default");
    node.netfix("snapshot")
        .exits(5)
        .names("degraded", "", &["has lost its default route"]);
    node.netfix("snapshot --accept host").exits(0);
    node.netfix("check").exits(0);
}

#[test]
fn a_person_gives_up_a_pod_by_name_and_nothing_else() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    for pod in &pods {
        pod.ip("route del default");
    }
    let refused = node.netfix("snapshot --accept nobody").exits(4);
    refused.names("not-found", "", &["nobody"]);
    node.netfix("snapshot --accept host")
        .exits(4)
        .names("not-found", "", &["host"]);
    let run = node
        .netfix(&format!("snapshot --accept {}", pods[0].name()))
        .exits(5);
    run.errors(&[("degraded", pods[1].name())]).names(
        "degraded",
        pods[0].name(),
        &["given up", "restore --generation 1"],
    );
    node.netfix("check")
        .exits(2)
        .names("degraded", pods[1].name(), &[]);
    node.netfix(&format!("snapshot --accept {}", pods[0].name()))
        .exits(4);
    pods[1].ip("link del eth0");
    node.netfix(&format!("snapshot --accept {}", pods[1].name()))
        .exits(0);
    assert!(
        !node
            .state_dir()
            .join("checkpoints")
            .join(pods[1].name())
            .exists(),
        "the checkpoint of the pod that was given up"
    );
    node.netfix("snapshot")
        .exits(0)
        .stdout_has(&["1 selected pod saved, 1 without interfaces"]);
    node.netfix("check").exits(0);
    node.netfix("restore --generation 1").exits(0);
    assert!(pods[1].has_eth0() && has_default(&pods[0], "-4"));
}
