//! Two links of a pod that concern each other.

use super::Numbers;

/// One prefix on both links: the kernel sends by the route that came first.
pub(super) fn shared(n: &mut Numbers) -> Vec<String> {
    let metric = n.some(5, &["metric 77"]);
    let mut lines = vec![
        "link set eth1 up".to_owned(),
        format!("addr add 10.88.1.{}/16 dev eth1{metric}", 60 + n.below(4)),
    ];
    if n.one_in(2) {
        lines.push(format!("addr add fd88::1:6{}/64 dev eth1", n.below(4)));
    }
    if n.one_in(3) {
        lines.push(format!("addr add 10.88.1.{}/16 dev eth0", 70 + n.below(4)));
    }
    if n.one_in(2) {
        let dev = n.of(&["eth0", "eth1"]);
        lines.push(format!("route append default via 10.88.0.1 dev {dev}"));
        lines.push("route append default via 10.88.0.1 dev eth1".to_owned());
    }
    if n.one_in(3) {
        lines.push("-6 route append default via fd88::1 dev eth1".to_owned());
    }
    if n.one_in(3) {
        // The other link becomes the later one.
        lines.push("addr del 10.88.1.10/16 dev eth0".to_owned());
        lines.push("addr add 10.88.1.10/16 brd + dev eth0".to_owned());
    }
    if n.one_in(4) {
        lines.push(
            "route add 172.19.0.0/16 nexthop via 10.88.0.1 dev eth0 nexthop via 10.88.0.1 dev eth1"
                .to_owned(),
        );
    }
    lines
}

/// A rule of the other link sends packets to `eth0`.
pub(super) fn mirrored(n: &mut Numbers) -> Vec<String> {
    let way = n.of(&["redirect", "mirror"]);
    let place = n.of(&["ingress", "egress"]);
    vec![
        "tc qdisc add dev eth1 clsact".to_owned(),
        format!(
            "tc filter add dev eth1 {place} protocol ip pref 1 u32 match ip dst 10.1.2.3/32 action mirred egress {way} dev eth0"
        ),
    ]
}
