//! Per-interface sysctls, and that they are set before the interface sends its first packet.

use std::time::Duration;

use crate::common::background::tcpdump;
use crate::common::{Node, Pod};

fn comes_back(settings: &[(&str, &str)]) {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    for (key, value) in settings {
        pod.ns.set_sysctl(key, value);
    }
    pod.up_with_address();
    node.assert_all_survive_a_loss(&[pod]);
}

#[test]
fn ipv4_settings_come_back() {
    comes_back(&[
        ("ipv4/conf/eth0/arp_notify", "1"),
        ("ipv4/conf/eth0/arp_ignore", "2"),
        ("ipv4/conf/eth0/arp_announce", "2"),
        ("ipv4/conf/eth0/rp_filter", "2"),
        ("ipv4/conf/eth0/forwarding", "1"),
        ("ipv4/conf/eth0/proxy_arp", "1"),
        ("ipv4/conf/eth0/route_localnet", "1"),
        ("ipv4/conf/eth0/send_redirects", "0"),
        ("ipv4/conf/eth0/promote_secondaries", "1"),
    ]);
}

#[test]
fn ipv6_settings_come_back() {
    comes_back(&[
        ("ipv6/conf/eth0/accept_ra", "0"),
        ("ipv6/conf/eth0/autoconf", "0"),
        ("ipv6/conf/eth0/ndisc_notify", "1"),
        ("ipv6/conf/eth0/hop_limit", "33"),
        ("ipv6/conf/eth0/use_tempaddr", "2"),
        ("ipv6/conf/eth0/accept_dad", "0"),
        ("ipv6/conf/eth0/mtu", "1400"),
    ]);
}

#[test]
fn ipv6_forwarding_of_one_interface_comes_back() {
    comes_back(&[("ipv6/conf/eth0/forwarding", "1")]);
}

#[test]
fn disabled_ipv6_stays_disabled() {
    comes_back(&[("ipv6/conf/eth0/disable_ipv6", "1")]);
}

#[test]
fn a_stable_secret_and_the_address_made_from_it_come_back() {
    comes_back(&[(
        "ipv6/conf/eth0/stable_secret",
        "2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff",
    )]);
}

#[test]
fn an_interface_without_a_link_local_address_is_restored_without_one() {
    comes_back(&[("ipv6/conf/eth0/addr_gen_mode", "1")]);
}

#[test]
fn an_address_mode_other_than_the_stable_secrets_comes_back() {
    comes_back(&[
        ("ipv6/conf/eth0/stable_secret", "2001:db8::1"),
        ("ipv6/conf/eth0/addr_gen_mode", "0"),
    ]);
}

#[test]
fn neighbour_settings_of_the_interface_come_back() {
    comes_back(&[
        ("ipv4/neigh/eth0/gc_stale_time", "77"),
        ("ipv6/neigh/eth0/retrans_time_ms", "500"),
    ]);
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

/// What the pod sends during the restore and three seconds after it, as tcpdump prints it at the
/// gateway.
fn heard_during_a_restore(node: &Node, pod: &Pod<'_>, filter: &str) -> Vec<String> {
    node.snapshot();
    node.lose_and_reload();
    let tcpdump = tcpdump(node, filter);
    node.restore();
    std::thread::sleep(Duration::from_secs(3));
    let sender = format!("{} > ", pod.mac());
    tcpdump
        .text()
        .lines()
        .filter(|line| line.contains(&sender))
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_pod_that_ignores_router_advertisements_solicits_none_while_it_is_restored() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    pod.up_with_address();
    let lines = heard_during_a_restore(&node, &pod, "icmp6 and ip6[40] == 133");
    assert!(
        lines.is_empty(),
        "the pod solicited routers:\n{}",
        lines.join("\n")
    );
}

#[test]
fn a_pod_with_ipv6_disabled_sends_no_ipv6_while_it_is_restored() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ns.set_sysctl("ipv6/conf/eth0/disable_ipv6", "1");
    pod.up_with_address();
    let lines = heard_during_a_restore(&node, &pod, "ip6");
    assert!(
        lines.is_empty(),
        "the pod spoke IPv6:\n{}",
        lines.join("\n")
    );
}

#[test]
fn show_compares_a_setting_with_the_value_of_a_new_link() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "");
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    pod.up_with_address();
    node.snapshot();
    node.netfix(&format!("show {}", pod.name()))
        .exits(0)
        .stdout_has(&["net/ipv4/conf/eth0/arp_notify = 1 (a new link has 0)"])
        .lacks("(now 0)");
}
