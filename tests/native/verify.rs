//! `verify` asks each pod's gateways from inside the pod, by ARP and neighbour discovery.

use crate::common::background::tcpdump;
use crate::common::{GATEWAY4, GATEWAY6, Node};

#[test]
fn verify_prints_the_round_trip_to_each_gateway() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let run = node.netfix("verify").exits(0).says(&[pods[0].name(), pods[1].name(), GATEWAY4]);
    run.says_one_of(&["ms", "µs", "us"]);
}

#[test]
fn verify_passes_after_a_restore() {
    let node = Node::new();
    let _pods = node.simple_pods(3);
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    node.netfix("verify").exits(0);
}

#[test]
fn a_gateway_that_does_not_answer_is_named_and_fails_the_command() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    node.netfix("verify").exits(1).says(&[pods[0].name(), pods[1].name(), GATEWAY4, "gateway-unreachable"]);
    let run = node.netfix_json("verify").exits(1).has_problem("gateway-unreachable", &pods[0]);
    run.has_problem("gateway-unreachable", &pods[1]);
}

#[test]
fn one_family_without_a_gateway_is_enough_to_fail() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip(&format!("route add default via {GATEWAY6}"));
    node.snapshot();
    node.netfix("verify").exits(0).says(&[GATEWAY4, GATEWAY6]);
    node.gateway.ip(&format!("addr del {GATEWAY6}/64 dev up0"));
    let run = node.netfix_json("verify").exits(1).has_problem("gateway-unreachable", &pod);
    let told = run.problems("gateway-unreachable").iter().map(ToString::to_string).collect::<String>();
    assert!(told.contains(GATEWAY6) && !told.contains(&format!("\"{GATEWAY4}\"")), "{told}");
}

#[test]
fn verify_fails_for_a_pod_that_is_still_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("link del eth0");
    node.netfix("verify").fails().says(&[pods[0].name()]);
}

#[test]
fn the_question_is_seen_at_the_gateway_from_the_pods_own_mac() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip(&format!("route add default via {GATEWAY6}"));
    node.snapshot();
    let tcpdump = tcpdump(&node, "arp or (icmp6 and ip6[40] == 135)");
    node.netfix("verify").exits(0);
    tcpdump.wait_for(&format!("Request who-has {GATEWAY4}"));
    tcpdump.wait_for(&format!("who has {GATEWAY6}"));
    let (mac, text) = (pod.mac(), tcpdump.text());
    let from_pod = |question: &str| {
        text.lines().any(|line| line.contains(&format!("{mac} > ")) && line.contains(question))
    };
    assert!(from_pod(&format!("who-has {GATEWAY4} ")), "no ARP request from {mac}:\n{text}");
    assert!(from_pod(&format!("who has {GATEWAY6}")), "no neighbour solicitation from {mac}:\n{text}");
}

#[test]
fn all_pods_are_asked_at_once() {
    let node = Node::new();
    let pods = node.simple_pods(5);
    node.snapshot();
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let start = std::time::Instant::now();
    node.netfix("verify").exits(1);
    let together = start.elapsed();
    let start = std::time::Instant::now();
    let one = node.netfix(&format!("verify --pod {}", pods[0].name()));
    let alone = start.elapsed();
    assert!(together < alone * 2, "five silent gateways took {together:?}, one {alone:?}\n{}", one.told());
}
