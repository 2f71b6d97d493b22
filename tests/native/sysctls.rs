//! Per-interface sysctls, and that they are set before the interface sends its first packet.

use std::time::Duration;

use crate::common::background::tcpdump;
use crate::common::{Node, Pod};

/// Each row is a pod.
const SETTINGS: [&[(&str, &str)]; 8] = [
    &[
        ("ipv4/conf/eth0/arp_notify", "1"),
        ("ipv4/conf/eth0/arp_ignore", "2"),
        ("ipv4/conf/eth0/arp_announce", "2"),
        ("ipv4/conf/eth0/rp_filter", "2"),
        ("ipv4/conf/eth0/forwarding", "1"),
        ("ipv4/conf/eth0/proxy_arp", "1"),
        ("ipv4/conf/eth0/route_localnet", "1"),
        ("ipv4/conf/eth0/send_redirects", "0"),
        ("ipv4/conf/eth0/promote_secondaries", "1"),
    ],
    &[
        ("ipv6/conf/eth0/accept_ra", "0"),
        ("ipv6/conf/eth0/autoconf", "0"),
        ("ipv6/conf/eth0/ndisc_notify", "1"),
        ("ipv6/conf/eth0/hop_limit", "33"),
        ("ipv6/conf/eth0/use_tempaddr", "2"),
        ("ipv6/conf/eth0/accept_dad", "0"),
        ("ipv6/conf/eth0/mtu", "1400"),
    ],
    &[("ipv6/conf/eth0/forwarding", "1")],
    &[("ipv6/conf/eth0/disable_ipv6", "1")],
    &[(
        "ipv6/conf/eth0/stable_secret",
        "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff",
    )],
    // No link-local address.
    &[("ipv6/conf/eth0/addr_gen_mode", "1")],
    // Another mode than the secret's.
    &[
        ("ipv6/conf/eth0/stable_secret", "2001:db8::1"),
        ("ipv6/conf/eth0/addr_gen_mode", "0"),
    ],
    &[
        ("ipv4/neigh/eth0/gc_stale_time", "77"),
        ("ipv6/neigh/eth0/retrans_time_ms", "500"),
    ],
];

fn with_settings<'n>(node: &'n Node, name: &str, settings: &[(&str, &str)]) -> Pod<'n> {
    let pod = node.pod(name);
    pod.macvlan("mode bridge", "");
    for (key, value) in settings {
        pod.ns.set_sysctl(key, value);
    }
    pod.up_with_address();
    pod
}

#[test]
fn settings_of_every_kind_come_back() {
    let node = Node::new();
    let rows = (1..).zip(SETTINGS);
    let pods = rows.map(|(row, settings)| with_settings(&node, &format!("row{row}-"), settings));
    node.assert_all_survive_a_loss(&pods.collect::<Vec<_>>());
}

#[test]
fn a_default_changed_after_the_creation_of_an_interface_does_not_affect_it() {
    let node = Node::new();
    let pod = node.pod("web").simple();
    pod.ns.set_sysctl("ipv4/conf/default/arp_notify", "1");
    pod.ns.set_sysctl("ipv6/conf/default/accept_ra", "0");
    pod.ns.set_sysctl("ipv6/conf/default/hop_limit", "99");
    node.assert_all_survive_a_loss(&[pod]);
}

/// One pod ignores router advertisements, the other has no IPv6: nothing is sent before the settings are there.
#[test]
fn restored_pods_solicit_no_router_and_send_no_ipv6_if_their_settings_say_so() {
    let node = Node::new();
    let deaf = with_settings(&node, "deaf", &[("ipv6/conf/eth0/accept_ra", "0")]);
    let without = with_settings(&node, "without", &[("ipv6/conf/eth0/disable_ipv6", "1")]);
    node.snapshot();
    node.lose_and_reload();
    let tcpdump = tcpdump(&node, "ip6");
    node.restore();
    std::thread::sleep(Duration::from_secs(3));
    let text = tcpdump.text();
    let sent = |pod: &Pod<'_>| {
        let sender = format!("{} > ", pod.mac());
        let lines = text.lines().filter(move |line| line.contains(&sender));
        lines.collect::<Vec<_>>()
    };
    let solicits = |line: &&str| line.contains("router solicitation");
    assert!(!sent(&deaf).iter().any(solicits), "{text}");
    assert!(sent(&without).is_empty(), "{text}");
}
