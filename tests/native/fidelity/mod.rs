//! Everything that a pod lost comes back, bit for bit, also if it lost only a part.

mod addresses;
mod bridged;
mod half_lost;
mod kinds;
mod link_local;
mod links;
mod nexthops;
mod ports;
mod qdiscs;
mod routes;
mod rules;
mod shared;
mod sysfs;
mod tunnels;

use crate::common::node::prepared;
use crate::common::{Node, Pod};

/// A link whose addresses come from a secret.
pub const STABLE_SECRET: [&str; 4] = [
    "link set eth0 down",
    "sysctl ipv6/conf/eth0/stable_secret 2001:db8::1",
    "link set eth0 up",
    "route replace default via 10.88.0.1",
];

/// One line for ip(8), or `sysctl KEY VALUE`; `NN` is the pod's number.
fn own(pod: &Pod<'_>, line: &str) {
    let address = pod.address();
    let (_, number) = address.rsplit_once('.').expect("an IPv4 address");
    let line = line.replace("NN", number);
    let setting = line.strip_prefix("sysctl ");
    if let Some((key, value)) = setting.and_then(|it| it.split_once(' ')) {
        pod.ns.set_sysctl(key, value);
    } else {
        pod.ip(&line);
    }
}

/// A simple pod with the objects of a row of a table; its name has the row's number.
pub fn numbered<'n>(node: &'n Node, row: usize, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod(&format!("row{row}-")).simple();
    for line in lines {
        own(&pod, line);
    }
    pod
}

/// A pod for each row loses its NIC together with the others, and has all objects of its row afterwards.
pub fn come_back(rows: &[&[&str]]) {
    let node = Node::new();
    let pods = (1..)
        .zip(rows)
        .map(|(row, lines)| numbered(&node, row, lines));
    node.assert_all_survive_a_loss(&pods.collect::<Vec<_>>());
}

/// A pod for each row has the row's objects and suffers its harm, with its NIC in place, and is repaired on the same link.
pub fn are_repaired(rows: &[(&[&str], &[&str])]) {
    let node = Node::new();
    let pods = (1..)
        .zip(rows)
        .map(|(row, (lines, _))| numbered(&node, row, lines));
    all_are_repaired(&node, &pods.collect::<Vec<_>>(), |row, pod| {
        for line in rows[row].1 {
            own(pod, line);
        }
    });
}

/// Each pod suffers harm, and one restore repairs all of them; then nothing differs for netfix either.
fn all_are_repaired(node: &Node, pods: &[Pod<'_>], harm: impl Fn(usize, &Pod<'_>)) {
    let before: Vec<_> = pods.iter().map(Pod::capture).collect();
    node.snapshot();
    for (row, pod) in pods.iter().enumerate() {
        harm(row, pod);
    }
    for (pod, before) in pods.iter().zip(&before) {
        let harmed = before.differences(&pod.capture());
        assert!(!harmed.is_empty(), "{}: nothing was harmed", pod.name());
    }
    let diff = node.netfix_json("diff").exits(3);
    for pod in pods {
        let steps = diff.steps(pod);
        assert!(!steps.is_empty(), "{}\n{}", pod.name(), diff.transcript());
    }
    node.restore();
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.netfix("diff").exits(0);
}
