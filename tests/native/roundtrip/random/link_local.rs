//! Link-local addresses: those of a program beside the kernel's, and the ways in which the kernel makes its own.

use super::Numbers;

/// Before the link is up: the kernel hides the MAC in its address.
pub(super) fn secret(n: &mut Numbers) -> Vec<String> {
    let mut lines = vec![format!(
        "sysctl ipv6/conf/eth0/stable_secret 2001:db8::b1{}",
        n.below(9)
    )];
    if n.one_in(3) {
        let mode = n.of(&["none", "eui64", "stable_secret", "random"]);
        lines.push(format!("link set eth0 addrgenmode {mode}"));
    }
    lines
}

pub(super) fn by_hand(n: &mut Numbers) -> String {
    let more = n.some(4, &["nodad", "metric 77", "noprefixroute"]);
    let lifetime = n.some(6, &["valid_lft 5000 preferred_lft 4000"]);
    format!(
        "addr add fe80::{}/{} dev eth0{more}{lifetime}",
        1 + n.below(5),
        n.of(&["64", "64", "10", "128"])
    )
}

/// A router's: one or two, and sometimes without the kernel's.
pub(super) fn several(n: &mut Numbers) -> Vec<String> {
    let mut lines: Vec<String> = (0..=n.below(2)).map(|_| by_hand(n)).collect();
    if n.one_in(4) {
        // What the kernel made before a program had its way.
        lines.insert(0, "-6 addr flush dev eth0 scope link".to_owned());
    }
    if n.one_in(4) {
        let mode = n.of(&["none", "eui64", "random"]);
        lines.push(format!("link set eth0 addrgenmode {mode}"));
    }
    lines
}
