//! The probe before an address is added (RFC 5227), and the announcements after it. What was sent is what tcpdump shows at the
//! gateway, what a pod has is what ip(8) shows.

use std::net::UdpSocket;
use std::process::Command;

use crate::common::background::{Background, tcpdump, wait_until};
use crate::common::namespace::Namespace;
use crate::common::{GATEWAY4, Node, Pod, Run};

/// The MAC of the gateway's end of the wire.
const GATEWAY_MAC: &str = "02:00:00:88:00:01";
/// The port of datagrams that mark a moment.
const MARK: u16 = 4242;
/// ARP, the messages of neighbour discovery that probe or announce, and marks.
const FRAMES: &str = "arp or udp dst port 4242 or (icmp6 and (ip6[40] == 135 or ip6[40] == 136))";
const CONFLICT: &str = "address-conflict";
/// Announces an address by ARP, fifty times a second.
const ANNOUNCER: &str = r"
import socket, sys, time
dev, address = sys.argv[1:]
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind((dev, 0))
mac, ip = wire.getsockname()[4], socket.inet_aton(address)
while True:
    wire.send(b'\xff' * 6 + mac + b'\x08\x06\0\1\x08\0\6\4\0\1' + mac + ip + b'\0' * 6 + ip)
    time.sleep(0.02)
";

fn has(pod: &Pod<'_>, address: &str) -> bool {
    pod.ip("addr show dev eth0")
        .contains(&format!("{address}/"))
}

/// Two pods after the loss; the gateway has the address of the first one.
fn contested(node: &Node) -> Vec<Pod<'_>> {
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_connect();
    let address = pods[0].address();
    node.gateway.ip(&format!("addr add {address}/16 dev up0"));
    pods
}

/// Sends a datagram to the gateway.
fn send_from(ns: &Namespace) {
    let send = || UdpSocket::bind("0.0.0.0:0")?.send_to(b"mark", (GATEWAY4, MARK));
    ns.enter(send).expect("a datagram is sent");
}

/// Everything that was sent before a mark from the node.
fn text_until_now(node: &Node, tcpdump: &Background) -> String {
    send_from(&node.ns);
    tcpdump.wait_for(&format!("{GATEWAY4}.{MARK}"));
    tcpdump.text()
}

fn lines_with<'a>(text: &'a str, what: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(what)).collect()
}

/// Seconds since midnight at the beginning of a line of tcpdump.
fn time_of(line: &str) -> f64 {
    let time = line.split(' ').next().unwrap_or_default();
    let parts = time.split(':').map(str::parse::<f64>);
    parts.fold(0.0, |sum, part| {
        60.0 * sum + part.unwrap_or_else(|e| panic!("no time in {line:?}: {e}"))
    })
}

#[test]
fn a_pod_whose_first_reading_takes_too_long_is_probed_all_the_same() {
    let node = Node::new();
    let pods = [node.pod("many").simple(), node.pod("plain").simple()];
    pods[0].ip("link add d0 type veth peer name d1");
    let line = |n: u32| format!("addr add 172.16.{}.{}/32 dev d0\n", n >> 8, n & 0xff);
    pods[0].ns.batch(&(0..6000).map(line).collect::<String>());
    node.snapshot();
    node.lose_and_connect();
    let address = pods[0].address();
    node.gateway.ip(&format!("addr add {address}/16 dev up0"));
    // Its links are read in a few milliseconds, its addresses are not.
    let run = node.netfix_json("restore --pod-budget 15ms").exits(5);
    run.names(CONFLICT, pods[0].name(), &[GATEWAY_MAC]);
    assert!(!has(&pods[0], &address));
    assert!(has(&pods[1], &pods[1].address()));
}

/// Its address is another machine's.
fn assert_only_the_first_is_withheld(node: &Node, pods: &[Pod<'_>], mac: &str) {
    let [first, second] = [&pods[0], &pods[1]];
    let run = node.netfix_json("restore").exits(5);
    let address = first.address();
    let run = run.errors(&[(CONFLICT, first.name())]).names(
        CONFLICT,
        first.name(),
        &[&address, mac, "eth0"],
    );
    assert!(
        first.has_eth0() && !has(first, &address),
        "{}",
        run.transcript()
    );
    assert_eq!(first.ip("route show"), "", "{}", run.transcript());
    assert!(has(second, &second.address()), "{}", run.transcript());
    assert!(second.ip("route show").contains(GATEWAY4));
    assert_eq!(run.pod(second)["state"], "restored");

    let again = node.netfix_json("restore").exits(5);
    again.errors(&[(CONFLICT, first.name())]);
    assert!(!has(first, &address));
}

#[test]
fn a_pod_stays_without_an_address_of_another_machine_until_a_restore_after_it_corrects_the_gateway()
{
    const MAC: &str = "02:00:00:88:00:98";
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    node.lose_and_connect();
    let address = pods[0].address();
    // The gateway learns it.
    let other = machine(&node, "other", MAC, &format!("{address}/16"));
    assert_only_the_first_is_withheld(&node, &pods, MAC);
    other.ip("link del other");
    node.gateway.ip(&format!(
        "neigh replace {address} lladdr 02:00:00:88:00:99 dev up0 nud reachable"
    ));
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    let neighbour = node.gateway.ip(&format!("neigh show {address}"));
    assert!(neighbour.contains(&pods[0].mac()), "{neighbour}");
}

#[test]
fn a_pod_of_this_node_without_a_checkpoint_keeps_the_address_that_it_has() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let (first, address) = (&pods[0], pods[0].address());
    let other = node.bystander("other");
    other.macvlan("mode bridge", "");
    other.ip("link set eth0 up");
    other.ip(&format!("addr add {address}/16 dev eth0"));
    let words = [address.as_str(), &other.mac(), other.name(), "eth0"];
    let run = node.netfix_json("restore").exits(5);
    let run = run
        .errors(&[(CONFLICT, first.name())])
        .names(CONFLICT, first.name(), &words);
    assert!(!has(first, &address), "{}", run.transcript());
    assert!(has(&other, &address) && has(&pods[1], &pods[1].address()));
    other.ip("link del eth0");
    node.restore();
    assert!(has(first, &address));
}

fn assert_probed_before_all_else(text: &str, pods: &[Pod<'_>]) {
    for pod in pods {
        let (address, mac) = (pod.address(), pod.mac());
        let about = lines_with(text, &format!("{address} "));
        let first = about.first().unwrap_or_else(|| panic!("{address}: {text}"));
        assert!(
            first.contains(&format!("{mac} > ff:ff:ff:ff:ff:ff"))
                && first.contains(&format!("Request who-has {address} tell 0.0.0.0")),
            "{text}"
        );
        let of_pod = lines_with(text, &format!(" {mac} > "));
        let is_right = |line: &&&str| {
            let tells = ["tell 0.0.0.0", &format!("tell {address},")];
            !line.contains("ARP") || tells.iter().any(|tell| line.contains(*tell))
        };
        assert!(of_pod.iter().all(|line| is_right(&line)), "{text}");
        let probes = about.iter().filter(|line| line.contains("tell 0.0.0.0"));
        assert_eq!(probes.count(), 2, "{text}");
    }
    let [mac, address6] = [pods[0].mac(), pods[0].address6()];
    let solicited = lines_with(text, &format!("who has {address6}"));
    let is_probe = |line: &&str| {
        line.contains(&format!("{mac} > 33:33:ff:")) && line.contains(":: > ff02::1:ff")
    };
    assert!(solicited.first().is_some_and(is_probe), "{text}");
}

fn assert_announced_twice(text: &str, pod: &Pod<'_>, link_local: String) {
    let announcement = format!("Request who-has {0} tell {0},", pod.address());
    let advertisements = [pod.address6(), link_local].map(|address| {
        format!("{address} > ff02::1: ICMP6, neighbor advertisement, tgt is {address}, length")
    });
    for what in [vec![announcement], advertisements.to_vec()].concat() {
        let sent = lines_with(text, &what);
        assert_eq!(sent.len(), 2, "{what}\n{text}");
        assert!(
            sent.iter()
                .all(|line| line.contains(&format!(" {} > ", pod.mac())))
        );
        let pause = (time_of(sent[1]) - time_of(sent[0])).rem_euclid(86400.0);
        assert!((0.9..5.0).contains(&pause), "{what}\n{text}");
    }
}

/// A pod whose addresses are usable at once.
fn without_detection(node: &Node) -> Pod<'_> {
    let pod = node.pod("announced");
    pod.ns.set_sysctl("ipv6/conf/default/accept_dad", "0");
    // The kernel's own one is so only when a work queue has run.
    pod.ns.set_sysctl("ipv6/conf/default/addr_gen_mode", "1");
    let pod = pod.simple();
    pod.ip(&format!("addr add {}/64 dev eth0 nodad", pod.address6()));
    pod.ip("addr add fe80::77/64 dev eth0 nodad");
    pod
}

fn link_local(pod: &Pod<'_>) -> String {
    let text = pod.ip("-6 addr show dev eth0 scope link");
    let word = text
        .split_whitespace()
        .find(|word| word.starts_with("fe80"));
    let word = word.unwrap_or_else(|| panic!("{text}"));
    word.split('/').next().unwrap_or_default().to_owned()
}

/// An address that many pods may have is neither probed nor announced.
#[test]
fn a_probe_names_no_sender_and_comes_before_all_else_of_an_address() {
    const OF_MANY: &str = "10.88.9.9";
    let node = Node::new();
    let pods = node.simple_pods(2);
    pods[0].ip(&format!("addr add {}/64 dev eth0", pods[0].address6()));
    for pod in &pods {
        pod.ip(&format!("addr add {OF_MANY}/32 dev eth0 scope host"));
    }
    node.snapshot();
    node.lose_and_reload();
    node.gateway.ip(&format!("addr add {OF_MANY}/32 dev up0"));
    let tcpdump = tcpdump(&node, FRAMES);
    node.restore();
    assert!(pods.iter().all(|pod| has(pod, OF_MANY)));
    let text = text_until_now(&node, &tcpdump);
    assert_probed_before_all_else(&text, &pods);
    assert!(!text.contains(OF_MANY), "{text}");
}

#[test]
fn every_address_is_announced_twice() {
    let node = Node::new();
    let pod = without_detection(&node);
    let own = link_local(&pod);
    node.snapshot();
    node.lose_and_reload();
    let tcpdump = tcpdump(&node, FRAMES);
    node.restore();
    assert_announced_twice(&text_until_now(&node, &tcpdump), &pod, own);
}

/// Announces an address that the namespace does not have.
fn forge(node: &Node, ns: &Namespace, dev: &str, address: &str) -> Background {
    let mut python = ns.exec("python3");
    python.args(["-c", ANNOUNCER, dev, address]);
    let tcpdump = tcpdump(node, "arp");
    let file = node.temp().join(format!("announcer-{dev}"));
    let forger = Background::start(&mut python, file);
    tcpdump.wait_for(&format!("tell {address},"));
    forger
}

#[test]
fn an_announcement_of_another_machine_is_a_conflict_and_a_pod_of_this_node_cannot_forge_one() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let [address, second] = [&pods[0], &pods[1]].map(Pod::address);
    let other = node.bystander("other");
    other.macvlan("mode bridge", "");
    other.ip("link set eth0 up");
    let forger = forge(&node, &node.gateway, "up0", &address);
    let _of_node = forge(&node, &other.ns, "eth0", &second);
    let run = node
        .netfix_json("restore")
        .exits(5)
        .errors(&[(CONFLICT, pods[0].name())]);
    run.names(CONFLICT, pods[0].name(), &[&address, GATEWAY_MAC, "eth0"]);
    assert!(!has(&pods[0], &address) && has(&pods[1], &second));
    drop(forger);
    node.restore();
    assert!(has(&pods[0], &address) && has(&pods[1], &second));
}

#[test]
fn an_ipv6_address_without_duplicate_address_detection_is_probed() {
    let node = Node::new();
    let pod = node.pod_with_dad("web").simple();
    pod.ip("addr add fd88::9:1/64 dev eth0 nodad");
    pod.ip("addr add fd88::9:2/64 dev eth0 nodad");
    node.snapshot();
    node.lose_and_connect();
    node.gateway.ip("addr add fd88::9:1/64 dev up0 nodad");
    let run = node.netfix_json("restore").exits(1);
    let run = run.errors(&[(CONFLICT, pod.name())]).names(
        CONFLICT,
        pod.name(),
        &["fd88::9:1", GATEWAY_MAC, "eth0"],
    );
    assert!(!has(&pod, "fd88::9:1"), "{}", run.transcript());
    assert!(
        has(&pod, "fd88::9:2") && has(&pod, &pod.address()),
        "{}",
        run.transcript()
    );
    node.gateway.ip("addr del fd88::9:1/64 dev up0");
    node.restore();
    assert!(has(&pod, "fd88::9:1"));
}

fn probes_after(prepare: impl FnOnce(&Node), words: &str) -> (Run, usize, String) {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    node.lose_and_reload();
    prepare(&node);
    let tcpdump = tcpdump(&node, FRAMES);
    let run = node.netfix_json(words).exits(0);
    assert!(pods.iter().all(|pod| has(pod, &pod.address())));
    let text = text_until_now(&node, &tcpdump);
    let probes = lines_with(&text, "tell 0.0.0.0").len();
    (run, probes, text)
}

#[test]
fn without_a_conflict_probe_none_is_sent() {
    let (_, probes, text) = probes_after(|_| (), "restore --conflict-probe off");
    assert_eq!(probes, 0, "{text}");
    assert_eq!(lines_with(&text, "tell 10.88.1.10,").len(), 2, "{text}");
}

#[test]
fn a_restore_with_nothing_to_do_sends_nothing() {
    let restored = |node: &Node| drop(node.restore());
    let (_, probes, text) = probes_after(restored, "restore");
    assert_eq!(probes, 0, "{text}");
    assert!(!text.contains("tell 10.88.1."), "{text}");
}

#[test]
fn fifty_pods_wait_together() {
    let node = Node::new();
    let pods = node.simple_pods(50);
    node.snapshot();
    node.lose_and_reload();
    let tcpdump = tcpdump(&node, FRAMES);
    node.netfix("restore --probe-rate 1000").exits(0);
    let text = text_until_now(&node, &tcpdump);
    let arp = lines_with(&text, "who-has 10.88.1.");
    assert_eq!(arp.len(), 4 * pods.len(), "{text}");
    let (probes, announcements) = arp.split_at(2 * pods.len());
    let is_probe = |line: &&str| line.contains("tell 0.0.0.0");
    assert!(probes.iter().all(is_probe), "{text}");
    assert!(!announcements.iter().any(is_probe), "{text}");
    assert!(pods.iter().all(|pod| has(pod, &pod.address())));
}

#[test]
fn a_learning_bridge_and_a_stale_neighbour_follow_the_pod() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    let (mac, address) = (pod.mac(), pod.address());
    node.snapshot();
    node.lose_and_reload();
    let gateway = &node.gateway;
    gateway.ip("link add br0 type bridge");
    gateway.ip("addr flush dev up0");
    gateway.ip("link set up0 master br0");
    // Where no port has carrier the kernel forgets the neighbours of the bridge.
    gateway.ip("link add port0 up master br0 type veth peer name end0");
    gateway.ip("link set end0 up");
    gateway.ip("link set br0 up");
    gateway.ip(&format!("addr add {GATEWAY4}/16 dev br0"));
    // The pod's MAC is sent from the other port.
    let other = Namespace::new(&format!("{}other", node.ns.name()));
    gateway.ip(&format!(
        "link add port2 type veth peer name eth0 address {mac} netns {}",
        other.name()
    ));
    gateway.ip("link set port2 master br0");
    gateway.ip("link set port2 up");
    other.ip("link set eth0 up");
    other.ip("addr add 10.88.9.9/16 dev eth0");
    let fdb = || {
        let mut bridge = gateway.exec("bridge");
        let output = bridge.args(["fdb", "show", "br", "br0"]).output();
        let text = output.expect("bridge fdb").stdout;
        String::from_utf8_lossy(&text).into_owned()
    };
    let learnt = |port: &str| fdb().contains(&format!("{mac} dev {port}"));
    let is_learnt = || {
        send_from(&other);
        learnt("port2")
    };
    assert!(wait_until(is_learnt), "{}", fdb());
    let stale = "02:00:00:88:00:99";
    gateway.ip(&format!(
        "neigh replace {address} lladdr {stale} dev br0 nud reachable"
    ));
    other.ip("link set eth0 down");
    node.restore();
    let neighbour = gateway.ip(&format!("neigh show {address}"));
    assert!(neighbour.contains(&mac), "{neighbour}");
    assert!(learnt("up0") && !learnt("port2"), "{}", fdb());
}

/// A machine behind the gateway's link with this MAC and this address.
fn machine(node: &Node, name: &str, mac: &str, address: &str) -> Namespace {
    let other = Namespace::new(&format!("{}{name}", node.ns.name()));
    // With the same MAC it has the same link-local address: its detection would end that of the node, if both run at once.
    other.set_sysctl("ipv6/conf/default/dad_transmits", "0");
    node.gateway.ip(&format!(
        "link add {name} link up0 address {mac} type macvlan mode private"
    ));
    node.gateway
        .ip(&format!("link set {name} netns {}", other.name()));
    other.ip(&format!("addr add {address} dev {name} nodad"));
    other.ip(&format!("link set {name} up"));
    other
}

#[test]
fn another_machine_with_the_mac_of_the_pod_has_its_address() {
    let node = Node::new();
    let [first, second, third] = [1, 2, 3].map(|at| node.pod(&format!("p{at}")).simple());
    let address6 = second.address6();
    second.ip(&format!("addr add {address6}/64 dev eth0 nodad"));
    node.snapshot();
    node.lose_and_connect();
    let address = first.address();
    let copy = machine(&node, "copy", &first.mac(), &format!("{address}/16"));
    let copy6 = machine(&node, "copy6", &second.mac(), &format!("{address6}/64"));
    let run = node.netfix_json("restore").exits(5);
    let run = run.errors(&[(CONFLICT, first.name()), (CONFLICT, second.name())]);
    let run = run.names(CONFLICT, first.name(), &[&address, &first.mac(), "eth0"]);
    assert!(!has(&first, &address), "{}", run.transcript());
    assert!(!has(&second, &address6) && has(&second, &second.address()));
    assert!(has(&third, &third.address()), "{}", run.transcript());
    copy.ip("link del copy");
    copy6.ip("link del copy6");
    node.restore();
    assert!(has(&first, &address) && has(&second, &address6));
}

#[test]
fn a_virtual_router_address_that_moved_stays_with_the_peer() {
    const MAC: &str = "00:00:5e:00:01:33";
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.ns.ip(&format!(
        "link add link eth0 name vrrp.51 address {MAC} type macvlan mode private"
    ));
    node.ns.ip("link set vrrp.51 up");
    node.ns.ip("addr add 10.88.5.1/32 dev vrrp.51");
    node.snapshot();
    node.lose_and_connect();
    let _peer = machine(&node, "peer", MAC, "10.88.5.1/32");
    let run = node.netfix_json("restore").exits(0);
    let run = run.names(CONFLICT, "", &["10.88.5.1", MAC, "has moved"]);
    let state = node.ns.ip("addr show dev vrrp.51");
    assert!(!state.contains("10.88.5.1"), "{state}");
    assert!(has(&pods[0], &pods[0].address()), "{}", run.transcript());
}

/// Gives the wire its carrier when the pod has its link and the restore has waited for carrier: then its probes wait.
fn late_carrier(node: &Node, pod: &Pod<'_>) -> Background {
    let (gateway, pod) = (node.gateway.name(), pod.ns.name());
    let script = format!(
        "until ip -n {pod} link show eth0; do sleep 0.05; done; sleep 2.3; ip -n {gateway} link set up0 up"
    );
    let mut shell = Command::new("sh");
    Background::start(shell.args(["-c", &script]), node.temp().join("carrier"))
}

#[test]
fn a_link_that_is_not_ready_yet_is_waited_for_and_probed() {
    let node = Node::new();
    let pods = contested(&node);
    let [first, second] = [&pods[0], &pods[1]];
    node.gateway.ip("link set up0 down");
    let _carrier = late_carrier(&node, first);
    let run = node.netfix_json("restore").exits(5);
    let run = run.errors(&[(CONFLICT, first.name())]);
    assert!(!has(first, &first.address()), "{}", run.transcript());
    assert!(has(second, &second.address()), "{}", run.transcript());
    assert!(!run.transcript().contains("without a probe"));
}

#[test]
fn without_carrier_an_address_is_added_without_a_probe_after_a_moment() {
    let node = Node::new();
    let pods = contested(&node);
    node.gateway.ip("link set up0 down");
    let run = node.netfix_json("restore").exits(0);
    assert!(run.transcript().contains("without a probe"));
    assert!(pods.iter().all(|pod| has(pod, &pod.address())));
}
