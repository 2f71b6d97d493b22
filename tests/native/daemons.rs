//! What daemons add and withdraw by their own rules is not brought back from an old snapshot: it may have been withdrawn since.

use std::fs;

use serde_json::{Value, from_str};

use crate::common::background::Monitor;
use crate::common::capture::Capture;
use crate::common::moment::Moment;
use crate::common::run::BINARY;
use crate::common::{Node, Pod, Run};

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
fn what_a_daemon_withdrew_since_the_snapshot_is_told_and_comes_back_on_request_alone() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let withdrawn: Vec<Capture> = pods.iter().map(Pod::capture).collect();
    add(&pods[0]);
    let _daemon = Monitor::of(&pods[0].ns, &node);
    let whole = pods[0].capture();
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

    node.netfix("restore --with-daemons").exits(0);
    pods[0].assert_same_as(&whole);
    let run = node.netfix_json("restore --with-daemons").exits(0);
    assert!(self::notes(&run.json()).is_empty(), "{}", run.transcript());
}

#[test]
fn what_a_daemon_has_in_place_is_left_unchanged() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    add(&pods[0]);
    let _daemon = Monitor::of(&pods[0].ns, &node);
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

#[test]
fn what_only_a_route_of_a_daemon_reaches_is_no_loss_of_the_host() {
    let node = Node::new();
    let _pods = node.simple_pods(1);
    node.ns
        .ip("route add 10.67.0.0/24 dev eth0 scope link proto bird");
    node.ns.ip("route replace default via 10.67.0.1");
    node.snapshot();
    node.ns.ip("route del default");
    node.ns.ip("route del 10.67.0.0/24");
    let run = node.netfix_json("check").exits(0);
    assert_eq!(notes(&run.json()).len(), 1, "{}", run.transcript());
    node.netfix("snapshot").exits(0);
}

#[test]
fn another_netfix_at_work_in_a_pod_is_no_daemon() {
    // In the pod, with a routing socket.
    const INSIDE: Moment = Moment {
        call: "openat",
        holds: "/net/netlink",
        cookies: true,
    };
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip("route add 10.77.0.0/16 via 10.88.0.1 proto bgp metric 20");
    let before = pods[0].capture();
    node.snapshot();
    node.lose_and_reload();
    let copy = node.temp().join("netfix-of-another-version");
    fs::copy(BINARY, &copy).expect("a copy of netfix");
    node.netfix_while("check", &INSIDE, || {
        let mut command = node.ns.exec(&copy.to_string_lossy());
        let command = command.args(["restore", "-o", "json", "--netns", &node.pods_glob()]);
        let command = command.arg("--state-dir").arg(node.state_dir());
        let run = Run::of(command.env("NETFIX_RUNTIME", "none")).exits(0);
        assert!(notes(&run.json()).is_empty(), "{}", run.transcript());
    });
    pods[0].assert_same_as(&before);
}

/// Makes a software link of the host, as its daemon does, with this MAC.
fn parent(node: &Node, kind: &str, mac: &str) {
    node.ns.ip(&format!("link add ov0 address {mac} {kind}"));
    node.ns.ip("link set ov0 up");
    node.ns.ip("addr add 10.42.0.0/32 dev ov0");
}

fn mac_of_parent(node: &Node) -> String {
    let links: Value = from_str(&node.ns.ip("-j link show dev ov0")).expect("JSON of ip");
    links[0]["address"].as_str().expect("a MAC").to_owned()
}

#[test]
fn a_link_that_its_daemon_made_again_keeps_the_mac_that_it_has_published() {
    const THEN: &str = "02:fa:00:00:00:10";
    const NOW: [&str; 2] = ["02:fa:00:00:00:21", "02:fa:00:00:00:22"];
    let kind = "type vxlan id 1 local 10.88.0.2 dev eth0 dstport 8472 nolearning";
    let node = Node::new();
    let _simple = node.simple_pods(1);
    parent(&node, kind, THEN);
    let pod = node.pod("over");
    let name = pod.name();
    node.ns.ip(&format!(
        "link add link ov0 name eth0 netns {name} type macvlan mode bridge"
    ));
    pod.ip("link set eth0 up");
    pod.ip("addr add 10.43.0.2/24 dev eth0");
    let before = pod.capture();
    node.snapshot();
    for (verb, now) in ["restore", "guard --once --watch 1s"].iter().zip(NOW) {
        let _ = node.ns.try_ip("link del ov0");
        parent(&node, kind, now);
        let run = node.netfix(verb).exits(0);
        assert_eq!(mac_of_parent(&node), now, "{kind}: {}", run.transcript());
        pod.assert_same_as(&before);
        let words = [now, THEN];
        for (verb, code) in [("check", 1), ("diff", 3), ("plan --exit-code", 3)] {
            let run = node.netfix_json(verb).exits(code);
            run.names("drift", "", &words);
        }
        let last = "nothing to restore; what differs is left unchanged";
        node.netfix("diff").exits(3).stdout_has(&[last]);
    }
    // What a person changes on the same link is set back.
    node.snapshot();
    node.ns.ip(&format!("link set ov0 address {THEN}"));
    node.restore();
    assert_eq!(mac_of_parent(&node), NOW[1], "{kind}");
}

#[test]
fn a_vxlan_that_its_daemon_made_again_after_a_reload_keeps_what_it_has() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    let kind =
        |local: &str| format!("type vxlan id 1 local {local} dev eth0 dstport 8472 nolearning");
    parent(&node, &kind("10.88.0.2"), "02:fa:00:00:00:10");
    let peer = "neigh replace 10.42.1.0 dev ov0 nud permanent lladdr";
    node.ns.ip(&format!("{peer} 02:fa:00:00:00:11"));
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    parent(&node, &kind("10.88.0.7"), "02:fa:00:00:00:99");
    node.ns.ip(&format!("{peer} 02:fa:00:00:00:12"));
    let shown = |what: &str| node.ns.ip(&format!("{what} show dev ov0"));
    let before = ["neigh", "-d link", "-4 addr"].map(shown);
    let run = node.netfix_json("restore").exits(0);
    let after = ["neigh", "-d link", "-4 addr"].map(shown);
    assert_eq!(after, before, "{}", run.transcript());
    let run = run.names("drift", "", &["02:fa:00:00:00:99", "02:fa:00:00:00:10"]);
    assert!(run.transcript().contains("with other data"));
    assert!(pods[0].has_eth0());
}
