//! The conflict probe beside switches and routers that probe or answer for addresses of others, and what a switch counts.

use std::collections::BTreeSet;
use std::fs;

use crate::common::background::{Background, tcpdump, tcpdump_sent, wait_until};
use crate::common::capture::Capture;
use crate::common::kept::node_json;
use crate::common::node::PARENT_MAC;
use crate::common::problem::ReportedProblem;
use crate::common::{Node, Pod, Run};

/// The MAC of the stand-in, `switch.py`.
const SWITCH: &str = "02:00:00:88:00:fe";
/// The MAC of the gateway's end of the wire.
const GATEWAY_MAC: &str = "02:00:00:88:00:01";
const CONFLICT: &str = "address-conflict";

/// Two pods, each also with an IPv6 address for which the kernel does not probe, as they were before the loss.
fn pods(node: &Node) -> (Vec<Pod<'_>>, Vec<Capture>) {
    let pods = node.simple_pods(2);
    for pod in &pods {
        pod.ip(&format!("addr add {}/64 dev eth0 nodad", pod.address6()));
    }
    let before = pods.iter().map(Pod::capture).collect();
    (pods, before)
}

/// Begins to stand at the other end of the wire. It is another machine: it answers however much this one has to do.
fn switch(node: &Node, words: &[&str]) -> Background {
    let mut command = node.gateway.exec("nice");
    command.args(["-n", "-20", "python3", "-c"]);
    command.arg(include_str!("../common/switch.py"));
    let background = Background::start(command.args(words), node.temp().join("switch"));
    background.wait_for("ready");
    background
}

fn assert_same(pods: &[Pod<'_>], before: &[Capture]) {
    for (pod, before) in pods.iter().zip(before) {
        pod.assert_same_as(before);
    }
}

/// `netfix upgrade` with a COMMAND that loses the NIC and brings it back.
fn upgrade(node: &Node) -> Run {
    let gateway = node.gateway.name();
    let reload = format!(
        "ip link del eth0 && ip link add eth0 address {PARENT_MAC} type veth peer name up0 address {GATEWAY_MAC} \
         netns {gateway} && ip -n {gateway} link set up0 up && ip -n {gateway} addr add 10.88.0.1/16 dev up0 && \
         ip -n {gateway} addr add fd88::1/64 dev up0"
    );
    let mut command = node.netfix_command(
        &["timeout", "600"],
        "upgrade --foreground --yes --no-pause --watch 0s --nic-wait 10s --answer-wait 2s -o json",
    );
    Run::of(command.args(["--", "sh", "-c", &reload]))
}

/// One of the switches, and a wire that sends frames back.
#[test]
fn a_switch_that_tracks_its_hosts_or_returns_frames_has_none_of_their_addresses() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    node.snapshot();
    for mode in ["track", "track-local", "return"] {
        node.lose_and_reload();
        let _switch = switch(&node, &[mode]);
        node.netfix_json("restore").exits(0).has_no(CONFLICT);
        assert_same(&pods, &before);
    }
}

#[test]
fn a_machine_that_probes_and_then_announces_has_the_address() {
    let node = Node::new();
    let (pods, _) = pods(&node);
    node.snapshot();
    node.lose_and_connect();
    let _other = switch(&node, &["claim"]);
    let run = node.netfix_json("restore").exits(1);
    let words = [&pods[0].address(), SWITCH, "eth0"];
    let run = run.names(CONFLICT, pods[0].name(), &words);
    let words = [&pods[1].address6(), SWITCH, "eth0"];
    run.names(CONFLICT, pods[1].name(), &words);
}

#[test]
fn a_network_that_answered_before_the_loss_has_no_address_of_a_pod() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    let _router = switch(&node, &["answer"]);
    let run = upgrade(&node).exits(0).errors(&[]);
    let told = run.coded(CONFLICT);
    let is_told = |one: &ReportedProblem| {
        let words = [SWITCH, "all 3 addresses"];
        one.severity == "info" && words.iter().all(|word| one.message.contains(word))
    };
    assert!(told.iter().all(is_told), "{}", run.transcript());
    assert_eq!(told.len(), 2, "one for each family: {}", run.transcript());
    assert_same(&pods, &before);
    assert_recorded(&node);

    // A snapshot between keeps what the window has found.
    node.snapshot();
    node.lose_and_reload();
    let run = node.netfix_json("restore").exits(0).errors(&[]);
    assert_eq!(run.coded(CONFLICT).len(), 2, "{}", run.transcript());
    assert_same(&pods, &before);

    // The address of one pod has another owner now, who answers beside the router.
    node.lose_and_connect();
    let address = pods[0].address();
    node.gateway.ip(&format!("addr add {address}/16 dev up0"));
    let run = node.netfix_json("restore").exits(5);
    let run = run.errors(&[(CONFLICT, pods[0].name())]);
    run.names(CONFLICT, pods[0].name(), &[&address, GATEWAY_MAC]);
}

/// The state of the node has what answered, for each family.
fn assert_recorded(node: &Node) {
    let file = fs::read_to_string(node.state_dir().join("node.json")).expect("node.json");
    let state: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    let proxies = state["proxies"].as_array().expect("proxies");
    assert_eq!(proxies.len(), 2, "{proxies:?}");
    for proxy in proxies {
        assert_eq!(proxy["link"], "eth0");
        assert_eq!(proxy["mac"], SWITCH);
        assert_eq!(proxy["all"], true);
        assert_eq!(proxy["addresses"].as_array().map(Vec::len), Some(3));
    }
}

/// The MAC of a virtual router.
const VIRTUAL_MAC: &str = "00:00:5e:00:01:33";

#[test]
fn a_network_that_answered_with_the_macs_of_the_pods_has_no_address_of_a_pod() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    let router = node.pod("router");
    router.macvlan("mode bridge", &format!("address {VIRTUAL_MAC}"));
    router.up_with_address();
    let _switch = switch(&node, &["suppress"]);
    let run = upgrade(&node).exits(5);
    let unreachable = ("gateway-unreachable", router.name());
    let run = run.errors(&[(CONFLICT, router.name()), unreachable]);
    let run = run.names(CONFLICT, router.name(), &[VIRTUAL_MAC]);
    let told = run.coded(CONFLICT);
    let is_told = |one: &ReportedProblem| {
        one.severity == "info" && one.message.contains("the MAC of their own links")
    };
    let of_network = told.iter().filter(|one| is_told(one));
    assert_eq!(of_network.count(), 2, "{}", run.transcript());
    assert_same(&pods, &before);

    node.lose_and_connect();
    let run = node.netfix_json("restore").exits(5);
    run.errors(&[(CONFLICT, router.name())]);
    assert_same(&pods, &before);
}

#[test]
fn verify_records_what_a_network_answers_and_a_restore_without_a_window_knows_it() {
    for mode in ["suppress", "answer"] {
        let node = Node::new();
        let (pods, before) = pods(&node);
        node.snapshot();
        let switch = switch(&node, &[mode]);
        let run = node.netfix_json("verify").exits(0);
        let told = run.coded(CONFLICT);
        assert_eq!(told.len(), 2, "{mode}: {}", run.transcript());
        assert!(told.iter().all(|one| one.severity == "info"), "{told:?}");
        // On a busy machine a ping may be answered after the verify that does not know yet that it will be.
        let is_pinged = || {
            let answers = node_json(&node.state_dir())["answers"].clone();
            let mut answers = answers.as_array().expect("answers").iter();
            answers.all(|one| one["ping"].is_string())
        };
        assert!(wait_until(|| is_pinged() || {
            node.netfix("verify").exits(0);
            is_pinged()
        }));
        let files = node.state_files();
        node.netfix("verify").exits(0);
        assert_eq!(node.state_files(), files, "{mode}");
        // What is known of the others stays.
        let name = pods[0].name();
        let run = node.netfix_json(&format!("verify {name}")).exits(0);
        assert_eq!(run.coded(CONFLICT).len(), 2, "{mode}");
        node.lose_and_reload();
        node.netfix_json("restore").exits(0).errors(&[]);
        assert_same(&pods, &before);
        drop(switch);
    }
}

#[test]
fn a_network_that_answers_with_the_macs_of_the_pods_since_the_loss_is_named() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    node.snapshot();
    node.lose_and_connect();
    let _switch = switch(&node, &["suppress"]);
    let run = node.netfix_json("restore").exits(1);
    let words = [&pods[1].mac(), "ARP suppression", "--conflict-probe off"];
    run.names(CONFLICT, pods[1].name(), &words);
    node.netfix("restore --conflict-probe off").exits(0);
    assert_same(&pods, &before);
}

#[test]
fn an_answer_for_one_address_explains_no_answer_for_another() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    let address = pods[0].address();
    let twin = switch(&node, &["answer", &address]);
    let run = upgrade(&node).exits(0).errors(&[]);
    run.names(CONFLICT, "", &[SWITCH, &address]);
    assert_same(&pods, &before);
    drop(twin);

    node.lose_and_connect();
    let _router = switch(&node, &["answer"]);
    let run = node.netfix_json("restore").exits(1);
    let other = pods[1].name();
    run.names(CONFLICT, other, &[&pods[1].address(), SWITCH]);
    let state = pods[0].ip("addr show dev eth0");
    assert!(state.contains(&format!("{address}/")), "{state}");
}

#[test]
fn where_one_machine_answers_for_all_the_message_names_the_network() {
    let node = Node::new();
    let (pods, before) = pods(&node);
    node.snapshot();
    node.lose_and_connect();
    let _router = switch(&node, &["answer"]);
    let words = ["all 3 addresses", SWITCH, "--conflict-probe off"];
    // On a busy machine a pod may have a turn of its own, and be all that is probed in it.
    let is_named = || {
        let run = node.netfix_json("restore").exits(1);
        let mut told = run.coded(CONFLICT).into_iter();
        told.any(|one| words.iter().all(|word| one.has(word)))
    };
    assert!(wait_until(is_named), "no conflict names {words:?}");
    node.netfix("restore --conflict-probe off").exits(0);
    assert_same(&pods, &before);
}

#[test]
fn a_window_without_a_conflict_probe_sends_none() {
    let node = Node::new();
    let _pods = pods(&node);
    let frames = tcpdump(&node, "arp");
    let mut command = node.netfix_command(
        &["timeout", "600"],
        "upgrade --foreground --yes --no-pause --watch 0s --answer-wait 2s --conflict-probe off",
    );
    Run::of(command.args(["--", "true"])).exits(0);
    assert!(!frames.text().contains("tell 0.0.0.0"), "{}", frames.text());
}

/// Seconds since midnight, at the beginning of lines of tcpdump.
fn times(lines: &[&str]) -> Vec<f64> {
    let time = |line: &&str| {
        let parts = line.split(' ').next().unwrap_or_default().split(':');
        parts.fold(0.0, |sum, part| {
            60.0 * sum
                + part
                    .parse::<f64>()
                    .unwrap_or_else(|e| panic!("{line:?}: {e}"))
        })
    };
    lines.iter().map(time).collect()
}

/// Asserts that a restore of so many pods sends no more than 15 frames in any second, and restores all of them.
fn assert_paced(count: usize, words: &str, prepare: impl FnOnce(&Node)) {
    const RATE: usize = 15;
    let node = Node::new();
    let pods = node.simple_pods(count);
    prepare(&node);
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let frames = tcpdump_sent(&node, "arp");
    let run = node.netfix(words).exits(0);
    for pod in &pods {
        frames.wait_for(&format!("tell {},", pod.address()));
        let state = pod.ip("addr show dev eth0");
        assert!(state.contains(&format!("{}/", pod.address())), "{state}");
    }
    let text = frames.text();
    let sent: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("02:00:00:88:01:"))
        .collect();
    // On a busy machine one may be probed twice.
    let probed = sent
        .iter()
        .filter_map(|line| line.split_once("who-has ")?.1.split_once(" tell 0.0.0.0"));
    let probed: BTreeSet<&str> = probed.map(|(address, _)| address).collect();
    assert_eq!(probed.len(), pods.len(), "{text}");
    let times = times(&sent);
    for part in times.windows(RATE + 1) {
        let time = (part[RATE] - part[0]).rem_euclid(86400.0);
        assert!(time > 1.0, "{time}: {text}{}", run.transcript());
    }
}

#[test]
fn no_second_has_more_frames_than_the_rate() {
    assert_paced(20, "restore --probe-rate 15/s", |_| ());
}

#[test]
fn where_the_host_has_a_lease_few_addresses_are_paced_without_the_option() {
    assert_paced(25, "restore", |node| {
        let lease = "addr change 10.88.0.2/16 dev eth0 valid_lft 3600 preferred_lft 3600";
        node.ns.ip(lease);
    });
}

#[test]
fn a_dry_run_names_the_rate_where_many_frames_would_be_sent_at_once() {
    let node = Node::new();
    // With 76 addresses.
    let pods = node.simple_pods(4);
    for (pod, net) in pods.iter().zip(50..) {
        let line = |host: u8| format!("addr add 10.88.{net}.{host}/16 dev eth0\n");
        pod.ns.batch(&(1..19).map(line).collect::<String>());
    }
    for (words, is_told) in [("", true), ("--probe-rate 15", false)] {
        let words = format!("upgrade --foreground --dry-run --no-pause {words} -o json");
        let mut command = node.netfix_command(&["timeout", "600"], &words);
        let run = Run::of(command.args(["--", "true"])).exits(0);
        let told = run.coded("probe-rate");
        assert_eq!(told.len(), usize::from(is_told), "{}", run.transcript());
        assert!(told.iter().all(|one| one.message.contains("228")));
    }
}
