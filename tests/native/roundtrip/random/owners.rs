//! What programs add that owns a link: routes that say to be the kernel's, and what they read in advertisements themselves.

use super::Numbers;

/// `NetworkManager`: each address with `noprefixroute`, and its connected route by itself.
pub(super) fn manager(n: &mut Numbers) -> Vec<String> {
    let metric = n.of(&["100", "100", "425", "0"]);
    let host = 30 + n.below(4);
    let scope = n.of(&["scope link", "scope link", "scope link", ""]);
    let src = if n.one_in(4) {
        String::new()
    } else {
        format!(" src 10.88.1.{host}")
    };
    let mut lines = vec![
        format!("addr add 10.88.1.{host}/16 brd + dev eth0 noprefixroute"),
        format!("route add 10.88.0.0/16 dev eth0 proto kernel {scope}{src} metric {metric}"),
    ];
    if n.one_in(2) {
        let proto = n.of(&["dhcp", "static", "kernel"]);
        lines.push(format!(
            "route add default via 10.88.0.1 dev eth0 proto {proto} metric {metric}"
        ));
    }
    if n.one_in(3) {
        lines.push(format!(
            "route add 192.0.2.{} dev eth0 proto kernel scope link",
            1 + n.below(3)
        ));
    }
    if n.one_in(2) {
        let proto = n.of(&["kernel", "kernel", "ra"]);
        let metric = n.of(&["100", "1024", "256"]);
        lines.push(format!("addr add fd88::1:{host}/64 dev eth0 noprefixroute"));
        lines.push(format!(
            "-6 route add fd88::/64 dev eth0 proto {proto} metric {metric}"
        ));
    }
    lines
}

/// A program that evaluates advertisements, with the kernel's evaluation off.
pub(super) fn router(n: &mut Numbers) -> Vec<String> {
    let mut lines = Vec::new();
    if !n.one_in(4) {
        lines.push("sysctl ipv6/conf/eth0/accept_ra 0".to_owned());
    }
    for _ in 0..=n.below(3) {
        let metric = n.some(2, &["metric 512"]);
        let expires = n.some(3, &["expires 5000"]);
        lines.push(match n.below(7) {
            0 => format!("-6 route add default via fe80::1 dev eth0 proto ra{metric}{expires}"),
            1 => format!("-6 route add fd50::/32 via fe80::{} dev eth0 proto ra{metric}{expires}", 1 + n.below(2)),
            2 => format!("-6 route add fd51::/64 dev eth0 proto ra table 100{metric}"),
            3 => format!("-6 route add fd52::/64 proto ra{metric} nexthop via fe80::1 dev eth0 nexthop via fe80::2 dev eth0"),
            4 => format!("-6 route add fd77::/64 dev eth0 proto ra{metric}{expires}"),
            5 => "route add 172.16.0.0/12 via 10.88.0.1 proto ra".to_owned(),
            _ => "-6 route add fd53::/48 dev eth0 proto redirect".to_owned(),
        });
    }
    for _ in 0..n.below(3) {
        lines.push(match n.below(3) {
            0 => format!(
                "address fd77::{}/64 eth0 {}",
                1 + n.below(4),
                1 + n.below(4)
            ),
            1 => format!(
                "addr add fd77::{}/64 dev eth0 noprefixroute valid_lft 5000 preferred_lft 4000",
                1 + n.below(4)
            ),
            _ => format!(
                "addr add fd77::{}/64 dev eth0 mngtmpaddr valid_lft 5000 preferred_lft 4000",
                1 + n.below(4)
            ),
        });
    }
    lines
}
