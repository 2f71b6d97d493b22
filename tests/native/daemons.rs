//! What daemons add and withdraw by their own rules is not brought back from an old snapshot: it may have been withdrawn since.

use serde_json::{Value, from_str};

use crate::common::capture::Capture;
use crate::common::{Node, Pod};

const ANYCAST: &str = "10.53.53.53";

/// Gives a pod what bird, FRR, keepalived and a health check add, and a route of its own that needs the service address.
fn add(pod: &Pod<'_>) {
    pod.ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
    pod.ip("route add 10.78.0.0/16 via 10.88.0.1 proto ospf");
    pod.ip("-6 route add fd77::/64 dev eth0 proto bird");
    pod.ip(&format!("addr add {ANYCAST}/32 dev lo"));
    pod.ip("addr add fd53::53/128 dev lo");
    pod.ip(&format!(
        "route add 10.79.0.0/16 via 10.88.0.1 src {ANYCAST}"
    ));
}

/// Withdraws it.
fn withdraw(pod: &Pod<'_>) {
    pod.ip("route del 10.79.0.0/16");
    pod.ip("addr del fd53::53/128 dev lo");
    pod.ip(&format!("addr del {ANYCAST}/32 dev lo"));
    pod.ip("-6 route del fd77::/64 dev eth0");
    pod.ip("route del 10.78.0.0/16");
    pod.ip("route del 10.77.0.0/16");
}

fn notes(run: &Value) -> Vec<&Value> {
    let problems = run["problems"].as_array().expect("problems").iter();
    problems
        .filter(|problem| problem["code"] == "left-to-daemon")
        .collect()
}

#[test]
fn what_a_daemon_withdrew_since_the_snapshot_stays_away_and_is_told() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let withdrawn: Vec<Capture> = pods.iter().map(Pod::capture).collect();
    add(&pods[0]);
    node.snapshot();
    withdraw(&pods[0]);
    node.netfix("check").exits(0);
    node.netfix("diff").exits(0);
    node.lose_and_reload();
    let run = node.netfix_json("restore").exits(0);
    for (pod, before) in pods.iter().zip(&withdrawn) {
        pod.assert_same_as(before);
    }
    let document = run.json();
    let notes = notes(&document);
    assert_eq!(notes.len(), 1, "{document}");
    assert_eq!(notes[0]["severity"], "info");
    assert_eq!(notes[0]["pod"], pods[0].name());
    assert!(notes[0].to_string().contains("5 more"), "{document}");
    node.netfix("check").exits(0);
    node.netfix("diff").exits(0);
}

#[test]
fn what_daemons_own_comes_back_on_request() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    add(&pods[0]);
    let before = pods[0].capture();
    node.snapshot();
    withdraw(&pods[0]);
    node.lose_and_reload();
    node.netfix("restore").exits(0);
    node.netfix("restore --with-daemons").exits(0);
    pods[0].assert_same_as(&before);
    let run = node.netfix_json("restore --with-daemons").exits(0);
    assert!(notes(&run.json()).is_empty(), "{}", run.transcript());
}

#[test]
fn what_a_daemon_has_in_place_is_left_unchanged() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    add(&pods[0]);
    node.snapshot();
    let before = pods[0].capture();
    // The daemon sees the loss, and is back first.
    node.lose_and_reload();
    node.netfix("restore").exits(0);
    pods[0].ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
    pods[0].ip("route add 10.78.0.0/16 via 10.88.0.1 proto ospf");
    pods[0].ip("-6 route add fd77::/64 dev eth0 proto bird");
    let run = node.netfix_json("restore").exits(0);
    assert!(notes(&run.json()).is_empty(), "{}", run.transcript());
    pods[0].assert_same_as(&before);
}

#[test]
fn an_address_or_a_route_of_no_daemon_comes_back_as_before() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip("addr add 10.88.99.8/32 dev eth0");
    pods[0].ip("route add 10.80.0.0/16 via 10.88.0.1 proto static");
    pods[0].ip("route add 10.81.0.0/16 via 10.88.0.1 proto dhcp");
    pods[0].ip("route add 10.82.0.0/16 via 10.88.0.1 proto 200");
    let before = pods[0].capture();
    node.snapshot();
    pods[0].ip("route del 10.80.0.0/16");
    pods[0].ip("addr del 10.88.99.8/32 dev eth0");
    node.netfix("restore").exits(0);
    pods[0].assert_same_as(&before);
    node.lose_and_reload();
    node.netfix("restore").exits(0);
    pods[0].assert_same_as(&before);
}

#[test]
fn routes_of_a_daemon_on_the_host_are_left_to_it_too() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.ns
        .ip("route add 10.244.1.0/24 via 10.88.0.1 proto bird");
    node.snapshot();
    node.lose_and_reload();
    let run = node.netfix_json("restore").exits(0);
    let routes: Value = from_str(&node.ns.ip("-j route show 10.244.1.0/24")).expect("JSON of ip");
    assert_eq!(routes, Value::Array(Vec::new()));
    assert_eq!(notes(&run.json()).len(), 1, "{}", run.transcript());
}
