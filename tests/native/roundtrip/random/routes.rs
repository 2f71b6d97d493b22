//! Nexthop objects, routes and rules.

use super::Numbers;

pub(super) fn nexthop(n: &mut Numbers) -> String {
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

pub(super) fn route(n: &mut Numbers) -> String {
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
                "proto dhcp",
                "scope site",
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

pub(super) fn rule(n: &mut Numbers) -> String {
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
