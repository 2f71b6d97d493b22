//! One hostile pod of ten costs the nine others nothing.

use serde_json::Value;

use crate::common::background::Background;
use crate::common::{Node, Pod};

/// Names that others need, bytes that are no text, 10,000 routes.
fn make_hostile(pod: &Pod<'_>) {
    for command in [
        b"link property add dev eth0 altname macvlan0".as_slice(),
        b"link property add dev eth0 altname b\xfcro",
        b"link set eth0 alias \xff\xfe",
        b"link add eth1 type veth peer name macvlan1",
        b"rule add pref 77 iif b\xfcro lookup 77",
    ] {
        pod.ip(command);
    }
    let route = |number: u32| {
        let (high, low) = (number >> 8, number & 0xff);
        format!("route add 172.16.{high}.{low} via 10.88.0.1\n")
    };
    pod.ns.batch(&(0..10_000).map(route).collect::<String>());
}

/// Addresses that come and go without end.
fn storm(node: &Node, pod: &Pod<'_>) -> Background {
    const LOOP: &str = "n=0; while :; do n=$(((n + 1) % 200)); \
                        ip addr add 10.88.7.$n/16 dev eth0; ip addr del 10.88.7.$n/16 dev eth0; done";
    let mut command = pod.ns.exec("sh");
    Background::start(command.args(["-c", LOOP]), node.temp().join("storm"))
}

/// What a restore reports about nine pods beside a tenth.
fn nine(is_hostile: bool) -> Vec<(Value, Value)> {
    let node = Node::new();
    let pods = node.simple_pods(9);
    let tenth = node.pod("tenth").simple();
    let _storm = is_hostile.then(|| {
        make_hostile(&tenth);
        storm(&node, &tenth)
    });
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    let snapshot = node.netfix("snapshot");
    assert!(
        matches!(snapshot.code, Some(0 | 5)),
        "{}",
        snapshot.transcript()
    );
    node.lose_and_reload();
    let run = node.netfix_json("restore");
    let restored = pods.iter().map(|pod| {
        let pod = run.pod(pod);
        (pod["state"].clone(), pod["interfaces"].clone())
    });
    let restored: Vec<_> = restored.collect();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    restored
}

#[test]
fn nine_pods_are_restored_as_beside_a_plain_one() {
    let plain = nine(false);
    assert!(
        plain.iter().all(|(state, _)| state == "restored"),
        "{plain:?}"
    );
    assert_eq!(nine(true), plain);
}
