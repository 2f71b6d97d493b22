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

use crate::common::node::{comes_back, prepared};
use crate::common::{Node, Pod};

/// A pod with these objects suffers this, with its NIC in place, and is repaired on the same link; then nothing differs for
/// netfix either.
fn is_repaired(lines: &[&str], harm: &[&str]) {
    is_repaired_by(lines, |pod| {
        for line in harm {
            pod.ip(*line);
        }
    });
}

fn is_repaired_by(lines: &[&str], harm: impl Fn(&Pod<'_>)) {
    is_repaired_by_from(|node| prepared(node, lines), harm);
}

fn is_repaired_by_from(prepare: impl Fn(&Node) -> Pod<'_>, harm: impl Fn(&Pod<'_>)) {
    let node = Node::new();
    let pod = prepare(&node);
    let before = pod.capture();
    node.snapshot();
    harm(&pod);
    let harmed = before.differences(&pod.capture());
    assert!(!harmed.is_empty(), "nothing was harmed");
    let diff = node.netfix("diff");
    assert_eq!(diff.code, Some(3), "{harmed:#?}\n{}", diff.transcript());
    node.restore();
    pod.assert_same_as(&before);
    let diff = node.netfix("diff");
    assert_eq!(diff.code, Some(0), "{}", diff.transcript());
}
