//! `verify` probes each pod's gateways from inside the pod, and the host's from the host, by ARP and neighbour discovery.

use serde_json::Value;

use crate::common::background::tcpdump;
use crate::common::node::PARENT_MAC;
use crate::common::{GATEWAY4, GATEWAY6, Node, Run};

#[test]
fn verify_prints_round_trips_passes_after_a_restore_and_fails_for_a_lost_pod_and_a_silent_gateway()
{
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
    pods[0].ip("link del eth0");
    node.netfix("verify")
        .exits(5)
        .errors(&[("gateway-unreachable", pods[0].name())]);
    node.lose_and_reload();
    node.restore();
    node.netfix("verify").exits(0);
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let run = node
        .netfix_json("verify")
        .exits(1)
        .errors(&[
            ("gateway-unreachable", ""),
            ("gateway-unreachable", pods[0].name()),
            ("gateway-unreachable", pods[1].name()),
        ])
        .names("gateway-unreachable", pods[0].name(), &[GATEWAY4])
        .names("gateway-unreachable", pods[1].name(), &[GATEWAY4]);
    assert_eq!(run.pod(&pods[0])["gateways"][0]["reachable"], false);
}

#[test]
fn the_probe_of_each_family_is_from_the_pods_mac_and_one_without_an_answer_is_enough_to_fail() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip(&format!("route add default via {GATEWAY6}"));
    node.snapshot();
    let tcpdump = tcpdump(&node, "arp or (icmp6 and ip6[40] == 135)");
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
    tcpdump.wait_for(&format!("Request who-has {GATEWAY4}"));
    tcpdump.wait_for(&format!("who has {GATEWAY6}"));
    let (mac, text) = (pod.mac(), tcpdump.text());
    for question in [
        format!("who-has {GATEWAY4} "),
        format!("who has {GATEWAY6}"),
    ] {
        let is_from_pod =
            |line: &str| line.contains(&format!("{mac} > ")) && line.contains(&question);
        let is_sent = text.lines().any(is_from_pod);
        assert!(is_sent, "no {question:?} from {mac}:\n{text}");
    }
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
fn all_pods_are_probed_in_parallel() {
    let node = Node::new();
    let pods = node.simple_pods(5);
    node.snapshot();
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let start = std::time::Instant::now();
    node.netfix("verify --answer-wait 3s").exits(1);
    let together = start.elapsed();
    let start = std::time::Instant::now();
    let one = node.netfix(&format!("verify --answer-wait 3s --pod {}", pods[0].name()));
    let alone = start.elapsed();
    assert!(
        together < alone * 2,
        "five silent gateways took {together:?}, one {alone:?}\n{}",
        one.transcript()
    );
}

/// The gateways of the host in the answer, each with whether it answered.
fn of_host(run: &Run) -> Vec<(String, Value)> {
    let gateways = run.json()["node"]["gateways"].clone();
    let gateways = gateways.as_array().cloned().unwrap_or_default();
    let mut found: Vec<_> = gateways
        .iter()
        .map(|one| {
            let (address, dev) = (one["address"].as_str(), one["dev"].as_str());
            let name = format!("{} dev {}", address.unwrap_or(""), dev.unwrap_or(""));
            (name, one["reachable"].clone())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

fn answers(gateways: &[(&str, bool)]) -> Vec<(String, Value)> {
    let gateways = gateways.iter();
    gateways
        .map(|(name, answer)| ((*name).to_owned(), (*answer).into()))
        .collect()
}

#[test]
fn the_hosts_default_gateways_are_probed_from_the_host() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    node.snapshot();
    let tcpdump = tcpdump(&node, "arp or (icmp6 and ip6[40] == 135)");
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    let expected = answers(&[("10.88.0.1 dev eth0", true), ("fd88::1 dev eth0", true)]);
    assert_eq!(of_host(&run), expected, "{}", run.transcript());
    tcpdump.wait_for(&format!("who has {GATEWAY6}"));
    let text = tcpdump.text();
    let from_host = |line: &str| line.contains(&format!("{PARENT_MAC} > "));
    assert!(
        text.lines()
            .any(|line| from_host(line) && line.contains(&format!("who-has {GATEWAY4} "))),
        "no ARP request from {PARENT_MAC}:\n{text}"
    );
    let screen = node.netfix("verify -v").exits(0);
    screen.stdout_has(&[
        "(host)",
        GATEWAY6,
        "the host and 1 selected pod reach their gateways",
    ]);
}

#[test]
fn a_silent_gateway_of_the_host_alone_fails_the_command() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.ns.ip("route add 192.0.2.0/24 via 10.88.0.99");
    node.snapshot();
    let run = node
        .netfix_json("verify --answer-wait 3s")
        .exits(5)
        .errors(&[("gateway-unreachable", "")])
        .names("gateway-unreachable", "", &["10.88.0.99 dev eth0", "host"]);
    assert_eq!(run.pod(&pod)["state"], "reachable", "{}", run.transcript());
    assert_eq!(run.json()["node"]["state"], "unreachable");
    // Another gateway of its link answers, so that it is known as one that never did.
    let screen = node.netfix("verify --answer-wait 3s").exits(0);
    screen.stdout_has(&["the host and 1 selected pod reach their gateways"]);
}

#[test]
fn the_hosts_recorded_default_gateway_is_probed_when_its_route_is_lost() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.ns.ip("addr flush dev eth0");
    node.ns.ip("link set eth0 down");
    let gateways = ["10.88.0.1 dev eth0", "fd88::1 dev eth0"];
    let run = node.netfix_json("verify --answer-wait 2s").errors(&[
        ("gateway-unreachable", ""),
        ("gateway-unreachable", pod.name()),
    ]);
    let expected = answers(&gateways.map(|name| (name, false)));
    assert_eq!(of_host(&run), expected, "{}", run.transcript());
}

/// A NIC of the host that is up, with an address and a route to `prefix` through a gateway that does not exist.
fn second_nic(node: &Node, name: &str, prefix: &str) {
    node.ns
        .ip(&format!("link add {name} type veth peer name {name}x"));
    node.ns.ip(&format!("link set {name} up"));
    node.ns.ip(&format!("link set {name}x up"));
    node.ns.ip(&format!("addr add 192.0.2.2/24 dev {name}"));
    node.ns
        .ip(&format!("route add {prefix} via 192.0.2.9 dev {name}"));
}

#[test]
fn gateways_on_links_without_pods_or_without_arp_are_not_probed() {
    let node = Node::new();
    let _pod = node.pod("web").simple();
    second_nic(&node, "mgmt0", "198.51.100.0/24");
    for (name, kind, metric) in [("ptp0", "tun", 5), ("tap0", "tap", 6)] {
        node.ns.ip(&format!("tuntap add {name} mode {kind}"));
        node.ns.ip(&format!("link set {name} up"));
        node.ns
            .ip(&format!("addr add 203.0.113.{metric}/32 dev {name}"));
        node.ns.ip(&format!(
            "route add default via 203.0.113.99 dev {name} onlink metric {metric}"
        ));
    }
    node.snapshot();
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    let expected = answers(&[("10.88.0.1 dev eth0", true), ("fd88::1 dev eth0", true)]);
    assert_eq!(of_host(&run), expected, "{}", run.transcript());
    // The default gateway counts on any link.
    node.ns
        .ip("route add default via 192.0.2.9 dev mgmt0 metric 7");
    let run = node.netfix_json("verify --answer-wait 2s").exits(5);
    let silent = ("192.0.2.9 dev mgmt0".to_owned(), false.into());
    assert!(of_host(&run).contains(&silent), "{}", run.transcript());
}

#[test]
fn selectors_limit_the_hosts_gateways_to_the_links_under_the_selected_pods() {
    let node = Node::new();
    let web = node.pod("web").simple();
    second_nic(&node, "nic1", "198.51.100.0/24");
    let other = node.pod("other");
    let name = other.name();
    node.ns.ip(&format!(
        "link add link nic1 name new0 netns {name} type macvlan mode bridge"
    ));
    other.ip("link set new0 name eth0");
    other.ip("link set eth0 up");
    node.snapshot();
    let web = format!("verify --answer-wait 2s --pod {}", web.name());
    let run = node.netfix_json(&web).exits(0);
    let expected = answers(&[("10.88.0.1 dev eth0", true), ("fd88::1 dev eth0", true)]);
    assert_eq!(of_host(&run), expected, "{}", run.transcript());
    let run = node.netfix_json("verify --answer-wait 2s").exits(5);
    let silent = ("192.0.2.9 dev nic1".to_owned(), false.into());
    assert!(of_host(&run).contains(&silent), "{}", run.transcript());
}
