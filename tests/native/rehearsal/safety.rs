//! A rehearsal leaves nothing, is seen by no other netfix, and sends nothing.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::rehearse;
use crate::common::background::{Background, wait_until};
use crate::common::namespace::Namespace;
use crate::common::numbers::Numbers;
use crate::common::{Node, Pod, tool};

/// How often a rehearsal is killed, each time at another moment; `NETFIX_MOMENTS` has another number.
const MOMENTS: usize = 20;

/// What a rehearsal could leave on a machine: namespaces of processes and of open files, processes, mounts, links and names.
const LOOK: &str = r"
look() {
    readlink /proc/[0-9]*/task/*/ns/net /proc/[0-9]*/task/*/fd/* | grep '^net:' | sort -u
    cat /proc/[0-9]*/comm | grep -c netfix
    cut -d ' ' -f 3- /proc/self/mountinfo | sort
    ip link 2>/dev/null; ip netns list-id; ls /run/netns | grep -v '^nfx'
}
";

/// Delays in milliseconds, spread over `most`.
fn moments(seed: u64, most: Duration) -> Vec<u64> {
    let mut numbers = Numbers::new(seed | 1);
    let most = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
    let count = tool::number("NETFIX_MOMENTS").and_then(|count| usize::try_from(count).ok());
    (0..count.unwrap_or(MOMENTS))
        .map(|_| numbers.below(most))
        .collect()
}

#[test]
fn a_rehearsal_that_is_killed_leaves_nothing() {
    let node = Node::new();
    let pods = node.simple_pods(4);
    node.snapshot();
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let (host, files) = (node.capture(), node.state_files());
    let start = Instant::now();
    rehearse(&node).exits(0);
    let random = || RandomState::new().hash_one(std::process::id());
    let seed = tool::number("NETFIX_SEED").unwrap_or_else(random);
    let mut script = format!("{LOOK}\nbefore=$(look)\n");
    for delay in moments(seed, start.elapsed()) {
        let seconds = format!("{}.{:03}", delay / 1000, delay % 1000);
        let _ = writeln!(
            script,
            "\"$@\" >/dev/null 2>&1 & netfix=$!; sleep {seconds}; kill -9 $netfix; wait $netfix
            after=$(look); [ \"$after\" = \"$before\" ] || {{ echo \"killed after {seconds} s\"; echo \"$before\" >/tmp/before.$$; echo \"$after\" | diff /tmp/before.$$ -; rm /tmp/before.$$; }}"
        );
    }
    let mut command = node.script_alone("true", &script, "check --rehearse");
    assert_eq!(tool::run(&mut command), "", "NETFIX_SEED={seed}");
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.assert_same_as(&host);
    assert_eq!(node.state_files(), files);
    rehearse(&node).exits(0);
}

#[test]
fn another_netfix_takes_no_twin_for_a_pod() {
    let node = Node::new();
    let pods: Vec<Pod<'_>> = (0..20)
        .map(|number| node.pod(&format!("p{number}")).simple())
        .collect();
    node.netfix_alone("snapshot").exits(0);
    let script = "\"$@\" >/dev/null & rehearsal=$!
        while kill -0 $rehearsal 2>/dev/null; do
            for command in list check; do
                \"$1\" $command -o json --state-dir \"$5\"
            done
        done
        wait $rehearsal";
    let mut command = node.script_alone("true", script, "check --rehearse");
    let text = tool::run(&mut command);
    let mut looks = 0;
    for document in serde_json::Deserializer::from_str(&text).into_iter() {
        let document: Value = document.expect("JSON");
        let names = document["pods"].as_array().expect("pods");
        assert_eq!(names.len(), pods.len(), "{document}");
        assert_eq!(document["problems"], Value::Array(Vec::new()), "{document}");
        looks += 1;
    }
    assert!(looks > 2, "{text}");
}

/// Every frame on a device, as text.
fn capture(node: &Node, ns: &Namespace, dev: &str) -> Background {
    let mut command = ns.exec("tcpdump");
    command.args(["-l", "-n", "-e", "-i", dev]);
    let file = node.temp().join(format!("frames-{dev}"));
    let capture = Background::start(&mut command, file);
    capture.wait_for("listening on");
    capture
}

/// Waits until nothing has been sent for longer than a host may take to report a group to a querier (RFC 2236, section 8.3).
fn wait_for_silence(captures: &[&Background]) {
    const SILENCE: Duration = Duration::from_secs(11);
    let texts = || -> Vec<String> { captures.iter().map(|one| one.text()).collect() };
    let (mut last, mut since) = (texts(), Instant::now());
    let is_silent = wait_until(|| {
        let now = texts();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() > SILENCE
    });
    assert!(is_silent, "the node is never silent: {last:?}");
}

/// What the kernel sends by itself: duplicate address detection, reports of groups, gratuitous ARP, queries of bridges.
#[test]
fn no_frame_leaves_the_node_during_a_rehearsal() {
    let node = Node::without_addresses();
    // Of both ends: a router solicitation of an earlier moment is no frame of the rehearsal.
    for (ns, dev) in [(&node.ns, "eth0"), (&node.gateway, "up0")] {
        ns.set_sysctl("ipv6/conf/default/router_solicitations", "0");
        ns.set_sysctl(&format!("ipv6/conf/{dev}/router_solicitations"), "0");
    }
    node.ns.set_sysctl("ipv6/conf/default/dad_transmits", "1");
    node.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    node.give_addresses();
    let peer = node.gateway.name();
    node.ns.ip(&format!(
        "link add eth1 up type veth peer name up1 netns {peer}"
    ));
    node.gateway.ip("link set up1 up");
    node.ns
        .ip("link add br0 type bridge mcast_querier 1 mcast_startup_query_count 1 mcast_query_interval 360000");
    node.ns.ip("link set eth1 master br0");
    node.ns.ip("link set br0 up");
    node.ns.ip("addr add 10.5.0.1/24 dev br0");
    node.ns.ip("addr add fd05::1/64 dev br0");
    let pods: Vec<Pod<'_>> = (0..3)
        .map(|number| {
            let pod = node.pod_with_dad(&format!("p{number}"));
            let key = "ipv6/conf/default/router_solicitations";
            pod.ns.set_sysctl(key, "0");
            pod.simple()
        })
        .collect();
    for (pod, number) in pods.iter().zip(1..) {
        pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
        pod.ip(&format!("addr add fd00:9::{number}/64 dev eth0"));
    }
    node.snapshot();
    let captures = [
        capture(&node, &node.ns, "eth0"),
        capture(&node, &node.gateway, "up0"),
        capture(&node, &node.gateway, "up1"),
    ];
    wait_for_silence(&captures.each_ref());
    let before = captures.each_ref().map(Background::text);
    let run = rehearse(&node);
    assert_eq!(super::figures(&run)["identical"], 3, "{}", run.transcript());
    std::thread::sleep(Duration::from_secs(2));
    for (capture, before) in captures.iter().zip(&before) {
        assert_eq!(&capture.text()[before.len()..], "");
    }
    // It would have been seen.
    pods[0].ip("link set eth0 down");
    pods[0].ip("link set eth0 up");
    for capture in &captures[..2] {
        capture.wait_for("Request who-has");
        capture.wait_for("multicast listener report v2");
    }
}
