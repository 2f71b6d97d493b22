//! Random lines for ip(8) and tc(8), of everything that netfix restores.

mod blows;
mod daemons;
mod host;
mod link_local;
mod owners;
mod prefixes;
mod routes;
mod traffic;

use super::case::{Case, Loss};
use crate::common::numbers::Numbers;
use routes::{nexthop, route, rule};

impl Numbers {
    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let at = self.below(all.len() as u64);
        all[usize::try_from(at).expect("a small number")]
    }

    /// Some of the words, one of `count` each.
    fn some(&mut self, count: u64, all: &[&str]) -> String {
        let mut words = String::new();
        for word in all {
            if self.one_in(count) {
                words.push(' ');
                words.push_str(word);
            }
        }
        words
    }
}

pub(super) fn case(seed: u64) -> Case {
    let mut numbers = Numbers::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let n = &mut numbers;
    for _ in 0..8 {
        n.below(2);
    }
    let kind = n.of(&[
        "",
        "",
        "",
        "macvtap mode bridge",
        "ipvlan mode l2",
        "ipvlan mode l3 vepa",
        "vlan id 7",
    ]);
    let kind = kind.to_owned();
    let parent = n.of(&["", "", "eth0.3", "bond4", "bond4.3"]).to_owned();
    let second = n.one_in(3);
    let wire = n.one_in(4);
    let mut lines = lines(n, second || wire);
    let host = if parent.starts_with("bond") || !n.one_in(3) {
        Vec::new()
    } else {
        host::lines(n)
    };
    let loss = blows::loss(n);
    let mut host = host;
    if n.one_in(3) {
        lines.extend(daemons::lines(n));
        if !host.is_empty() {
            host.extend(daemons::lines(n).into_iter().map(host::own));
        }
    }
    if loss != Loss::None && n.one_in(8) {
        lines.push(unmade(n));
    }
    let harm = match loss {
        Loss::Nic | Loss::Late => Vec::new(),
        Loss::None => (0..=n.below(4))
            .flat_map(|_| blows::harm(n, &lines))
            .collect(),
    };
    let host_harm = if loss == Loss::None && !host.is_empty() {
        // No loss of a NIC takes the rules of the host.
        let of_nic: Vec<String> = host
            .iter()
            .filter(|it| !it.contains("rule ") && !super::daemons::adds(it))
            .cloned()
            .collect();
        (0..n.below(3))
            .filter_map(|_| blows::undone(n, &of_nic))
            .collect()
    } else {
        Vec::new()
    };
    let story = blows::story(n, loss, kind.is_empty() && parent.is_empty());
    Case {
        kind,
        parent,
        second,
        wire,
        dad: n.one_in(8),
        daemon: loss != Loss::None && n.one_in(2),
        host,
        lines,
        loss,
        harm,
        host_harm,
        story,
    }
}

fn lines(n: &mut Numbers, second: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if n.one_in(8) {
        lines.extend(link_local::secret(n));
    }
    let some = |n: &mut Numbers, limit, make: fn(&mut Numbers) -> String| -> Vec<String> {
        (0..n.below(limit)).map(|_| make(n)).collect()
    };
    lines.extend(some(n, 4, link));
    if n.one_in(3) {
        lines.extend(stack(n));
    }
    if n.one_in(8) {
        lines.push(link_local::by_hand(n));
    }
    if !n.one_in(12) {
        lines.push("link set eth0 up".to_owned());
    }
    lines.push("addr add 10.88.1.10/16 brd + dev eth0".to_owned());
    if n.one_in(2) {
        lines.push("addr add fd88::1:10/64 dev eth0".to_owned());
    }
    lines.extend(some(n, 6, address));
    if second && n.one_in(2) {
        lines.extend(prefixes::shared(n));
    }
    for (count, make) in [
        (6, link_local::several as fn(&mut Numbers) -> Vec<String>),
        (5, owners::manager),
        (5, owners::router),
    ] {
        if n.one_in(count) {
            lines.extend(make(n));
        }
    }
    lines.extend(some(n, 4, nexthop));
    lines.extend(some(n, 8, route));
    lines.extend(some(n, 4, rule));
    lines.extend(some(n, 3, neighbour));
    lines.extend(some(n, 4, setting));
    if n.one_in(2) {
        lines.extend(traffic::qdiscs(n));
    }
    if second && n.one_in(6) {
        lines.extend(prefixes::mirrored(n));
    }
    lines
}

fn link(n: &mut Numbers) -> String {
    let change = match n.below(17) {
        0 => format!("mtu {}", 1240 + n.below(261)),
        1 => format!("txqueuelen {}", n.below(3000)),
        2 => format!("alias {}", n.of(&["a", "caf\\xe9", "net-of-the-shop"])),
        3 => format!("group {}", n.below(9)),
        4 => format!("promisc {}", n.of(&["on", "off"])),
        5 => "allmulticast on".to_owned(),
        6 => "multicast off".to_owned(),
        7 => "arp off".to_owned(),
        8 => format!("addrgenmode {}", n.of(&["none", "eui64", "random"])),
        9 => format!("type macvlan mode {}", n.of(&["private", "vepa", "bridge"])),
        10 => format!("gso_max_size {}", 20_000 + n.below(30_000)),
        11 => format!("gro_max_size {}", 20_000 + n.below(30_000)),
        12 => n
            .of(&["dynamic on", "trailers off", "dynamic off"])
            .to_owned(),
        // The kernel's own groups end in 00:00:00:01 and the like: ip(8) would exit for one of them, in the middle of the batch.
        14 => return format!("maddr add 33:33:00:00:09:{:02x} dev eth0", n.below(9)),
        15 => "protodown on".to_owned(),
        13 => format!("broadcast 01:00:5e:00:00:{:02x}", n.below(9)),
        _ => return format!("link property add dev eth0 altname other{}", n.below(3)),
    };
    format!("link set eth0 {change}")
}

/// Links on the pod's own, and masters of them.
fn stack(n: &mut Numbers) -> Vec<String> {
    let lines: &[&str] = match n.below(5) {
        0 => &[
            "link add link eth0 name eth0.5 type vlan id 5",
            "link set eth0.5 up",
            "addr add 10.55.0.9/24 dev eth0.5",
        ],
        1 => &[
            "link add blue type vrf table 10",
            "link set blue up",
            "link set eth0 master blue",
        ],
        2 => &[
            "link add br0 type bridge",
            "link set br0 up",
            "link set eth0 master br0",
        ],
        3 => &[
            "link add link eth0 name sub0 type macvlan mode private",
            "link set sub0 up",
            "addr add 10.56.0.9/24 dev sub0",
        ],
        _ => &[
            "link set eth1 up",
            "addr add 10.57.0.9/24 dev eth1",
            "route add 10.58.0.0/16 via 10.57.0.1",
        ],
    };
    lines.iter().map(|line| (*line).to_owned()).collect()
}

/// The deletion of what the kernel made, and makes again on a new link.
fn unmade(n: &mut Numbers) -> String {
    let route = n.of(&[
        "broadcast 10.88.255.255 dev eth0 table local",
        "broadcast 10.9.0.255 dev eth0 table local",
        "local 10.88.1.10 dev eth0 table local",
        "10.88.0.0/16 dev eth0 proto kernel",
        "fd88::/64 dev eth0 proto kernel",
        "fe80::/64 dev eth0 proto kernel",
        "multicast ff00::/8 dev eth0 table local",
    ]);
    format!("route del {route}")
}

fn address(n: &mut Numbers) -> String {
    if n.one_in(40) {
        let group = n.of(&["239.7.7.7/32", "ff05::99/128"]);
        return format!("addr add {group} dev eth0 autojoin");
    }
    if n.one_in(2) {
        let ip = match n.below(3) {
            0 => format!("10.88.1.{}/16", 20 + n.below(5)),
            1 => format!("10.9.0.{}/24", 1 + n.below(9)),
            _ => format!("10.9.{}.7/{}", n.below(3), n.of(&["25", "31", "32"])),
        };
        let scope = n.of(&["scope link", "scope host", "scope site"]);
        let more = n.some(
            5,
            &[
                "brd +",
                scope,
                "noprefixroute",
                "metric 77",
                "label eth0:one",
            ],
        );
        let lifetime = lease(n);
        return format!("addr add {ip} dev eth0{more}{lifetime}");
    }
    let ip = format!(
        "fd{}::{}/{}",
        10 + n.below(2),
        1 + n.below(9),
        n.of(&["64", "64", "64", "128", "48"])
    );
    let more = n.some(
        5,
        &["nodad", "home", "mngtmpaddr", "noprefixroute", "metric 77"],
    );
    let lifetime = if n.one_in(5) {
        " preferred_lft 0".to_owned()
    } else {
        lease(n)
    };
    format!("addr add {ip} dev eth0{more}{lifetime}")
}

/// The longer one ends during an hour, the shorter one in the time between two snapshots.
fn lease(n: &mut Numbers) -> String {
    let lease = n.of(&[
        "valid_lft 5000 preferred_lft 4000",
        "valid_lft 2000 preferred_lft 1000",
    ]);
    if n.one_in(6) {
        format!(" {lease}")
    } else {
        String::new()
    }
}

fn neighbour(n: &mut Numbers) -> String {
    let ip = match n.below(2) {
        0 => format!("10.88.0.{}", 50 + n.below(5)),
        _ => format!("fd88::{}", 50 + n.below(5)),
    };
    let more = n.some(4, &["proto static", "router", "extern_learn", "nud noarp"]);
    match n.below(4) {
        0 => format!("neigh add proxy {ip} dev eth0"),
        1 => format!("neigh add {ip} dev eth0 managed"),
        _ => format!("neigh add {ip} lladdr 02:00:00:00:00:99 dev eth0{more}"),
    }
}

fn setting(n: &mut Numbers) -> String {
    let (key, limit) = match n.below(10) {
        0 => ("ipv4/conf/eth0/arp_notify", 2),
        1 => ("ipv4/conf/eth0/rp_filter", 3),
        2 => ("ipv4/conf/eth0/promote_secondaries", 2),
        3 => ("ipv4/neigh/eth0/gc_stale_time", 90),
        4 => ("ipv6/conf/eth0/accept_ra", 3),
        5 => ("ipv6/conf/eth0/ndisc_notify", 2),
        6 => ("ipv6/conf/eth0/force_tllao", 2),
        7 => ("ipv6/conf/eth0/keep_addr_on_down", 2),
        8 => ("ipv6/conf/eth0/ra_honor_pio_life", 2),
        _ => ("ipv6/neigh/eth0/ucast_solicit", 9),
    };
    format!("sysctl {key} {}", n.below(limit))
}
