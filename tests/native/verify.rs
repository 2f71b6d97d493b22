//! `verify` probes each pod's gateways from inside the pod, by ARP and neighbour discovery.

use crate::common::background::tcpdump;
use crate::common::{GATEWAY4, GATEWAY6, Node};

#[test]
fn verify_prints_the_round_trip_to_each_gateway() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    for pod in &pods {
        let gateways = run.pod(pod)["gateways"].clone();
        assert_eq!(gateways[0]["address"], GATEWAY4, "{}", run.transcript());
        let micros = gateways[0]["rtt_us"].as_u64().expect("a round trip");
        assert!((1..2_000_000).contains(&micros), "{}", run.transcript());
    }
    let screen = node.netfix("verify -v").exits(0);
    screen.stdout_has(&[pods[0].name(), pods[1].name(), GATEWAY4]);
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
fn a_gateway_that_does_not_answer_is_reported_and_fails_the_command() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    node.netfix("verify")
        .exits(1)
        .errors(&[
            ("gateway-unreachable", pods[0].name()),
            ("gateway-unreachable", pods[1].name()),
        ])
        .names("gateway-unreachable", pods[0].name(), &[GATEWAY4])
        .names("gateway-unreachable", pods[1].name(), &[GATEWAY4]);
    let run = node.netfix_json("verify").exits(1).errors(&[
        ("gateway-unreachable", pods[0].name()),
        ("gateway-unreachable", pods[1].name()),
    ]);
    assert_eq!(run.pod(&pods[0])["gateways"][0]["reachable"], false);
}

#[test]
fn one_family_without_a_gateway_is_enough_to_fail() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip(&format!("route add default via {GATEWAY6}"));
    node.snapshot();
    let run = node.netfix_json("verify").exits(0);
    let mut answered: Vec<_> = run.pod(&pod)["gateways"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|gateway| (gateway["address"].clone(), gateway["reachable"].clone()))
        .collect();
    answered.sort_by_key(|(address, _)| address.to_string());
    let both = [GATEWAY4, GATEWAY6].map(|gateway| (gateway.into(), true.into()));
    assert_eq!(answered, both, "{}", run.transcript());
    node.gateway.ip(&format!("addr del {GATEWAY6}/64 dev up0"));
    let run = node
        .netfix_json("verify")
        .exits(1)
        .errors(&[("gateway-unreachable", pod.name())]);
    let [silent] = &run.coded("gateway-unreachable")[..] else {
        panic!("not one gateway\n{}", run.transcript());
    };
    assert!(silent.object.contains(GATEWAY6), "{silent:?}");
}

#[test]
fn verify_fails_for_a_pod_that_is_still_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    pods[0].ip("link del eth0");
    node.netfix("verify")
        .exits(5)
        .errors(&[("gateway-unreachable", pods[0].name())]);
}

#[test]
fn the_probe_reaches_the_gateway_from_the_pods_mac() {
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
        text.lines()
            .any(|line| line.contains(&format!("{mac} > ")) && line.contains(question))
    };
    assert!(
        from_pod(&format!("who-has {GATEWAY4} ")),
        "no ARP request from {mac}:\n{text}"
    );
    assert!(
        from_pod(&format!("who has {GATEWAY6}")),
        "no neighbour solicitation from {mac}:\n{text}"
    );
}

#[test]
fn all_pods_are_probed_in_parallel() {
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
    assert!(
        together < alone * 2,
        "five silent gateways took {together:?}, one {alone:?}\n{}",
        one.transcript()
    );
}
