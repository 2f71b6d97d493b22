//! A snapshot never turns a finding into health: what is lost before it is lost after it, until it is restored or a person gives
//! it up by name (`timers.rs`, `testdata/snapshot`).

use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use serde_json::{Value, from_str};

use super::runtime::cri;
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
    let name = pods[0].name();
    let stored = node.stored_of(&pods[0]);
    // Two snapshots of the timer between two checks.
    for (verb, code) in [("check", 2), ("snapshot", 5), ("snapshot", 5), ("check", 2)] {
        let run = node.netfix(verb).exits(code);
        run.names("degraded", name, &words);
    }
    let now = node.stored_of(&pods[0]);
    assert_eq!(now, stored, "the good checkpoint was replaced");
    node.restore();
    pods[0].assert_same_as(&before);
    assert!(has_default(&pods[0], "-4") && has_default(&pods[0], "-6"));
    node.snapshot();
    node.netfix("check").exits(0);
}

/// What takes the way of a pod's packets, though it has its link, its address and its routes.
#[test]
fn a_pod_without_a_way_for_its_packets_is_lost_through_snapshots() {
    let node = Node::new();
    let pod = node.simple_pods(1).remove(0);
    pod.ip("route add default via 10.88.0.1 dev eth0 table 77");
    pod.ip("rule add to 10.88.0.0/16 lookup main priority 9");
    pod.ip("rule add lookup 77 priority 10");
    pod.ip("route del default");
    node.snapshot();
    for (change, back) in [
        ("rule del priority 10", "rule add lookup 77 priority 10"),
        ("rule add prohibit priority 5", "rule del priority 5"),
        ("link set lo down", "link set lo up"),
    ] {
        pod.ip(change);
        node.netfix("snapshot").exits(1);
        let run = node.netfix("check").exits(2);
        run.names("degraded", pod.name(), &[]);
        pod.ip(back);
        node.netfix("check").exits(0);
    }
    // Nothing is missing, and a restore leaves what others added.
    pod.ip("rule add prohibit priority 5");
    let run = node.netfix("restore").exits(1).lacks("already correct");
    run.names("degraded", pod.name(), &["has no way"]);
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
    for _ in 0..2 {
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
