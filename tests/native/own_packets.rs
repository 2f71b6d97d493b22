//! `verify` says of each pod what its own packets show: nothing is reachable that a ping from the pod is not, and nothing that
//! answers is unreachable.

use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use crate::common::background::wait_until;
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod};

/// Elsewhere, behind the gateways.
const BEHIND4: &str = "198.51.100.7";
const BEHIND6: &str = "2001:db8:77::7";

/// Whether a ping to this address, with these options, is answered.
fn pings(pod: &Pod<'_>, words: &str) -> bool {
    let mut ping = pod.ns.exec("busybox");
    ping.args(["ping", "-c", "1", "-W", "1"]);
    ping.args(words.split_whitespace());
    let ping = ping.stdout(Stdio::null()).stderr(Stdio::null());
    ping.status().expect("ping").success()
}

/// Whether a program that connects gets a route, and an address that is valid beyond the link.
fn connects(pod: &Pod<'_>, to: &str) -> bool {
    let any = if to.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    let source = pod.ns.enter(|| {
        let socket = UdpSocket::bind(any)?;
        socket.connect((to, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| !source.to_string().starts_with("[fe80"))
}

/// Whether the packets of a pod with a default route get to the gateway and beyond.
fn works(pod: &Pod<'_>, (gateway, behind): (&str, &str)) -> bool {
    pings(pod, gateway) && connects(pod, gateway) && connects(pod, behind)
}

const V4: (&str, &str) = (GATEWAY4, BEHIND4);
const V6: (&str, &str) = (GATEWAY6, BEHIND6);

/// A pod with a default route of each family.
fn both<'n>(node: &'n Node, name: &str) -> Pod<'n> {
    let pod = node.pod(name).simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip(&format!("route add default via {GATEWAY6}"));
    pod
}

/// What is done to a pod, and the words that name it.
type Harm<'a> = (&'a [&'a str], &'a [&'a str]);

/// Does one of these to each of as many pods: none of them reaches what it needs, and `verify` names what is missing.
fn is_found(target: (&str, &str), harms: &[Harm<'_>]) {
    let node = Node::new();
    let pods: Vec<_> = harms.iter().map(|_| both(&node, "web")).collect();
    let sound = both(&node, "sound");
    node.snapshot();
    for pod in &pods {
        // The first packet waits for neighbour discovery.
        assert!(wait_until(|| works(pod, target)), "before");
    }
    for (pod, (lines, _)) in pods.iter().zip(harms) {
        for line in *lines {
            let line = line.replace("OWN4", &pod.address());
            pod.ip(&line.replace("OWN6", &pod.address6()));
        }
    }
    let run = node.netfix_json("verify --answer-wait 3s").exits(5);
    assert_eq!(
        run.pod(&sound)["state"],
        "reachable",
        "{}",
        run.transcript()
    );
    for (pod, (lines, words)) in pods.iter().zip(harms) {
        assert!(!works(pod, target), "{lines:?} does no harm");
        assert_eq!(
            run.pod(pod)["state"],
            "unreachable",
            "{lines:?}\n{}",
            run.transcript()
        );
        let all = run.coded("gateway-unreachable");
        let of_pod = |name: &Option<String>| name.as_deref() == Some(pod.name());
        let mut own = all.iter().filter(|one| of_pod(&one.pod));
        let is_named = own.any(|one| {
            let text = format!("{}: {}", one.object, one.message);
            let word = |word: &str| {
                word.replace("OWN4", &pod.address())
                    .replace("OWN6", &pod.address6())
            };
            words.iter().all(|one| text.contains(&word(one)))
        });
        assert!(is_named, "{lines:?}: {words:?}\n{}", run.transcript());
    }
}

#[test]
fn a_pod_without_a_way_to_its_gateway_or_beyond_is_unreachable_though_arp_answers() {
    is_found(
        V4,
        &[
            (
                &["route flush dev eth0"],
                &["no route to 10.88.0.1 (ENETUNREACH)"],
            ),
            (
                &["route del default"],
                &["no route to 0.0.0.0/0 (ENETUNREACH)"],
            ),
            (
                &["route replace unreachable default"],
                &["0.0.0.0/0", "EHOSTUNREACH"],
            ),
            (
                &["route add blackhole 10.88.0.1/32"],
                &["10.88.0.1", "EINVAL"],
            ),
            (
                &["route add prohibit 10.88.0.1/32"],
                &["10.88.0.1", "EACCES"],
            ),
            (
                &["route add throw 10.88.0.1/32", "route del default"],
                &["no route to 10.88.0.1"],
            ),
            (
                &["rule add pref 5 from all prohibit"],
                &["rule 5 ", "EACCES"],
            ),
            (
                &["rule add pref 6 from all blackhole"],
                &["rule 6 ", "EINVAL"],
            ),
            (
                &["rule add pref 7 from all unreachable"],
                &["rule 7 ", "ENETUNREACH"],
            ),
            (
                &["rule add pref 8 from OWN4 prohibit"],
                &["rule 8 ", "EACCES"],
            ),
            (
                &["rule add pref 9 to 10.88.0.1 prohibit"],
                &["rule 9 ", "EACCES"],
            ),
            (
                &["addr flush dev eth0 scope global"],
                &["OWN4/16 is missing"],
            ),
        ],
    );
}

#[test]
fn the_same_is_found_for_ipv6() {
    is_found(
        V6,
        &[
            (
                &["-6 route flush dev eth0"],
                &["no route to fd88::1 (ENETUNREACH)"],
            ),
            (
                &["-6 route del default"],
                &["no route to ::/0 (ENETUNREACH)"],
            ),
            (
                &["-6 route add blackhole fd88::1/128"],
                &["fd88::1", "EINVAL"],
            ),
            (
                &["-6 route add prohibit fd88::1/128"],
                &["fd88::1", "EACCES"],
            ),
            (
                &["-6 rule add pref 5 from all prohibit"],
                &["rule 5 ", "EACCES"],
            ),
            (
                &["-6 rule add pref 6 from all blackhole"],
                &["rule 6 ", "EINVAL"],
            ),
            (&["-6 addr del OWN6/64 dev eth0"], &["OWN6/64 is missing"]),
            (
                &[
                    "-6 addr del OWN6/64 dev eth0",
                    "-6 route add fd88::/64 dev eth0",
                    "-6 route replace default via fd88::1",
                ],
                &["OWN6/64 is missing"],
            ),
        ],
    );
}

#[test]
fn a_duplicate_address_is_no_address_and_one_in_detection_is_waited_for() {
    let node = Node::new();
    let duplicate = both(&node, "web");
    let slow = both(&node, "api");
    node.snapshot();
    let address = format!("{}/64", duplicate.address6());
    node.gateway
        .ip(&format!("addr add {address} dev up0 nodad"));
    for pod in [&duplicate, &slow] {
        pod.ns.set_sysctl("ipv6/conf/eth0/dad_transmits", "1");
        pod.ip(&format!("addr del {}/64 dev eth0", pod.address6()));
    }
    duplicate.ip(&format!("addr add {address} dev eth0"));
    let failed = || duplicate.ip("-6 addr show dev eth0").contains("dadfailed");
    assert!(wait_until(failed));
    slow.ip(&format!("addr add {}/64 dev eth0", slow.address6()));
    let run = node.netfix_json("verify --answer-wait 8s").exits(5);
    let code = "gateway-unreachable";
    let run = run.names(code, duplicate.name(), &["another machine", &address]);
    assert_eq!(run.pod(&slow)["state"], "reachable", "{}", run.transcript());
}

#[test]
fn a_gateway_that_answers_pings_and_no_arp_is_reachable() {
    /// Addresses that the gateway does not answer ARP for.
    const MUTE: [&str; 2] = ["10.88.0.77", "10.88.0.78"];
    let node = Node::new();
    node.gateway.set_sysctl("ipv4/conf/up0/arp_ignore", "1");
    for address in MUTE {
        node.gateway.ip(&format!("addr add {address}/32 dev lo"));
    }
    let mac = "lladdr 02:00:00:88:00:01";
    let prepared = |name: &str, gateway: &str, lines: &[String]| {
        let pod = node.pod(name).simple();
        for line in lines {
            pod.ip(line);
        }
        pod.ip(&format!("route replace default via {gateway}"));
        pod
    };
    let permanent = |at: usize| format!("neigh add {} {mac} nud permanent dev eth0", MUTE[at]);
    let learned = format!("neigh add {} {mac} nud stale dev eth0", MUTE[1]);
    let pods = [
        prepared("permanent", MUTE[0], &[permanent(0)]),
        prepared(
            "noarp",
            MUTE[0],
            &["link set eth0 arp off".into(), permanent(0)],
        ),
        prepared("learned", MUTE[1], &[learned]),
    ];
    let other_mac = permanent(0).replace("88:00:01", "99:00:01");
    let wrong = prepared("wrong", MUTE[0], &[other_mac]);
    let deaf = prepared("deaf", MUTE[0], &[]);
    // The gateway asks nobody by ARP, which would show its own MAC.
    for pod in pods.iter().chain([&wrong, &deaf]) {
        let (address, mac) = (pod.address(), pod.mac());
        node.gateway.ip(&format!(
            "neigh add {address} lladdr {mac} nud permanent dev up0"
        ));
    }
    node.snapshot();
    let run = node.netfix_json("verify --answer-wait 2s").exits(5);
    for (pod, gateway) in pods.iter().zip([MUTE[0], MUTE[0], MUTE[1]]) {
        assert!(pings(pod, gateway), "{}", pod.name());
        assert_eq!(run.pod(pod)["state"], "reachable", "{}", run.transcript());
    }
    assert!(!pings(&wrong, MUTE[0]) && !pings(&deaf, MUTE[0]));
    let run = run.names("gateway-unknown", wrong.name(), &[]);
    assert_eq!(run.pod(&wrong)["state"], "unknown", "{}", run.transcript());
    let gateway = &run.pod(&wrong)["gateways"][0];
    assert!(
        gateway["reachable"].is_null() && gateway["rtt_us"].is_null(),
        "{gateway}"
    );
    assert_eq!(
        run.pod(&deaf)["state"],
        "unreachable",
        "{}",
        run.transcript()
    );
}

#[test]
fn a_gateway_that_answers_arp_and_no_pings_is_reachable() {
    let node = Node::new();
    let pod = both(&node, "web");
    node.gateway.set_sysctl("ipv4/icmp_echo_ignore_all", "1");
    node.gateway.set_sysctl("ipv6/icmp/echo_ignore_all", "1");
    node.snapshot();
    assert!(!pings(&pod, GATEWAY4) && !pings(&pod, GATEWAY6));
    let begin = std::time::Instant::now();
    let run = node
        .netfix_json("verify --answer-wait 90s")
        .exits(0)
        .errors(&[]);
    assert!(
        begin.elapsed() < Duration::from_secs(60),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_firewall_that_drops_what_the_pod_sends_is_named() {
    let node = Node::new();
    let pods = [both(&node, "web"), both(&node, "api")];
    node.snapshot();
    let mut rule = pods[0].ns.exec("iptables");
    rule.args(["-A", "OUTPUT", "-d", GATEWAY4, "-j", "DROP"]);
    assert!(rule.status().expect("iptables").success());
    assert!(!pings(&pods[0], GATEWAY4));
    let run = node.netfix_json("verify").exits(5).names(
        "gateway-unreachable",
        pods[0].name(),
        &[GATEWAY4, "EPERM"],
    );
    assert_eq!(
        run.pod(&pods[1])["state"],
        "reachable",
        "{}",
        run.transcript()
    );
}

#[test]
fn a_gateway_of_a_policy_table_is_judged_by_the_packets_that_its_rule_selects() {
    let node = Node::new();
    let pods = ["sound", "flushed", "marked", "unmarked"].map(|name| {
        let pod = node.pod(name);
        pod.macvlan("mode bridge", "");
        pod.ip("link set eth0 up");
        pod.ip(&format!(
            "addr add {}/16 dev eth0 noprefixroute",
            pod.address()
        ));
        pod.ip("route add 10.88.0.0/16 dev eth0 table 100");
        pod.ip(&format!(
            "route add default via {GATEWAY4} dev eth0 table 100"
        ));
        pod
    });
    for pod in &pods[..2] {
        pod.ip(&format!(
            "rule add pref 50 from {} lookup 100",
            pod.address()
        ));
    }
    for pod in &pods[2..] {
        pod.ip("rule add pref 50 fwmark 7 lookup 100");
    }
    node.snapshot();
    let all_well = node.netfix_json("verify").exits(0).errors(&[]);
    for pod in &pods {
        assert_eq!(
            all_well.pod(pod)["state"],
            "reachable",
            "{}",
            all_well.transcript()
        );
    }
    pods[1].ip("route flush table 100");
    pods[3].ip("rule del pref 50");
    let bound = |pod: &Pod<'_>| pings(pod, &format!("-I {} {GATEWAY4}", pod.address()));
    assert!(bound(&pods[0]) && !bound(&pods[1]));
    let run = node.netfix_json("verify --answer-wait 3s").exits(5);
    let states = pods.each_ref().map(|pod| run.pod(pod)["state"].clone());
    let expected = ["reachable", "unreachable", "reachable", "unreachable"];
    assert_eq!(states, expected, "{}", run.transcript());
}

#[test]
fn a_gateway_on_another_link_than_before_is_asked_there() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    let (name, address) = (pod.name(), pod.address());
    node.ns.ip(&format!(
        "link add link eth0 name new1 netns {name} type macvlan mode bridge"
    ));
    pod.ip("link set new1 name net1 up");
    pod.ip(&format!("addr del {address}/16 dev eth0"));
    pod.ip(&format!("addr add {address}/16 dev net1"));
    pod.ip(&format!("route add default via {GATEWAY4} dev net1"));
    assert!(works(&pod, V4));
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    assert_eq!(run.pod(&pod)["state"], "reachable", "{}", run.transcript());
}

#[test]
fn two_links_in_one_network_are_each_asked_over_their_own() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let name = pod.name();
    node.ns.ip(&format!(
        "link add link eth0 name new1 netns {name} type macvlan mode bridge"
    ));
    pod.ip("link set new1 name net1 up");
    pod.ip("addr add 10.88.7.7/16 dev net1");
    pod.ip(&format!(
        "route add default via {GATEWAY4} dev net1 metric 200"
    ));
    node.snapshot();
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    let gateways = run.pod(&pod)["gateways"].clone();
    let devices: Vec<_> = gateways
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["dev"].clone())
        .collect();
    assert_eq!(devices, ["eth0", "net1"], "{}", run.transcript());
}

#[test]
fn the_host_is_asked_for_its_routes_too() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.ns.ip("rule add pref 5 from all prohibit");
    let run = node.netfix_json("verify").exits(5).names(
        "gateway-unreachable",
        "",
        &[GATEWAY4, "rule 5 "],
    );
    assert_eq!(run.pod(&pod)["state"], "reachable", "{}", run.transcript());
}

/// Sends the advertisement of a router, from the gateway; not while its link has no address yet.
fn advertise(node: &Node) -> bool {
    const SCRIPT: &str = "
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
prefix = socket.inet_pton(socket.AF_INET6, 'fd99::')
packet = struct.pack('!BBHBBHII', 134, 0, 0, 64, 0, 1800, 0, 0)
packet += struct.pack('!BBBBIII16s', 3, 4, 64, 0xc0, 3600, 3600, 0, prefix)
s.sendto(packet, ('ff02::1', 0, 0, socket.if_nametoindex('up0')))";
    let mut python = node.gateway.exec("python3");
    let sent = python.args(["-c", SCRIPT]).stderr(Stdio::null()).status();
    sent.expect("python3").success()
}

#[test]
fn the_router_of_an_advertisement_is_a_gateway_and_is_missed() {
    let node = Node::new();
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.ns.set_sysctl("ipv6/conf/default/accept_ra", "0");
    // One that answers as a host is no router to the kernel any more.
    node.gateway.set_sysctl("ipv6/conf/all/forwarding", "1");
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ip("link set eth0 up");
    let is_advertised = || advertise(&node) && pod.ip("-6 route show default").contains("proto ra");
    assert!(wait_until(is_advertised));
    node.snapshot();
    let run = node.netfix_json("verify").exits(0).errors(&[]);
    let router = run.pod(&pod)["gateways"][0].clone();
    assert_eq!(router["reachable"], true, "{}", run.transcript());
    assert!(router["address"].to_string().contains("fe80::"), "{router}");
    pod.ip("-6 rule add pref 5 from all prohibit");
    node.netfix_json("verify --answer-wait 1s").exits(1).names(
        "gateway-unreachable",
        pod.name(),
        &["fe80::", "rule 5 "],
    );
    pod.ip("-6 rule del pref 5");
    node.lose_and_reload();
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.restore();
    let run = node.netfix_json("verify --answer-wait 1s").exits(1);
    let run = run.names("gateway-unreachable", pod.name(), &["ff02::2", "fd99:"]);
    assert_eq!(
        run.pod(&pod)["state"],
        "unreachable",
        "{}",
        run.transcript()
    );
    assert!(wait_until(is_advertised));
    node.netfix_json("verify").exits(0).errors(&[]);
}
