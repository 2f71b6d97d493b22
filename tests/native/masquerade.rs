//! Connections with a translated source: a dry run counts them, and the masqueraded ones end with the link. Judged by the table of the
//! kernel, which another part of it shows.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;

use crate::common::namespace::Namespace;
use crate::common::{GATEWAY4, GATEWAY6, Node, Run};

/// `snat` survives the link, and is not to be distinguished by the dump.
const RULES: &str = "add table inet nat
    add chain inet nat post { type nat hook postrouting priority 100 ; }
    add rule inet nat post oifname eth0 udp dport 7 snat ip to 10.88.0.2
    add rule inet nat post oifname eth0 udp dport 9 masquerade";

/// A namespace that routes and masquerades for another one, which is made here.
fn client_of(ns: &Namespace) -> Namespace {
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
    let status = nft.arg(RULES).stdin(Stdio::null()).status();
    assert!(status.expect("nft").success());
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
fn a_dry_run_counts_the_connections_of_host_and_pods_whose_translated_source_is_lost() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (of_host, of_pod) = (client_of(&node.ns), client_of(&pods[0].ns));
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
    let run = run.names("unsupported", "", &["conntrack", "4 connections"]);
    run.names(
        "unsupported",
        pods[0].name(),
        &["conntrack", "1 connection"],
    );
    assert_eq!((tracked(&node.ns, 7), tracked(&pods[0].ns, 9)), (1, 1));
    node.lose();
    let left = (tracked(&node.ns, 7), tracked(&pods[0].ns, 9));
    // That to the host itself is left.
    assert_eq!((left, tracked(&node.ns, 9)), ((1, 0), 1));
}
