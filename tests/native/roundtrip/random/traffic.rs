//! Qdiscs, classes and filters.

use super::Numbers;

/// A tree of qdiscs, or some of its parts alone, which the kernel may refuse.
pub(super) fn qdiscs(n: &mut Numbers) -> Vec<String> {
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
