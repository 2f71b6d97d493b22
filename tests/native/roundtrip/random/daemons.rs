//! What routing daemons and keepalived add, and what others add over that.

use super::Numbers;

/// zebra, bird, keepalived, babel, openr, bgp, ospf, mrouted and the last of FRR; and some that are no daemons': dhcp, static, others.
const PROTOCOLS: [&str; 14] = [
    "11", "12", "18", "42", "99", "186", "188", "17", "198", "16", "4", "199", "43", "185",
];

/// On a pod or the host.
pub(super) fn lines(n: &mut Numbers) -> Vec<String> {
    (0..=n.below(5)).flat_map(|_| some(n)).collect()
}

fn some(n: &mut Numbers) -> Vec<String> {
    let proto = format!("proto {}", n.of(&PROTOCOLS));
    let metric = n.some(2, &["metric 20"]);
    let host = 1 + n.below(4);
    match n.below(13) {
        0 => vec![format!(
            "route add 10.61.{host}.0/24 via 10.88.0.{host} {proto}{metric}"
        )],
        1 => {
            let verb = n.of(&["add", "append", "prepend"]);
            vec![format!(
                "route {verb} default via 10.88.0.{host} {proto}{metric}"
            )]
        }
        2 => over(
            n,
            format!("route add 10.67.0.0/24 dev eth0 scope link {proto}"),
            "route add 10.68.0.0/16 via 10.67.0.1",
        ),
        3 => over(
            n,
            format!("-6 route add fd67::/64 dev eth0 {proto}{metric}"),
            "-6 route add fd68::/48 via fd67::1 dev eth0",
        ),
        4 => vec![format!(
            "route add 10.62.0.0/16 {proto}{metric} nexthop via 10.88.0.{host} dev eth0 nexthop via 10.88.0.9 dev eth0"
        )],
        5 => {
            let more = n.some(3, &["router", "extern_learn", "nud noarp"]);
            vec![format!(
                "neigh add 10.88.0.{} lladdr 02:00:00:00:00:98 dev eth0 {proto}{more}",
                60 + host
            )]
        }
        6 => vec![format!(
            "neigh add fd88::{} dev eth0 {proto} managed",
            60 + host
        )],
        7 => {
            let id = 5 + n.below(3);
            let own = n.of(&["", &proto]).to_owned();
            let to = n.of(&["10.63.0.0/16", "10.64.0.0/16"]);
            vec![
                format!("nexthop add id {id} via 10.88.0.{host} dev eth0 {proto}"),
                format!("route add {to}{metric} nhid {id} {own}"),
            ]
        }
        8 => {
            let id = 5 + n.below(3);
            vec![
                format!("nexthop add id {id} via 10.88.0.{host} dev eth0 {proto}"),
                format!("nexthop add id 9 group {id} {}", n.of(&["", &proto])),
                format!("route add 10.65.0.0/16 nhid 9 {}", n.of(&["", &proto])),
            ]
        }
        9 => {
            let length = n.of(&["24", "32"]);
            let route = n.of(&[
                "route add 10.78.0.0/16 via 10.77.0.1",
                "route add 10.79.0.0/16 via 10.88.0.1 src 10.77.0.5",
            ]);
            over(
                n,
                format!("address 10.77.0.5/{length} eth0 {}", &proto[6..]),
                route,
            )
        }
        10 => over(
            n,
            format!("address fd78::5/64 eth0 {}", &proto[6..]),
            "-6 route add fd79::/48 via fd78::1 dev eth0",
        ),
        11 => {
            let id = n.of(&["8", "10"]);
            vec![
                format!("route add 10.67.0.0/24 dev eth0 scope link {proto}"),
                format!(
                    "nexthop add id 8 via 10.67.0.1 dev eth0 {}",
                    n.of(&["", &proto])
                ),
                "nexthop add id 10 group 8".to_owned(),
                format!("route add 10.69.0.0/16 nhid {id}"),
            ]
        }
        _ => vec![
            format!("route add blackhole 10.66.0.0/16 {proto}"),
            format!("rule add pref 109 fwmark 7 lookup 100 {proto}"),
        ],
    }
}

/// An object, and in some cases one that needs it.
fn over(n: &mut Numbers, line: String, upon: &str) -> Vec<String> {
    let mut lines = vec![line];
    if n.one_in(2) {
        lines.push(upon.to_owned());
    }
    lines
}
