//! `verify` counts a silence by what the gateway or neighbour did before: what answered must answer again, what never did is a warning.

use std::process::Stdio;

use serde_json::Value;

use crate::common::background::{Background, wait_until};
use crate::common::kept::node_json;
use crate::common::{GATEWAY4, Node, Pod, Run};

const CODE: &str = "gateway-unreachable";
/// Where no machine is.
const ABSENT: &str = "10.88.0.99";
/// Elsewhere, behind the gateways.
const BEHIND: &str = "198.51.100.7";

fn runs(pod: &Pod<'_>, program: &str, words: &str) -> bool {
    let mut command = pod.ns.exec(program);
    command.args(words.split_whitespace());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect(program).success()
}

fn pings(pod: &Pod<'_>, to: &str) -> bool {
    runs(pod, "busybox", &format!("ping -c 1 -W 1 {to}"))
}

/// What node.json has of this pod and address.
fn recorded(node: &Node, pod: &Pod<'_>, address: &str) -> Value {
    let file = node_json(&node.state_dir());
    let all = file["answers"].as_array().cloned().unwrap_or_default();
    let mut own = all.into_iter();
    let own = own.find(|one| one["pod"] == *pod.name() && one["address"] == address);
    own.unwrap_or_default()
}

/// Pods of which a snapshot is taken, and whose gateway has answered.
fn answered(node: &Node, number: usize) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(number);
    node.snapshot();
    node.netfix("verify").exits(0);
    pods
}

fn state(run: &Run, pod: &Pod<'_>) -> String {
    let state = run.pod(pod)["state"].clone();
    state.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_gateway_that_answered_pings_before_and_only_arp_now_is_not_reached() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    node.snapshot();
    let mute = |value| node.gateway.set_sysctl("ipv4/icmp_echo_ignore_all", value);
    mute("1");
    node.netfix("verify --answer-wait 2s").exits(0);
    assert!(recorded(&node, &pod, GATEWAY4)["ping"].is_null());
    mute("0");
    node.netfix("verify").exits(0);
    assert!(recorded(&node, &pod, GATEWAY4)["ping"].is_string());
    mute("1");
    let run = node.netfix_json("verify --answer-wait 2s").exits(1);
    run.names(CODE, pod.name(), &[GATEWAY4, "ARP only"]);
    mute("0");
    node.netfix("verify").exits(0);
}

#[test]
fn a_ping_is_repeated_from_the_address_that_the_kernel_chooses_then() {
    const OTHER: &str = "10.77.0.5";
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.netfix("verify").exits(0);
    let route = |source| pod.ip(&format!("route replace {GATEWAY4} dev eth0 src {source}"));
    pod.ip(&format!("addr add {OTHER}/32 dev eth0"));
    route(OTHER);
    let table = |words: &str| {
        let mut iptables = node.gateway.exec("iptables");
        let iptables = iptables.args(words.split_whitespace());
        let output = iptables.output().expect("iptables");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    table(&format!("-A INPUT -s {OTHER} -p icmp -j DROP"));
    let mut verify = node.netfix_command(&[], "verify --answer-wait 20s");
    let verify = Background::start(&mut verify, node.temp().join("verify"));
    assert!(wait_until(|| !table("-vnL INPUT").contains(" 0     0 DROP")));
    let address = pod.address();
    route(&address);
    let said = verify.finish();
    assert!(said.contains("pod reaches its gateways"), "{said}");
}

#[test]
fn what_never_answered_is_a_warning_beside_an_answer_on_its_link() {
    let node = Node::without_addresses();
    let pods = ["web", "deaf"].map(|name| node.pod(name).simple());
    let [standby, deaf] = &pods;
    standby.ip(&format!("route add default via {ABSENT} metric 200"));
    deaf.ip(&format!("route replace default via {ABSENT}"));
    node.snapshot();
    let first = node.netfix_json("verify --answer-wait 2s").exits(1);
    for pod in &pods {
        assert_eq!(state(&first, pod), "unreachable", "{}", first.transcript());
    }
    let second = node.netfix_json("verify --answer-wait 2s").exits(5);
    let states = pods.each_ref().map(|pod| state(&second, pod));
    assert_eq!(
        states,
        ["reachable", "unreachable"],
        "{}",
        second.transcript()
    );
    let gateways = second.pod(standby)["gateways"].clone();
    let gateways = gateways.as_array().into_iter().flatten();
    let never: Vec<_> = gateways
        .filter(|one| one["never_answered"] == true)
        .map(|one| one["address"].clone())
        .collect();
    assert_eq!(never, [ABSENT], "{}", second.transcript());
    let warned = second
        .coded(CODE)
        .into_iter()
        .find(|one| one.pod.as_deref() == Some(standby.name()) && one.severity == "warning");
    assert!(warned.is_some_and(|one| one.message.contains("never answered")));
    second.errors(&[(CODE, deaf.name())]);
    // Once it has answered, it must answer again.
    node.gateway.ip(&format!("addr add {ABSENT}/32 dev up0"));
    node.netfix("verify").exits(0);
    node.gateway.ip(&format!("addr del {ABSENT}/32 dev up0"));
    let run = node.netfix_json("verify --answer-wait 2s").exits(1);
    assert_eq!(state(&run, standby), "unreachable", "{}", run.transcript());
}

#[test]
fn a_gateway_that_a_person_gives_up_counts_as_one_that_never_answered() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.netfix("verify").exits(0);
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    pod.ip("neigh flush all");
    let lost = node.netfix_json("verify --answer-wait 2s").exits(1);
    assert_eq!(state(&lost, &pod), "unreachable", "{}", lost.transcript());
    // A snapshot alone gives nothing up.
    node.snapshot();
    assert!(recorded(&node, &pod, GATEWAY4)["ping"].is_string());
    node.netfix(&format!("snapshot --accept {}", pod.name()))
        .exits(0);
    let known = recorded(&node, &pod, GATEWAY4);
    assert!(known["ping"].is_null() && known["arp"].is_null() && known["mac"].is_null());
    let after = node.netfix_json("verify --answer-wait 2s");
    let silent = after.pod(&pod)["gateways"][0].clone();
    assert_eq!(silent["never_answered"], true, "{}", after.transcript());
    // It must answer again once it has answered.
    node.gateway.ip(&format!("addr add {GATEWAY4}/16 dev up0"));
    node.netfix("verify").exits(0);
    assert!(wait_until(|| pings(&pod, GATEWAY4)));
    // One that still answers is not given up, whether the pod has talked to it or not.
    let accept = format!("snapshot --accept {}", pod.name());
    pod.ip("neigh flush all");
    node.netfix(&accept).exits(4);
    let known = recorded(&node, &pod, GATEWAY4);
    assert!(
        known["arp"].is_string() && known["ping"].is_string(),
        "{known}"
    );
    // Of one that answers ARP only the ping is given up, and the next probe brings it back.
    node.gateway.set_sysctl("ipv4/icmp_echo_ignore_all", "1");
    node.netfix(&accept).exits(0);
    let known = recorded(&node, &pod, GATEWAY4);
    assert!(
        known["arp"].is_string() && known["ping"].is_null(),
        "{known}"
    );
    node.netfix(&accept).exits(4);
    node.gateway.set_sysctl("ipv4/icmp_echo_ignore_all", "0");
    node.netfix("verify").exits(0);
    assert!(recorded(&node, &pod, GATEWAY4)["ping"].is_string());
}

#[test]
fn a_snapshot_records_what_the_neighbour_table_shows() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    let idle = node.pod("idle").simple();
    assert!(wait_until(|| pings(&pod, GATEWAY4)));
    node.snapshot();
    let known = recorded(&node, &pod, GATEWAY4);
    assert!(
        known["arp"].is_string() && known["ping"].is_null(),
        "{known}"
    );
    assert_eq!(known["mac"], "02:00:00:88:00:01", "{known}");
    assert!(recorded(&node, &idle, GATEWAY4).is_null());
}

#[test]
fn a_pod_without_a_gateway_is_asked_for_the_neighbours_that_answered() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    pod.ip("route del default");
    for address in [GATEWAY4, ABSENT] {
        node.gateway
            .ip(&format!("addr replace {address}/16 dev up0"));
        assert!(wait_until(|| pings(&pod, address)));
    }
    node.snapshot();
    // One of them may have ended.
    node.gateway.ip(&format!("addr del {ABSENT}/16 dev up0"));
    let run = node.netfix_json("verify --answer-wait 2s").exits(0);
    assert_eq!(state(&run, &pod), "reachable", "{}", run.transcript());
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let run = node.netfix_json("verify --answer-wait 2s").exits(1);
    run.names(CODE, pod.name(), &[GATEWAY4]);
}

#[test]
fn a_firewall_that_drops_pings_alone_makes_no_gateway_unreachable() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    node.snapshot();
    node.netfix("verify").exits(0);
    assert!(runs(&pod, "iptables", "-A OUTPUT -p icmp -j DROP"));
    assert!(!pings(&pod, GATEWAY4));
    let run = node.netfix_json("verify --answer-wait 2s").exits(0);
    assert_eq!(state(&run, &pod), "reachable", "{}", run.transcript());
}

#[test]
fn a_gateway_that_answers_nothing_is_reached_where_a_target_behind_it_answers() {
    let node = Node::without_addresses();
    let pod = node.pod("web").simple();
    pod.ip(&format!(
        "neigh add {ABSENT} lladdr 02:00:00:88:00:01 nud permanent dev eth0"
    ));
    pod.ip(&format!("route replace default via {ABSENT}"));
    node.gateway.ip(&format!("addr add {BEHIND}/32 dev lo"));
    let mut socat = node.gateway.exec("socat");
    socat.args(["-d", "-d", "TCP-LISTEN:8080,fork", "OPEN:/dev/null"]);
    let listener = Background::start(&mut socat, node.temp().join("socat"));
    listener.wait_for("listening on");
    node.snapshot();
    let run = node.netfix_json("verify --answer-wait 2s");
    assert_eq!(state(&run, &pod), "unknown", "{}", run.transcript());
    let target = format!("verify --answer-wait 2s --tcp {BEHIND}:8080");
    let run = node.netfix_json(&target).exits(0);
    assert_eq!(state(&run, &pod), "reachable", "{}", run.transcript());
    // A target on the link itself shows nothing about the gateway.
    let target = format!("verify --answer-wait 2s --tcp {GATEWAY4}:8080");
    let run = node.netfix_json(&target);
    assert_eq!(state(&run, &pod), "unknown", "{}", run.transcript());
}

#[test]
fn an_answer_that_the_link_passes_on_to_another_is_seen() {
    let node = Node::without_addresses();
    let pods = ["kata", "unseen"].map(|name| node.pod(name).simple());
    for pod in &pods {
        pod.ip("link add tap0 type veth peer name guest0");
        pod.ip("link set tap0 up");
        assert!(runs(pod, "tc", "qdisc add dev eth0 ingress"));
        let redirect = "filter add dev eth0 parent ffff: protocol all u32 match u8 0 0 action mirred egress redirect dev tap0";
        assert!(runs(pod, "tc", redirect));
        assert!(!pings(pod, GATEWAY4));
    }
    let [kata, unseen] = &pods;
    unseen.ip(&format!("route replace default via {ABSENT}"));
    node.snapshot();
    let run = node.netfix_json("verify --answer-wait 3s").exits(5);
    let states = pods.each_ref().map(|pod| state(&run, pod));
    assert_eq!(states, ["reachable", "unknown"], "{}", run.transcript());
    node.gateway.ip(&format!("addr del {GATEWAY4}/16 dev up0"));
    let run = node.netfix_json("verify --answer-wait 3s").exits(1);
    let states = pods.each_ref().map(|pod| state(&run, pod));
    assert_eq!(states, ["unreachable", "unknown"], "{}", run.transcript());
    run.names(CODE, kata.name(), &[GATEWAY4]);
}

#[test]
fn a_port_of_a_bridge_that_listens_is_named_and_waited_for() {
    let node = Node::without_addresses();
    let pod = node.pod("web");
    let name = pod.name();
    node.ns
        .ip("link add br0 type bridge stp_state 1 forward_delay 200");
    node.ns.ip("link set br0 up");
    node.ns.ip(&format!(
        "link add web0 type veth peer name eth0 netns {name}"
    ));
    node.ns.ip("link set web0 master br0 up");
    pod.up_with_address();
    node.snapshot();
    node.ns.ip("link set eth0 master br0");
    let run = node.netfix_json("verify --answer-wait 1s").exits(0);
    assert_eq!(state(&run, &pod), "reachable", "{}", run.transcript());
    let named = run.coded("gateway-unknown").into_iter();
    let objects: Vec<_> = named.map(|one| one.object).collect();
    assert!(objects.contains(&"eth0".to_owned()), "{}", run.transcript());
}

#[test]
fn the_host_must_send_the_packets_of_a_pod_whose_gateway_it_is_to_that_pod() {
    let node = Node::without_addresses();
    let pods = ["sound", "missing", "elsewhere"].map(|name| node.pod(name));
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    let gateway = "169.254.1.1";
    for (pod, end) in pods.iter().zip(["cali0", "cali1", "cali2"]) {
        let (name, address) = (pod.name(), pod.address());
        node.ns.ip(&format!(
            "link add {end} type veth peer name eth0 netns {name}"
        ));
        node.ns
            .set_sysctl(&format!("ipv4/conf/{end}/proxy_arp"), "1");
        node.ns
            .set_sysctl(&format!("ipv4/neigh/{end}/proxy_delay"), "0");
        node.ns.ip(&format!("link set {end} up"));
        node.ns.ip(&format!("route add {address}/32 dev {end}"));
        pod.ip("link set eth0 up");
        pod.ip(&format!("addr add {address}/32 dev eth0"));
        pod.ip(&format!("route add {gateway} dev eth0"));
        pod.ip(&format!("route add default via {gateway}"));
    }
    node.ns.set_sysctl("ipv4/ip_forward", "1");
    node.ns
        .ip(&format!("route add {gateway} via {GATEWAY4} dev eth0"));
    node.snapshot();
    node.netfix("verify --answer-wait 3s").exits(0);
    let [_, missing, elsewhere] = &pods;
    node.ns.ip(&format!("route del {}/32", missing.address()));
    node.ns.ip(&format!(
        "route replace unreachable {}/32",
        elsewhere.address()
    ));
    let run = node.netfix_json("verify --answer-wait 3s").exits(5);
    let states = pods.each_ref().map(|pod| state(&run, pod));
    let expected = ["reachable", "unreachable", "unreachable"];
    assert_eq!(states, expected, "{}", run.transcript());
    run.names(CODE, missing.name(), &[&missing.address(), "elsewhere"])
        .names(CODE, elsewhere.name(), &["EHOSTUNREACH"]);
}

#[test]
fn a_route_to_nowhere_over_a_gateway_is_an_error_of_plan_and_restore() {
    let node = Node::without_addresses();
    let pods = answered(&node, 2);
    pods[0].ip(&format!("route add blackhole {GATEWAY4}"));
    let names = |run: Run| {
        let run = run.exits(5).errors(&[("degraded", pods[0].name())]);
        run.names("degraded", pods[0].name(), &["netfix cannot restore that"]);
    };
    names(node.netfix_json("plan"));
    names(node.netfix_json("restore"));
    assert!(!pings(&pods[0], GATEWAY4) && pings(&pods[1], GATEWAY4));
}

#[test]
fn what_refuses_the_packets_of_a_pod_whose_links_were_just_made_is_an_error_of_that_restore() {
    let node = Node::without_addresses();
    let pods = answered(&node, 4);
    node.lose_and_reload();
    pods[0].ip(&format!("route add blackhole {GATEWAY4}"));
    pods[1].ip(&format!("rule add to {GATEWAY4} prohibit pref 10"));
    // A rule that refuses nothing that the pod needs.
    pods[2].ip(&format!("rule add to {ABSENT} prohibit pref 10"));
    let run = node.netfix_json("restore").exits(5);
    run.errors(&[("degraded", pods[0].name()), ("degraded", pods[1].name())]);
    for pod in &pods[2..] {
        assert!(wait_until(|| pings(pod, GATEWAY4)));
    }
    assert!(!pings(&pods[0], GATEWAY4) && !pings(&pods[1], GATEWAY4));
}

#[test]
fn what_refuses_the_packets_of_the_host_is_an_error_of_a_restore() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.netfix_alone("snapshot").exits(0);
    node.netfix_alone("verify").exits(0);
    node.lose_and_reload();
    let rule = format!("rule add to {GATEWAY4} prohibit pref 10");
    node.ns.ip(&rule);
    let names = |run: Run| {
        let run = run.exits(5).errors(&[("degraded", "")]);
        run.names("degraded", "", &["netfix cannot restore that"]);
    };
    names(node.netfix_alone("restore -o json"));
    names(node.netfix_alone("plan -o json"));
    names(node.netfix_alone("restore -o json"));
    assert!(wait_until(|| pings(&pods[0], GATEWAY4)));
    node.ns.ip(&rule.replace("add", "del"));
    node.netfix_alone("restore").exits(0);
}

#[test]
fn a_new_rule_that_refuses_what_an_address_sends_is_an_error_and_a_snapshot_does_not_record_it() {
    let node = Node::without_addresses();
    let pods = answered(&node, 4);
    node.lose_and_reload();
    let from = |pod: &Pod<'_>| format!("rule add from {} pref 10", pod.address());
    pods[0].ip(&format!("{} prohibit", from(&pods[0])));
    pods[1].ip("route add blackhole default table 70");
    pods[1].ip(&format!("{} lookup 70", from(&pods[1])));
    // What refuses nothing of the pod.
    pods[2].ip(&format!("rule add from {ABSENT} prohibit pref 10"));
    pods[3].ip(&format!("{} lookup main", from(&pods[3])));
    let both = [("degraded", pods[0].name()), ("degraded", pods[1].name())];
    node.netfix_json("restore").exits(5).errors(&both);
    node.netfix_json("plan").exits(5).errors(&both);
    node.netfix("check").exits(2);
    node.netfix("snapshot").exits(5).errors(&both);
    // A ping whose source the kernel chooses is looked up without one.
    let pings = |pod: &Pod<'_>| {
        let words = format!("ping -c 1 -W 1 -I {} {GATEWAY4}", pod.address());
        runs(pod, "busybox", &words)
    };
    assert!(pods[2..].iter().all(|pod| wait_until(|| pings(pod))));
    assert!(!pings(&pods[0]) && !pings(&pods[1]));
    pods[0].ip("rule del pref 10");
    pods[1].ip("rule del pref 10");
    node.netfix("restore").exits(0);
    assert!(pods.iter().all(|pod| wait_until(|| pings(pod))));
}

#[test]
fn a_wrong_permanent_neighbour_is_an_error_of_a_restore_that_has_nothing_or_a_little_to_do() {
    let node = Node::without_addresses();
    let pods = answered(&node, 3);
    let wrong = format!("neigh replace {GATEWAY4} lladdr 02:de:ad:00:00:01 dev eth0 nud permanent");
    pods[0].ip(&wrong);
    pods[1].ip(&wrong);
    pods[1].ip("route del default");
    let both = [("degraded", pods[0].name()), ("degraded", pods[1].name())];
    node.netfix_json("restore").exits(5).errors(&both);
    assert!(!pings(&pods[0], GATEWAY4) && !pings(&pods[1], GATEWAY4) && pings(&pods[2], GATEWAY4));
    for pod in &pods[..2] {
        pod.ip(&format!("neigh del {GATEWAY4} dev eth0"));
    }
    node.netfix("restore").exits(0);
    assert!(pods.iter().all(|pod| wait_until(|| pings(pod, GATEWAY4))));
}
