//! What a router's advertisements made, and what only says so.

use std::process::Stdio;

use super::assert_settled;
use crate::common::{Node, Pod, background::wait_until};

#[test]
fn routes_and_addresses_of_a_program_that_evaluates_advertisements_come_back() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    add_as_of_a_router(&pod, "fd11::5", 0);
    for line in [
        "-6 addr add fd10::5/64 dev eth0",
        "-6 route add default via fe80::1 dev eth0 proto ra metric 512",
        "-6 route add fd20::/32 via fd10::9 dev eth0 proto ra expires 5000",
        "-6 route add fd21::/32 dev eth0 proto ra table 100",
        "-6 route add fd22::/32 proto ra nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0",
        "-6 route add fd23::/48 dev eth0 proto redirect",
        "-4 route add 10.2.0.0/16 via 10.88.0.1 proto ra",
    ] {
        pod.ip(line);
    }
    node.assert_all_survive_a_loss(&[pod]);
}

/// Adds an address with the origin that the kernel gives to those of a router (`IFA_PROTO` 2), which not every ip(8) can, and
/// these flags.
fn add_as_of_a_router(pod: &Pod<'_>, address: &str, flags: u32) {
    const SCRIPT: &str = "
import socket, struct, sys
attribute = lambda kind, value: struct.pack('=HH', 4 + len(value), kind) + value.ljust((len(value) + 3) // 4 * 4, b'\\0')
address = socket.inet_pton(socket.AF_INET6, sys.argv[1])
body = struct.pack('=BBBBI', socket.AF_INET6, 64, 0, 0, socket.if_nametoindex('eth0'))
body += attribute(2, address) + attribute(11, b'\\2') + attribute(8, struct.pack('=I', int(sys.argv[2])))
s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
s.send(struct.pack('=IHHII', 16 + len(body), 20, 0x605, 1, 0) + body)
sys.exit(-struct.unpack('=i', s.recv(4096)[16:20])[0])";
    let mut python = pod.ns.exec("python3");
    let done = python.args(["-c", SCRIPT, address, &flags.to_string()]);
    assert!(done.status().expect("python3").success());
}

/// Sends an advertisement with a prefix and a route; not while the gateway's link has no address yet.
fn advertise(node: &Node) -> bool {
    advertise_with(node, [64, 0, 0, 1500])
}

/// One with this hop limit, reachable time, retransmission time and MTU.
fn advertise_with(node: &Node, settings: [u32; 4]) -> bool {
    const SCRIPT: &str = "
import socket, struct, sys
hops, reachable, retransmission, mtu = map(int, sys.argv[1:])
s = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
packet = struct.pack('!BBHBBHII', 134, 0, 0, hops, 0, 1800, reachable, retransmission)
packet += struct.pack('!BBHI', 5, 1, 0, mtu)
packet += struct.pack('!BBBBIII16s', 3, 4, 64, 0xc0, 3600, 1800, 0, socket.inet_pton(socket.AF_INET6, 'fd99::'))
packet += struct.pack('!BBBBI8s', 24, 2, 48, 0, 1800, socket.inet_pton(socket.AF_INET6, 'fd98:1::')[:8])
s.sendto(packet, ('ff02::1', 0, 0, socket.if_nametoindex('up0')))";
    let mut python = node.gateway.exec("python3");
    let settings = settings.map(|setting| setting.to_string());
    let sent = python.args(["-c", SCRIPT]).args(settings);
    let sent = sent.stderr(Stdio::null()).status();
    sent.expect("python3").success()
}

fn with_a_router(node: &Node) -> Pod<'_> {
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.ns.set_sysctl("ipv6/conf/default/accept_ra", "0");
    node.gateway.set_sysctl("ipv6/conf/all/forwarding", "1");
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ns
        .set_sysctl("ipv6/conf/eth0/accept_ra_rt_info_max_plen", "64");
    pod.ip("link set eth0 up");
    assert!(wait_until(|| is_there(node, &pod)));
    pod
}

fn is_there(node: &Node, pod: &Pod<'_>) -> bool {
    advertise(node)
        && pod.ip("-6 route show default").contains("proto ra")
        && pod
            .ip("-6 addr show dev eth0 scope global")
            .contains("fd99::")
}

#[test]
fn what_the_kernel_had_from_a_router_comes_back_where_it_listens_to_none_any_more() {
    let node = Node::new();
    let pod = with_a_router(&node);
    pod.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.restore();
    pod.assert_same_as(&before);
    assert_settled(&node);
}

#[test]
fn what_a_silent_router_does_not_bring_back_is_named_until_it_does() {
    let node = Node::new();
    let pod = with_a_router(&node);
    node.snapshot();
    let check = node.netfix("check");
    assert_eq!(check.code, Some(0), "{}", check.transcript());
    node.lose_and_reload();
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    let run = node.netfix_json("restore").exits(0);
    run.names("not-advertised", pod.name(), &["address fd99:", "eth0"])
        .names("not-advertised", pod.name(), &["route default via fe80::"])
        .names("not-advertised", pod.name(), &["route fd98:1::/48"]);
    for command in ["diff", "check"] {
        let run = node.netfix_json(command);
        run.names("not-advertised", pod.name(), &["fd99:"]);
    }
    assert!(wait_until(|| is_there(&node, &pod)));
    let check = node.netfix("check");
    assert_eq!(check.code, Some(0), "{}", check.transcript());
    assert_settled(&node);
}

#[test]
fn a_router_with_another_prefix_has_withdrawn_the_former_one() {
    let node = Node::new();
    let pod = with_a_router(&node);
    node.snapshot();
    let address = pod.ip("-6 -o addr show dev eth0 scope global");
    let address = address.split_whitespace().nth(3).expect("an address");
    pod.ip(&format!("-6 addr del {address} dev eth0"));
    add_as_of_a_router(&pod, "fd97::9", 0x100);
    let check = node.netfix_json("check");
    check.exits(0);
}

/// Whether the last advertisement with these settings has arrived.
fn has_settings(pod: &Pod<'_>, [hops, reachable, retransmission, mtu]: [u32; 4]) -> bool {
    let keys = [
        ("ipv6/conf/eth0/hop_limit", hops),
        ("ipv6/neigh/eth0/base_reachable_time_ms", reachable),
        ("ipv6/neigh/eth0/retrans_time_ms", retransmission),
        ("ipv6/conf/eth0/mtu", mtu),
    ];
    let mut keys = keys.into_iter();
    keys.all(|(key, value)| pod.ns.sysctl(key) == value.to_string())
}

#[test]
fn what_a_router_sets_is_no_drift_and_its_mtu_comes_back_with_its_route() {
    let node = Node::new();
    let pod = with_a_router(&node);
    let arrive = |settings: [u32; 4]| {
        let arrived = || advertise_with(&node, settings) && has_settings(&pod, settings);
        assert!(wait_until(arrived), "{settings:?}");
    };
    let (before, later) = ([63, 20_000, 500, 1480], [62, 25_000, 600, 1400]);
    arrive(before);
    node.snapshot();
    arrive(later);
    for command in ["diff", "check", "restore"] {
        node.netfix(command).exits(0);
    }
    assert!(has_settings(&pod, later));
    // What a person sets beside it is drift.
    pod.ns.set_sysctl("ipv6/conf/eth0/hop_limit", "60");
    node.netfix("diff").exits(3);
    arrive(before);
    let route = pod.ip("-6 route show default");
    assert!(route.contains("mtu 1480"), "{route}");
    node.lose_and_reload();
    node.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    node.restore();
    arrive(before);
    let route = pod.ip("-6 route show default");
    assert!(route.contains("mtu 1480"), "{route}");
    node.netfix("diff").exits(0);
}
