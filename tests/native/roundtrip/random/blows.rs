//! What a pod suffers, and what happens around it.

use super::super::case::{Chapter, Loss};
use super::Numbers;

pub(super) fn loss(n: &mut Numbers) -> Loss {
    match n.below(8) {
        0..3 => Loss::Nic,
        3 | 4 => Loss::Late,
        _ => Loss::None,
    }
}

/// What happens around a loss of the NIC. `is_plain`: the pod has a macvlan on the NIC itself, which a person can make again.
pub(super) fn story(n: &mut Numbers, loss: Loss, is_plain: bool) -> Vec<Chapter> {
    let mut story = Vec::new();
    if n.one_in(6) {
        story.push(Chapter::Renewed);
    }
    if loss == Loss::None {
        return story;
    }
    for (chapter, count) in [(Chapter::Young, 10), (Chapter::Flap, 5)] {
        if n.one_in(count) {
            story.push(chapter);
        }
    }
    if is_plain && n.one_in(6) {
        story.push(Chapter::Half);
    }
    if n.one_in(5) {
        story.push(Chapter::Twice);
        if n.one_in(2) {
            story.push(Chapter::Saved);
        }
    }
    story
}

/// The deletion of what one of the lines added.
pub(super) fn undone(n: &mut Numbers, lines: &[String]) -> Option<String> {
    let at = usize::try_from(n.below(lines.len().max(1) as u64)).expect("a small number");
    let line = lines.get(at)?;
    for (add, delete) in [
        ("addr add ", "addr del "),
        ("rule add ", "rule del "),
        ("neigh add ", "neigh del "),
        ("route add ", "route del "),
        ("route append ", "route del "),
        ("route prepend ", "route del "),
        ("tc qdisc add ", "tc qdisc del "),
        ("tc class add ", "tc class del "),
        ("tc filter add ", "tc filter del "),
    ] {
        if line.contains(add) {
            return Some(line.replacen(add, delete, 1));
        }
    }
    None
}

/// What a pod may suffer while its link stays: an object is deleted, or changed.
pub(super) fn harm(n: &mut Numbers, lines: &[String]) -> Vec<String> {
    if let Some(undone) = undone(n, lines) {
        return vec![undone];
    }
    if lines.iter().any(|line| line == "link set eth0 up") && n.one_in(4) {
        // The kernel drops routes and IPv6 addresses.
        return ["down", "up"]
            .map(|state| format!("link set eth0 {state}"))
            .to_vec();
    }
    if lines.iter().any(|line| line.contains(" alias ")) && n.one_in(4) {
        return vec!["link set eth0 alias changed".to_owned()];
    }
    let harm = n.of(&[
        "addr flush dev eth0",
        "-6 addr flush dev eth0",
        "-4 route flush dev eth0",
        "-6 route flush dev eth0",
        "-4 route flush table all dev eth0",
        "-6 route flush table all dev eth0",
        "-4 route flush table local dev eth0",
        "-6 route flush table local dev eth0",
        "neigh flush dev eth0 nud permanent",
        "link set eth0 down",
        "link set eth0 addrgenmode none",
        "link del eth0",
        "link set eth0 mtu 1300",
        "link set eth0 mtu 1200",
        "link set eth0 address 02:00:00:00:00:77",
        "link set eth0 promisc on",
        "tc qdisc change dev eth0 root handle 1: pfifo limit 5",
        "tc class change dev eth0 classid 1:1 htb rate 3mbit",
        "sysctl ipv4/conf/eth0/arp_notify 0",
        "sysctl ipv6/conf/eth0/accept_ra 1",
    ]);
    vec![harm.to_owned()]
}
