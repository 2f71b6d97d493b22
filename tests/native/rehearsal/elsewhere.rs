//! What routers, carrier and daemons bring to a pod or to its twin alone is no reason against a window.

use std::process::Stdio;

use super::{figures, rehearse};
use crate::common::background::{Monitor, wait_until};
use crate::common::{Node, Pod};

/// Sends an advertisement of the gateway: its flags and lifetime, and the options with their flags and lifetimes.
const ROUTER: &str = "
import socket, struct, sys
flags, router, prefix, valid, preferred, route, mtu = (int(word, 0) for word in sys.argv[1:])
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
net = lambda text: socket.inet_pton(socket.AF_INET6, text)
packet = struct.pack('!BBHBBHII', 134, 0, 0, 61, flags, router, 42000, 2000)
packet += struct.pack('!BBBBIII16s', 3, 4, 64, prefix, valid, preferred, 0, net('fd%x::' % (0x90 + (prefix >> 4))))
packet += struct.pack('!BBBBI8s', 24, 2, 48, 0, route, net('fd98:1::')[:8])
packet += struct.pack('!BBHI', 5, 1, 0, mtu)
packet += struct.pack('!BBHI16s', 25, 3, 0, 1800, net('fd98:1::53'))
s.sendto(packet, ('ff02::1', 0, 0, socket.if_nametoindex('up0')))";

const FOREVER: &str = "0xffffffff";

/// M and O of the router; its lifetime; L and A of the prefix; its lifetimes; the lifetime of the route; the MTU.
const ADVERTISEMENTS: [[&str; 7]; 8] = [
    ["0", "1800", "0xc0", "3600", "1800", "1800", "1500"],
    ["0", "0", "0x80", "3600", "1800", "0", "1400"],
    ["0xc0", "1800", "0x40", "3600", "0", FOREVER, "1400"],
    ["0x40", "0", "0", "3600", "1800", "1800", "1500"],
    ["0", "1800", "0xc0", FOREVER, FOREVER, FOREVER, "1280"],
    ["0x80", "30", "0x80", FOREVER, FOREVER, "30", "1500"],
    ["0", "3", "0xc0", "3", "2", "3", "1300"],
    ["0", "0", "0xc0", "0", "0", "0", "1500"],
];

fn advertise(node: &Node, advertisement: &[&str]) {
    let sent = wait_until(|| {
        let mut python = node.gateway.exec("python3");
        let python = python.args(["-c", ROUTER]).args(advertisement);
        let status = python.stderr(Stdio::null()).status();
        status.expect("python3").success()
    });
    assert!(sent, "the gateway sends no advertisement");
}

#[test]
fn what_a_router_advertises_is_no_difference() {
    let node = Node::new();
    node.gateway.set_sysctl("ipv6/conf/all/forwarding", "1");
    let pods = node.simple_pods(2);
    for ns in [&pods[0].ns, &pods[1].ns, &node.ns] {
        ns.set_sysctl("ipv6/conf/eth0/accept_ra_rt_info_max_plen", "64");
        ns.set_sysctl("ipv6/conf/eth0/use_tempaddr", "2");
    }
    pods[0].ip("-6 addr add fd9c::5/64 dev eth0 nodad");
    node.snapshot();
    for advertisement in ADVERTISEMENTS {
        advertise(&node, &advertisement);
        rehearse(&node).has_no("rehearsal-differs");
        node.snapshot();
        let run = rehearse(&node).has_no("rehearsal-differs");
        // What lives for 3 s can be over by now; then it has not been advertised since.
        let is_short = advertisement[1] == "3";
        let run = if is_short { run } else { run.exits(0) };
        assert_eq!(figures(&run)["identical"], 2, "{}", run.transcript());
    }
    // A route that no router brings is compared all the same.
    pods[0].ip("-6 route add fd97::/64 dev eth0 proto kernel");
    let run = rehearse(&node).exits(1);
    assert_eq!(
        run.coded("rehearsal-differs").len(),
        1,
        "{}",
        run.transcript()
    );
}

/// Adds what routing daemons add.
fn add_as_daemons(pod: &Pod<'_>) {
    pod.ip("route add 10.99.0.0/16 via 10.88.0.1 proto zebra");
    pod.ip("route add default via 10.88.0.1 table 100 proto bird");
    pod.ip("-6 route add fd99::/64 dev eth0 proto babel");
    pod.ip("neigh add 10.88.99.9 lladdr 02:00:00:00:00:09 dev eth0 protocol zebra");
}

#[test]
fn what_a_daemon_that_runs_brings_back_is_counted_apart() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    add_as_daemons(&pods[0]);
    node.snapshot();
    let _daemon = Monitor::of(&pods[0].ns, &node);
    let run = rehearse(&node).exits(0).has_no("rehearsal-differs");
    let figures = figures(&run);
    assert_eq!(figures["identical"], 1, "{}", run.transcript());
    assert_eq!(figures["but_for_daemons"], 1, "{}", run.transcript());
    let left = run.coded("left-to-daemon");
    assert_eq!(left.len(), 1, "{}", run.transcript());
    assert!(left[0].has("3 more objects"), "{}", run.transcript());
    node.netfix("check --rehearse").exits(0).stdout_has(&[
        "1 of 2 pods comes back identical, 1 identical but for what is left to daemons",
    ]);
}

#[test]
fn what_no_program_could_bring_back_comes_back() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    add_as_daemons(&pods[0]);
    pods[0].ip("rule add from 10.88.0.0/16 table 100 protocol bird");
    node.assert_all_survive_a_loss(&pods);
}
