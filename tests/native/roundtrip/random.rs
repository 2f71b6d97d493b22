//! Random lines for ip(8) and tc(8), of everything that netfix restores.

use super::numbers::Numbers;
use super::{Case, Loss};

impl Numbers {
    fn one_in(&mut self, count: u64) -> bool {
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
    let mut lines = Vec::new();
    for _ in 0..n.below(4) {
        lines.push(link(n));
    }
    if n.one_in(3) {
        lines.extend(stack(n));
    }
    if !n.one_in(12) {
        lines.push("link set eth0 up".to_owned());
    }
    lines.push("addr add 10.88.1.10/16 brd + dev eth0".to_owned());
    if n.one_in(2) {
        lines.push("addr add fd88::1:10/64 dev eth0".to_owned());
    }
    for _ in 0..n.below(6) {
        lines.push(address(n));
    }
    for _ in 0..n.below(4) {
        lines.push(nexthop(n));
    }
    for _ in 0..n.below(8) {
        lines.push(route(n));
    }
    for _ in 0..n.below(4) {
        lines.push(rule(n));
    }
    for _ in 0..n.below(3) {
        lines.push(neighbour(n));
    }
    for _ in 0..n.below(4) {
        lines.push(setting(n));
    }
    if n.one_in(2) {
        lines.extend(qdiscs(n));
    }
    let loss = if n.one_in(2) { Loss::Nic } else { Loss::None };
    let harm = match loss {
        Loss::Nic => Vec::new(),
        Loss::None => (0..=n.below(4)).map(|_| harm(n, &lines)).collect(),
    };
    Case {
        kind,
        parent,
        second,
        lines,
        loss,
        harm,
    }
}

fn link(n: &mut Numbers) -> String {
    let change = match n.below(16) {
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

fn address(n: &mut Numbers) -> String {
    if n.one_in(2) {
        let ip = match n.below(3) {
            0 => format!("10.88.1.{}/16", 20 + n.below(5)),
            1 => format!("10.9.0.{}/24", 1 + n.below(9)),
            _ => format!("10.9.{}.7/{}", n.below(3), n.of(&["25", "31", "32"])),
        };
        let more = n.some(
            5,
            &[
                "brd +",
                "scope link",
                "noprefixroute",
                "metric 77",
                "label eth0:one",
            ],
        );
        let lifetime = n.some(6, &["valid_lft 5000 preferred_lft 4000"]);
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
    let lifetime = n.some(5, &["valid_lft 5000 preferred_lft 4000", "preferred_lft 0"]);
    format!("addr add {ip} dev eth0{more}{lifetime}")
}

fn nexthop(n: &mut Numbers) -> String {
    let id = 1 + n.below(5);
    let what = match n.below(7) {
        0 => "blackhole".to_owned(),
        1 => "dev eth0".to_owned(),
        2 => "via 192.0.2.1 dev eth0 onlink".to_owned(),
        3 => format!("via fd88::{} dev eth0", 1 + n.below(4)),
        4 => format!(
            "group {},{}/{}",
            1 + n.below(5),
            1 + n.below(9),
            1 + n.below(5)
        ),
        5 => format!(
            "group {} type resilient buckets 8 idle_timer 30",
            1 + n.below(5)
        ),
        _ => format!("via 10.88.0.{} dev eth0", 1 + n.below(4)),
    };
    let more = n.some(4, &["protocol static"]);
    format!("nexthop add id {id} {what}{more}")
}

fn route(n: &mut Numbers) -> String {
    if n.one_in(5) {
        let to = n.of(&["default", "172.16.0.0/12", "172.17.0.0/16"]);
        let metric = n.some(3, &["metric 7"]);
        return format!("route append {to}{metric} nhid {}", 1 + n.below(5));
    }
    let verb = n.of(&["add", "add", "append", "prepend"]);
    let table = n.some(5, &["table 100", "table 70000"]);
    let metric = n.some(3, &["metric 7"]);
    if n.one_in(2) {
        let to = n.of(&["default", "172.16.0.0/12", "172.17.0.0/16", "172.18.0.9"]);
        let kind = n.of(&["", "", "", "", "blackhole", "unreachable"]);
        if !kind.is_empty() {
            return format!("route {verb} {kind} {to}{table}{metric}");
        }
        let way = match n.below(6) {
            0 => "dev eth0".to_owned(),
            1 => format!("via 203.0.113.{} dev eth0 onlink", 1 + n.below(3)),
            2 => format!(
                "nexthop via 10.88.0.{} dev eth0 weight 2 nexthop via 10.88.0.9 dev eth0",
                1 + n.below(3)
            ),
            3 => "via inet6 fd88::1 dev eth0".to_owned(),
            _ => format!("via 10.88.0.{} dev eth0", 1 + n.below(4)),
        };
        let more = n.some(
            6,
            &[
                "proto static",
                "tos 0x10",
                "realms 4/7",
                "mtu 1300",
                "initcwnd 20",
                "src 10.88.1.10",
            ],
        );
        return format!("route {verb} {to}{more}{table}{metric} {way}");
    }
    let to = n.of(&["default", "fd50::/32", "fd51::/64", "fd52::9/128"]);
    let way = match n.below(5) {
        0 => "dev eth0".to_owned(),
        1 => "via fe80::1 dev eth0".to_owned(),
        2 => "nexthop via fd88::1 dev eth0 nexthop via fd88::9 dev eth0".to_owned(),
        _ => format!("via fd88::{} dev eth0", 1 + n.below(4)),
    };
    let more = n.some(
        6,
        &["proto static", "pref high", "mtu 1300", "expires 5000"],
    );
    format!("-6 route {verb} {to}{more}{table}{metric} {way}")
}

fn rule(n: &mut Numbers) -> String {
    let family = n.of(&["", "-6 "]);
    let pref = 100 + n.below(3);
    let what = match n.below(6) {
        0 => format!("fwmark {}", 1 + n.below(4)),
        1 => n.of(&["iif eth0", "oif eth0", "iif gone0"]).to_owned(),
        2 => format!("ipproto tcp dport {}", 440 + n.below(4)),
        3 => "ipproto udp sport 53-60".to_owned(),
        4 => "uidrange 1000-2000".to_owned(),
        _ => "not fwmark 9".to_owned(),
    };
    let action = n.of(&[
        "lookup 100",
        "lookup 100",
        "lookup 70000",
        "prohibit",
        "goto 32766",
    ]);
    format!("{family}rule add pref {pref} {what} {action}")
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

/// A tree of qdiscs, or some of its parts alone, which the kernel may refuse.
fn qdiscs(n: &mut Numbers) -> Vec<String> {
    let root = match n.below(6) {
        0 => format!(
            "tbf rate {}kbit burst {} latency 50ms",
            100 + n.below(90_000),
            1600 + n.below(9000)
        ),
        1 => format!("pfifo limit {}", 1 + n.below(90)),
        2 => format!("bfifo limit {}", 2000 + n.below(90_000)),
        _ => format!("htb default {} r2q {}", n.below(5), 1 + n.below(20)),
    };
    let mut lines = Vec::new();
    if !n.one_in(4) {
        let handle = n.of(&["handle 1:", "handle 1:", "handle 1:", ""]);
        lines.push(format!("tc qdisc add dev eth0 root {handle} {root}"));
    }
    if n.one_in(3) {
        let kind = n.of(&["clsact", "ingress"]);
        lines.push(format!("tc qdisc add dev eth0 {kind}"));
    }
    for class in 1..=n.below(5) {
        let above = n.of(&["1:", "1:1", "1:2"]);
        let rate = 10 + n.below(90_000);
        let more = n.some(
            4,
            &[
                "ceil 100mbit",
                "burst 9k",
                "cburst 8k",
                "prio 2",
                "quantum 4000",
                "overhead 4",
            ],
        );
        lines.push(format!(
            "tc class add dev eth0 parent {above} classid 1:{class} htb rate {rate}kbit{more}"
        ));
        if n.one_in(2) {
            let child = n.of(&[
                "pfifo limit 9",
                "bfifo limit 9000",
                "tbf rate 1mbit burst 5k latency 20ms",
            ]);
            lines.push(format!(
                "tc qdisc add dev eth0 parent 1:{class} handle {class}0: {child}"
            ));
        }
    }
    for _ in 0..n.below(5) {
        let place = n.of(&["parent 1:", "parent 1:", "parent 1:1", "ingress", "egress"]);
        let pref = 1 + n.below(6);
        let ip = n.below(250);
        let more = n.of(&[
            "flowid 1:1",
            "flowid 1:2",
            "flowid 1:2 action mirred egress mirror dev lo",
        ]);
        let matched = n.of(&["match ip dport 53 0xffff", "match ip tos 16 0xff", ""]);
        let chain = n.some(6, &["chain 5"]);
        lines.push(format!(
            "tc filter add dev eth0 {place} protocol ip pref {pref}{chain} u32 match ip dst 10.1.2.{ip}/32 {matched} {more}"
        ));
    }
    lines
}

/// What a pod may suffer while its link stays: an object is deleted, or changed.
fn harm(n: &mut Numbers, lines: &[String]) -> String {
    let at = usize::try_from(n.below(lines.len() as u64)).expect("a small number");
    let line = &lines[at];
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
            return line.replacen(add, delete, 1);
        }
    }
    if lines.iter().any(|line| line.contains(" alias ")) && n.one_in(4) {
        return "link set eth0 alias changed".to_owned();
    }
    n.of(&[
        "addr flush dev eth0",
        "-6 addr flush dev eth0",
        "-4 route flush dev eth0",
        "-6 route flush dev eth0",
        "link set eth0 down",
        "link set eth0 mtu 1300",
        "link set eth0 mtu 1200",
        "link set eth0 address 02:00:00:00:00:77",
        "link set eth0 promisc on",
        "tc qdisc change dev eth0 root handle 1: pfifo limit 5",
        "tc class change dev eth0 classid 1:1 htb rate 3mbit",
        "sysctl ipv4/conf/eth0/arp_notify 0",
        "sysctl ipv6/conf/eth0/accept_ra 1",
    ])
    .to_owned()
}
