//! Rules: attributes of new kernels, and their order.

use super::{Victim, pods_with, victims};
use crate::common::{Node, Pod};

/// A rule for one port is added again, and rules of one priority keep their order.
pub fn a_port_and_the_order_of_one_priority(node: &Node) -> Vec<Victim<'_>> {
    let rows: [(&[&str], &[&str]); 2] = [
        (
            &[
                "rule add pref 100 ipproto tcp dport 443 lookup 100",
                "-6 rule add pref 100 ipproto udp sport 53 lookup 100",
            ],
            &["rule del pref 100", "-6 rule del pref 100"],
        ),
        (
            &[
                "rule add pref 100 from 10.88.1.10 lookup 100",
                "rule add pref 100 fwmark 7 lookup 101",
                "rule add pref 100 to 10.99.0.0/16 lookup 102",
            ],
            &["rule del pref 100 from 10.88.1.10 lookup 100"],
        ),
    ];
    victims(node, "rules", &rows)
}

pub fn every_attribute(node: &Node) -> Vec<Pod<'_>> {
    let row: &[&str] = &[
        "rule add pref 200 ipproto tcp dport 443-450 lookup 100",
        "rule add pref 201 from 10.88.1.0/24 to 10.99.0.0/16 lookup 100",
        "rule add pref 202 iif eth0 oif lo fwmark 0x7/0xff tos 0x10 lookup 100",
        "rule add pref 203 not fwmark 9 goto 32766",
        "rule add pref 204 from 10.88.1.10 lookup 100 realms 4/7",
        "rule add pref 205 tun_id 77 lookup 100",
        "rule add pref 206 lookup main suppress_prefixlength 0",
        "rule add pref 207 lookup main suppress_ifgroup 3",
        "rule add pref 208 uidrange 1000-2000 protocol static prohibit",
        "rule add pref 209 ipproto udp sport 53-60 dport 1000-2000 blackhole",
        "-6 rule add pref 210 l3mdev protocol 8",
        "-6 rule add pref 211 from fd88::/64 unreachable",
    ];
    pods_with(node, "rules", &[row])
}
