//! Qdiscs, classes and filters: of each kind that this kernel has.

use crate::common::{GATEWAY4, Node, Pod, Run};

/// A pod with a macvlan, and what these lines for tc(8) add.
fn shaped<'n>(node: &'n Node, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod("web").simple();
    for line in lines {
        pod.tc(line);
    }
    pod
}

/// The lines for a qdisc or a tree of them.
const TREES: [&[&str]; 13] = [
    &["qdisc add dev eth0 root tbf rate 10mbit burst 10k latency 50ms"],
    &[
        "qdisc add dev eth0 root handle 1: tbf rate 7mbit burst 1514 limit 90k peakrate 9mbit mtu 1600 overhead 4",
        "qdisc add dev eth0 parent 1:1 handle 10: pfifo limit 33",
    ],
    &["qdisc add dev eth0 root handle 1: pfifo limit 77"],
    &["qdisc add dev eth0 root bfifo limit 99k"],
    &["qdisc add dev eth0 root pfifo_head_drop limit 12"],
    &["qdisc add dev eth0 root handle 3: pfifo_fast"],
    &["qdisc add dev eth0 root handle 4: noqueue"],
    &["qdisc add dev eth0 ingress"],
    &["qdisc add dev eth0 clsact"],
    &[
        "qdisc add dev eth0 root handle 1: htb default 30 r2q 5 direct_qlen 70",
        "class add dev eth0 parent 1: classid 1:1 htb rate 10mbit ceil 20mbit quantum 3000",
        "class add dev eth0 parent 1:1 classid 1:30 htb rate 1mbit ceil 3mbit burst 20k prio 3",
        "class add dev eth0 parent 1:1 classid 1:10 htb rate 50gbit",
        "class add dev eth0 parent 1:30 classid 1:5 htb rate 300kbit overhead 8",
        "qdisc add dev eth0 parent 1:10 handle 10: bfifo limit 9000",
        "qdisc add dev eth0 parent 1:5 handle 5: tbf rate 1mbit burst 5k latency 20ms",
        "qdisc add dev eth0 parent 5:1 handle 6: pfifo limit 5",
    ],
    &["qdisc add dev eth0 root stab overhead 24 tbf rate 10mbit burst 10k latency 50ms"],
    &[
        "qdisc add dev eth0 root handle 1: htb",
        "qdisc add dev eth0 clsact",
        "filter add dev eth0 egress protocol ip pref 7 u32 match ip dst 10.0.0.0/8 classid 1:3",
        "filter add dev eth0 ingress protocol all pref 9 chain 4 u32 match u8 17 0xff at 9 action mirred egress \
         redirect dev eth0",
    ],
    &[
        "qdisc add dev eth0 root handle 1: htb",
        "class add dev eth0 parent 1: classid 1:1 htb rate 10mbit",
        "class add dev eth0 parent 1:1 classid 1:2 htb rate 1mbit",
        "filter add dev eth0 parent 1: protocol ipv6 pref 5 u32 match ip6 dst fd00::/8 flowid 1:2",
        "filter add dev eth0 parent 1: protocol ip pref 2 handle 2: u32 divisor 16",
        "filter add dev eth0 parent 1: protocol ip pref 2 u32 ht 2:3 match ip dport 53 0xffff flowid 1:2",
        "filter add dev eth0 parent 1: protocol ip pref 2 handle ::5 u32 match ip src 10.0.0.0/8 link 2: hashkey mask 0xf at 12",
        "filter add dev eth0 parent 1: protocol ip pref 2 u32 match mark 7 0xff flowid 1:1",
        "filter add dev eth0 parent 1:1 protocol ip pref 3 u32 match ip tos 16 0xff flowid 1:2 action mirred egress \
         mirror dev lo",
    ],
];

#[test]
fn every_tree_of_qdiscs_comes_back_with_its_classes_and_filters() {
    let node = Node::new();
    let mut pods: Vec<_> = TREES.iter().map(|lines| shaped(&node, lines)).collect();
    let queues = node.pod("queues");
    queues.macvlan("mode bridge", "numtxqueues 4");
    queues.up_with_address();
    queues.tc("qdisc add dev eth0 root handle 8: mq");
    queues.tc("qdisc add dev eth0 parent 8:2 handle 9: pfifo limit 7");
    let down = node.pod("down");
    down.macvlan("mode bridge", "");
    down.tc("qdisc add dev eth0 root tbf rate 10mbit burst 10k latency 50ms");
    pods.extend([queues, down]);
    node.assert_all_survive_a_loss(&pods);
    let diff = node.netfix("diff").exits(0);
    assert!(!diff.out.contains("qdisc"), "{}", diff.transcript());
}

#[test]
fn the_largest_packet_still_passes_a_restored_tbf() {
    let node = Node::new();
    let tree = "qdisc add dev eth0 root tbf rate 7mbit burst 1514 latency 50ms";
    let pod = shaped(&node, &[tree]);
    let passes = || {
        let words = ["ping", "-c", "2", "-W", "2", "-s", "1472", GATEWAY4];
        let mut ping = pod.ns.exec("busybox");
        ping.args(words).output().expect("ping").status.success()
    };
    assert!(passes(), "before");
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    assert!(passes(), "after");
}

const TBF: &str = "qdisc add dev eth0 root handle 1: tbf rate 10mbit burst 10k latency 50ms";

#[test]
fn what_was_lost_or_changed_of_a_tree_is_repaired_in_place() {
    let priority = "filter del dev eth0 parent 1: protocol ip pref 2";
    let [key, link] = ["2:3:800", "801::5"].map(|node| format!("{priority} handle {node} u32"));
    let rows: [(&[&str], &[&str]); 13] = [
        (
            &[TBF],
            &["qdisc change dev eth0 handle 1: root tbf rate 5mbit burst 20k latency 50ms"],
        ),
        (
            TREES[9],
            &["class change dev eth0 parent 1:1 classid 1:10 htb rate 2mbit"],
        ),
        (
            TREES[9],
            &["qdisc change dev eth0 parent 1:10 handle 10: bfifo limit 500"],
        ),
        (
            TREES[9],
            &["qdisc change dev eth0 parent 5:1 handle 6: pfifo limit 500"],
        ),
        (TREES[9], &["qdisc del dev eth0 root"]),
        (TREES[9], &["qdisc del dev eth0 parent 1:10"]),
        (
            TREES[9],
            &[
                "qdisc del dev eth0 parent 1:5",
                "class del dev eth0 classid 1:5",
            ],
        ),
        (TREES[8], &["qdisc del dev eth0 clsact"]),
        (TREES[12], &[&key]),
        (TREES[12], &[&link]),
        (
            TREES[11],
            &["filter del dev eth0 ingress protocol all pref 9 chain 4"],
        ),
        (
            TREES[11],
            &["filter change dev eth0 egress protocol ip pref 7 handle 800::800 u32 classid 1:9"],
        ),
        (
            TREES[11],
            &["filter del dev eth0 egress protocol ip pref 7"],
        ),
    ];
    let node = Node::new();
    let pods = rows.map(|(lines, _)| shaped(&node, lines));
    let diff = super::all_are_repaired(&node, &pods, |row, pod| {
        for line in rows[row].1 {
            pod.tc(line);
        }
    });
    assert_is_back_in_the_first_table(&diff, &pods[12]);
}

/// The filter gets into the first table, whatever its number is.
fn assert_is_back_in_the_first_table(diff: &Run, pod: &Pod<'_>) {
    let steps = diff.steps(pod);
    let is_named = |step: &String| step.contains("handle ::800 dev eth0");
    assert!(steps.iter().any(is_named), "{steps:#?}");
    let shown = pod
        .ns
        .exec("tc")
        .args(["filter", "show", "dev", "eth0", "egress"])
        .output();
    let shown = String::from_utf8_lossy(&shown.expect("tc").stdout).into_owned();
    assert!(shown.contains("match 0a000000/ff000000 at 16"), "{shown}");
}

#[test]
fn a_qdisc_in_the_place_of_the_stored_one_or_beyond_the_checkpoint_is_reported_and_left() {
    let node = Node::new();
    let (pod, plain) = (shaped(&node, TREES[9]), node.pod("plain").simple());
    node.snapshot();
    pod.tc("qdisc del dev eth0 root");
    pod.tc("qdisc add dev eth0 root handle 7: pfifo limit 9");
    plain.tc(TBF);
    let with = [pod.capture(), plain.capture()];
    let words = ["qdisc pfifo 7: root", "qdisc htb 1: root"];
    node.netfix_json("restore")
        .errors(&[("link-conflict", pod.name())])
        .names("link-conflict", pod.name(), &words)
        .names("surplus", plain.name(), &["qdisc tbf 1: root dev eth0"]);
    pod.assert_same_as(&with[0]);
    plain.assert_same_as(&with[1]);
}

#[test]
fn what_cannot_be_restored_is_named_before_and_after() {
    let tree = [
        "qdisc add dev eth0 clsact",
        "filter add dev eth0 egress pref 5 bpf bytecode \"1,6 0 0 0\" direct-action",
    ];
    let stab = "qdisc add dev eth0 root stab mtu 2048 tsize 512 mpu 64 overhead 4 linklayer ethernet \
                tbf rate 10mbit burst 10k latency 50ms";
    let blocks = "qdisc add dev eth0 ingress_block 22 egress_block 23 clsact";
    let rows: [(&[&str], [&str; 2]); 3] = [
        (&tree, ["filter bpf egress", "owner"]),
        (&[stab], ["qdisc tbf", "size table"]),
        (&[blocks], ["qdisc clsact", "shared block"]),
    ];
    let node = Node::new();
    let pods = rows.map(|(lines, _)| shaped(&node, lines));
    let unsupported = pods.each_ref().map(|pod| ("unsupported", pod.name()));
    // So many of the words of each row.
    let named = |mut run: Run, count: usize| {
        for (pod, (_, words)) in pods.iter().zip(&rows) {
            run = run.names("unsupported", pod.name(), &words[..count]);
        }
        run
    };
    named(node.netfix_json("snapshot").exits(5), 2).errors(&unsupported);
    named(node.netfix_json("check").exits(2), 2);
    node.lose_and_reload();
    named(node.netfix_json("restore").exits(5), 1).errors(&unsupported);
}

#[test]
fn a_thousand_filters_come_back() {
    let node = Node::new();
    let pod = shaped(&node, &["qdisc add dev eth0 root handle 1: htb"]);
    let line = |i: u32| {
        let ip = format!("10.{}.{}.{}", i >> 16, i >> 8 & 255, i & 255);
        format!(
            "filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst {ip}/32 flowid 1:1\n"
        )
    };
    pod.tc_batch(&(0..1200).map(line).collect::<String>());
    node.assert_all_survive_a_loss(&[pod]);
}
