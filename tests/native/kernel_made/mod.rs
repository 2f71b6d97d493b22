//! What the kernel has made, or what says so: it comes back from the kernel if the kernel makes exactly that again, and else
//! from the checkpoint.

mod connected;
mod link_local;
mod order;
mod routers;
mod survivors;

use std::process::Stdio;

use crate::common::node::prepared;
use crate::common::{Node, Pod, Run, background::wait_until};

/// Restores onto a NIC without carrier, and gives it carrier once `is_there`.
fn restore_with_late_carrier(node: &Node, options: &str, is_there: impl Fn() -> bool) {
    node.lose();
    node.reload_without_carrier();
    let mut command = node.netfix_command(
        &["timeout", "600"],
        &format!("restore --nic-wait 10s {options}"),
    );
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().expect("netfix starts");
    assert!(wait_until(is_there));
    node.give_carrier();
    let output = child.wait_with_output().expect("netfix ends");
    Run::from_output("restore".to_owned(), &output).exits(0);
}

/// A pod is restored onto a NIC that gets carrier once its link is there.
fn comes_back_with_late_carrier(node: &Node, pod: &Pod<'_>) {
    let before = pod.capture();
    node.snapshot();
    restore_with_late_carrier(node, "", || pod.has_eth0());
    pod.assert_same_as(&before);
    assert_settled(node);
}

/// Nothing differs for netfix, which changes nothing any more.
fn assert_settled(node: &Node) {
    let diff = node.netfix("diff");
    assert_eq!(diff.code, Some(0), "{}", diff.transcript());
}

/// Whether the pod's link is there again, with what was sent together with its address.
fn has_address(pod: &Pod<'_>) -> bool {
    let addresses = pod.ns.try_ip("-4 addr show dev eth0").unwrap_or_default();
    addresses.contains("inet ")
}

#[test]
fn nexthop_objects_wait_for_carrier() {
    let node = Node::new();
    let pod = prepared(
        &node,
        &[
            // Nothing else of it waits for carrier.
            "link set eth0 addrgenmode none",
            "-6 addr flush dev eth0",
            "nexthop add id 4 via 10.88.0.4 dev eth0",
            "nexthop add id 5 group 4",
            "route add 172.17.0.0/16 nhid 4",
            "route add 172.18.0.0/16 nhid 5",
        ],
    );
    let state = pod.capture();
    node.snapshot();
    restore_with_late_carrier(&node, "--conflict-probe off", || has_address(&pod));
    pod.assert_same_as(&state);
    assert_settled(&node);
}
