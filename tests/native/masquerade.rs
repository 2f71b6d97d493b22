//! Connections with a translated source: a dry run and a rehearsal count them, the masqueraded ones end with the link, and a window
//! restores them. Judged by the table of the kernel, which another part of it shows, and by their packets.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::common::background::wait_until;
use crate::common::namespace::Namespace;
use crate::common::node::PARENT_MAC;
use crate::common::traffic::Connection;
use crate::common::{GATEWAY4, GATEWAY6, Node, Run};

/// `snat` survives the link, and is not to be distinguished by the dump.
const RULES: &str = "add table inet nat
    add chain inet nat post { type nat hook postrouting priority 100 ; }
    add rule inet nat post oifname eth0 udp dport 7 snat ip to 10.88.0.2
    add rule inet nat post oifname eth0 udp dport 9 masquerade";

/// As kube-proxy masquerades: the next packet of a connection without its entry has another port.
const RANDOM_RULES: &str = "add table inet nat
    add chain inet nat post { type nat hook postrouting priority 100 ; }
    add rule inet nat post oifname eth0 masquerade fully-random
    add chain inet nat pre { type nat hook prerouting priority -100 ; }
    add rule inet nat pre ip daddr 10.60.9.9 dnat ip to 10.88.0.1";

/// A namespace that routes and masquerades for another one, which is made here.
fn client_of(ns: &Namespace) -> Namespace {
    client_with(ns, RULES)
}

fn client_with(ns: &Namespace, rules: &str) -> Namespace {
    let client = Namespace::new(&format!("{}c", ns.name().replace('.', "")));
    let name = client.name();
    ns.ip(&format!(
        "link add in0 type veth peer name out0 netns {name}"
    ));
    for (end, device, number) in [(ns, "in0", 1), (&client, "out0", 2)] {
        end.ip(&format!("link set {device} up"));
        end.ip(&format!("addr add 10.60.0.{number}/24 dev {device}"));
        end.ip(&format!("addr add fd60::{number}/64 dev {device} nodad"));
    }
    client.ip("route add default via 10.60.0.1");
    client.ip("route add default via fd60::1");
    ns.set_sysctl("ipv4/ip_forward", "1");
    ns.set_sysctl("ipv6/conf/all/forwarding", "1");
    let mut nft = ns.exec("nft");
    let status = nft.arg(rules).stdin(Stdio::null()).status();
    assert!(status.expect("nft").success());
    // Half a minute may pass on a busy machine.
    ns.set_sysctl("netfilter/nf_conntrack_udp_timeout", "600");
    client
}

/// One packet of a new connection to each of these.
fn send(ns: &Namespace, to: &[(&str, u16)]) {
    ns.enter(|| {
        for (address, port) in to {
            let any = if address.contains(':') {
                "[::]:0"
            } else {
                "0.0.0.0:0"
            };
            let socket = UdpSocket::bind(any).expect("a socket");
            socket.send_to(b"x", (*address, *port)).expect("a packet");
        }
    });
}

/// The connections to this port that the kernel tracks.
fn tracked(ns: &Namespace, port: u16) -> usize {
    let table = ns.enter(|| fs::read_to_string("/proc/thread-self/net/nf_conntrack"));
    let table = table.expect("the table");
    let to_port = format!(" dport={port} ");
    table.lines().filter(|line| line.contains(&to_port)).count()
}

fn dry_run(node: &Node) -> Run {
    let mut command = node.netfix_command(&[], "upgrade --dry-run --no-pause -o json");
    Run::of(command.args(["--", "true"])).exits(0)
}

#[test]
fn a_dry_run_and_a_rehearsal_count_the_connections_whose_translated_source_is_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (of_host, of_pod) = (client_of(&node.ns), client_of(&pods[0].ns));
    node.snapshot();
    dry_run(&node).has_no("unsupported");
    // A connection of its own has its own source.
    send(&node.ns, &[(GATEWAY4, 9)]);
    send(&of_host, &[("10.60.0.1", 9)]);
    dry_run(&node).has_no("unsupported");
    let to = [(GATEWAY4, 7), (GATEWAY4, 9), (GATEWAY4, 9), (GATEWAY6, 9)];
    send(&of_host, &to);
    send(&of_pod, &[(GATEWAY4, 9)]);
    let run = dry_run(&node);
    assert_eq!(run.coded("unsupported").len(), 2, "{}", run.transcript());
    for run in [run, node.netfix_json("check --rehearse")] {
        let run = run.names("unsupported", "", &["conntrack", "4 connections"]);
        run.names(
            "unsupported",
            pods[0].name(),
            &["conntrack", "1 connection"],
        );
    }
    node.netfix("check --rehearse")
        .stdout_has(&["conntrack: 4 connections", "conntrack: 1 connection "]);
    node.netfix_json("check").has_no("unsupported");
    assert_eq!((tracked(&node.ns, 7), tracked(&pods[0].ns, 9)), (1, 1));
    node.lose();
    let left = (tracked(&node.ns, 7), tracked(&pods[0].ns, 9));
    // That to the host itself is left.
    assert_eq!((left, tracked(&node.ns, 9)), ((1, 0), 1));
}

/// A UDP socket behind a router that masquerades, and its peer at the gateway.
struct Flow {
    client: UdpSocket,
    server: UdpSocket,
    to: SocketAddr,
}

impl Flow {
    fn open(node: &Node, client: &Namespace, to: &str) -> Self {
        let any = if to.contains(':') {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        let bind = |ns: &Namespace| ns.enter(|| UdpSocket::bind(any)).expect("a socket");
        let (client, server) = (bind(client), bind(&node.gateway));
        let limit = Some(Duration::from_secs(5));
        server.set_read_timeout(limit).expect("a limit");
        let port = server.local_addr().expect("an address").port();
        let to = SocketAddr::new(to.parse().expect("an address"), port);
        Self { client, server, to }
    }

    /// Where the peer sees the next datagram.
    fn seen(&self) -> SocketAddr {
        let mut text = [0; 4];
        self.server.set_nonblocking(true).expect("a socket");
        while self.server.recv_from(&mut text).is_ok() {}
        self.server.set_nonblocking(false).expect("a socket");
        self.client.send_to(b"last", self.to).expect("a packet");
        let (_, from) = self.server.recv_from(&mut text).expect("the packet");
        from
    }
}

#[test]
fn a_window_restores_masqueraded_connections_of_the_host_and_of_pods() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    pods[0].ip(&format!(
        "addr add {}/64 dev eth0 nodad",
        pods[0].address6()
    ));
    // A tentative address is no source.
    let is_tentative = || node.ns.ip("addr show dev eth0").contains("tentative");
    assert!(wait_until(|| !is_tentative()));
    let clients = [
        client_with(&node.ns, RANDOM_RULES),
        client_with(&pods[0].ns, RANDOM_RULES),
    ];
    let (mut connections, mut flows) = (Vec::new(), Vec::new());
    for client in &clients {
        for to in [GATEWAY4, "10.60.9.9"] {
            let mut connection = Connection::from(&node, client, to);
            connection.carries("before").expect("a connection");
            connections.push(connection);
        }
        for to in [GATEWAY4, GATEWAY6] {
            let flow = Flow::open(&node, client, to);
            let seen = flow.seen();
            flows.push((flow, seen));
        }
    }
    let gateway = node.gateway.name();
    let reload = format!(
        "ip link del eth0 && sleep 0.5 && ip link add eth0 address {PARENT_MAC} type veth peer name up0 netns {gateway} \
         && ip -n {gateway} link set up0 up && ip -n {gateway} addr add {GATEWAY4}/16 dev up0 \
         && ip -n {gateway} addr add {GATEWAY6}/64 dev up0 nodad"
    );
    let words = "upgrade --foreground --yes --no-pause --watch 0s --nic-wait 10s --answer-wait 2s";
    let mut command = node.netfix_command(&["timeout", "600"], words);
    let is_over = AtomicBool::new(false);
    // Clients that never stop: no packet may come before the entries.
    let run = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for (flow, _) in &flows {
                    let _ = flow.client.send_to(b"more", flow.to);
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        let run = Run::of(command.args(["--", "sh", "-c", &reload]));
        is_over.store(true, Ordering::Relaxed);
        run
    });
    let run = run.exits(0);
    run.stderr_has(&["8 masqueraded connections restored\n"]);
    for (flow, seen) in &flows {
        assert_eq!(flow.seen(), *seen, "to {}", flow.to);
    }
    for connection in &mut connections {
        connection.carries("after").expect("the connection");
    }
}
