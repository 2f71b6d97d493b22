//! The kernel's duplicate address detection: what a restore says of its end, and what the next one does with an address that
//! failed it.

use crate::common::background::wait_until;
use crate::common::node::PARENT_MAC;
use crate::common::{GATEWAY4, Node, Pod, ReportedProblem, Run};

const CONFLICT: &str = "address-conflict";
/// The MAC of the gateway's end of the wire.
const GATEWAY_MAC: &str = "02:00:00:88:00:01";
const ADDRESS: &str = "fd88::9:1";

fn addresses(pod: &Pod<'_>) -> String {
    pod.ip("-6 addr show dev eth0 scope global")
}

/// The gateway gets an address without detection.
fn claim(node: &Node, address: &str) {
    node.gateway
        .ip(&format!("addr add {address}/64 dev up0 nodad"));
}

fn release(node: &Node, address: &str) {
    node.gateway.ip(&format!("addr del {address}/64 dev up0"));
}

/// A pod with an address for which the kernel probes.
fn pod_with<'n>(node: &'n Node, name: &str, address: &str) -> Pod<'n> {
    let pod = node.pod_with_dad(name).simple();
    pod.ip(&format!("addr add {address}/64 dev eth0"));
    let usable = || !pod.ip("-6 addr show dev eth0").contains("tentative");
    assert!(wait_until(usable), "tentative");
    pod
}

/// No other pod than this one and `besides` has an error, and the host has none.
fn assert_of_first_alone(run: &Run, first: &Pod<'_>, besides: &Pod<'_>) {
    let errors = run.problems().into_iter().filter(ReportedProblem::is_error);
    for error in errors.filter(|one| one.pod.as_deref() != Some(besides.name())) {
        let is_it = error.code == CONFLICT && error.pod.as_deref() == Some(first.name());
        assert!(is_it, "{error:?}\n{}", run.transcript());
    }
}

/// Without its own probe netfix only knows what the kernel finds.
fn assert_fails_again_without_a_probe(node: &Node, pod: &Pod<'_>) {
    let words = format!("restore --conflict-probe off --pod {}", pod.name());
    let run = node
        .netfix_json(&words)
        .exits(1)
        .errors(&[(CONFLICT, pod.name())]);
    assert_eq!(run.steps(pod).len(), 1, "{}", run.transcript());
    assert!(addresses(pod).contains("dadfailed"), "{}", run.transcript());
}

fn assert_is_left_after_a_probe(node: &Node, pod: &Pod<'_>, address: &str) {
    let run = node.netfix_json(&format!("restore --pod {}", pod.name()));
    let run = run.exits(1).errors(&[(CONFLICT, pod.name())]);
    let run = run.names(CONFLICT, pod.name(), &[address, GATEWAY_MAC, "eth0"]);
    assert!(run.steps(pod).is_empty(), "{}", run.transcript());
}

#[test]
fn a_restore_waits_until_the_kernel_has_probed_and_the_next_ones_add_a_failed_address_once_it_is_free()
 {
    const OTHER: &str = "fd88::9:3";
    let node = Node::new();
    let first = pod_with(&node, "a", ADDRESS);
    let second = pod_with(&node, "b", "fd88::9:2");
    let routed = pod_with(&node, "c", OTHER);
    routed.ip("addr add fd88::9:4/64 dev eth0 nodad");
    routed.ip(&format!("route add fd99::/64 via fd88::1 src {OTHER}"));
    let before = routed.capture();
    node.snapshot();
    node.lose_and_reload();
    claim(&node, ADDRESS);
    claim(&node, OTHER);

    let run = node.netfix_json("restore").exits(5);
    let (failed, usable) = (addresses(&first), addresses(&second));
    let run = run.names(CONFLICT, first.name(), &[ADDRESS]);
    assert_of_first_alone(&run, &first, &routed);
    assert!(failed.contains("dadfailed"), "{failed}");
    assert!(!usable.contains("tentative"), "{usable}");
    assert_eq!(run.pod(&first)["state"], "partial");
    assert_eq!(run.pod(&second)["state"], "restored");
    let failed = addresses(&routed);
    assert!(failed.contains("dadfailed"), "{failed}");

    assert_fails_again_without_a_probe(&node, &first);
    assert_is_left_after_a_probe(&node, &routed, OTHER);

    release(&node, ADDRESS);
    release(&node, OTHER);
    node.restore();
    for pod in [&first, &routed] {
        let usable = addresses(pod);
        assert!(!usable.contains("tentative"), "{usable}");
    }
    routed.assert_same_as(&before);
    node.netfix("diff").exits(0);
}

#[test]
fn an_address_that_has_failed_is_reported_before_a_loss_and_used_after_it() {
    let node = Node::new();
    claim(&node, ADDRESS);
    let pod = node.pod_with_dad("web").simple();
    pod.ip(&format!("addr add {ADDRESS}/64 dev eth0"));
    let failed = || addresses(&pod).contains("dadfailed");
    assert!(wait_until(failed), "not failed");
    let run = node.netfix_json("snapshot").exits(0);
    run.warnings(&[(CONFLICT, pod.name())])
        .names(CONFLICT, pod.name(), &[ADDRESS]);
    let run = node.netfix_json("check").exits(2);
    run.names(CONFLICT, pod.name(), &[ADDRESS]);
    node.lose_and_reload();
    // The other machine is gone.
    node.restore();
    let usable = addresses(&pod);
    assert!(
        usable.contains(ADDRESS) && !usable.contains("tentative"),
        "{usable}"
    );
    node.netfix("check").exits(0);
}

#[test]
fn the_hosts_own_address_that_fails_is_an_error() {
    let node = Node::without_addresses();
    node.ns.set_sysctl("ipv6/conf/default/dad_transmits", "1");
    node.ns.set_sysctl("ipv6/conf/eth0/dad_transmits", "1");
    node.ns.ip("addr add 10.88.0.2/16 dev eth0");
    node.ns.ip(&format!("addr add {ADDRESS}/64 dev eth0"));
    let usable = || !node.ns.ip("-6 addr show dev eth0").contains("tentative");
    assert!(wait_until(usable), "tentative");
    let pod = node.simple_pods(1).remove(0);
    let before = node.capture();
    node.snapshot();
    node.lose_and_reload();
    claim(&node, ADDRESS);
    let run = node.netfix_json("restore").exits(5);
    let run = run
        .errors(&[(CONFLICT, "")])
        .names(CONFLICT, "", &[ADDRESS, "eth0"]);
    assert_eq!(run.pod(&pod)["state"], "restored");
    let run = node.netfix_json("restore").exits(5);
    run.names(CONFLICT, "", &[ADDRESS, GATEWAY_MAC, "eth0"]);
    release(&node, ADDRESS);
    node.restore();
    node.assert_same_as(&before);
}

#[test]
fn a_window_does_not_end_well_with_an_address_of_another_machine() {
    let node = Node::new();
    let pod = pod_with(&node, "web", ADDRESS);
    let gateway = node.gateway.name();
    let reload = format!(
        "ip link del eth0 && ip link add eth0 address {PARENT_MAC} type veth peer name up0 address {GATEWAY_MAC} \
         netns {gateway} && ip -n {gateway} link set up0 up && ip -n {gateway} addr add {GATEWAY4}/16 dev up0 && \
         ip -n {gateway} addr add {ADDRESS}/64 dev up0 nodad"
    );
    let mut command = node.netfix_command(
        &["timeout", "600"],
        "upgrade --foreground --yes --no-pause --watch 0s --nic-wait 10s --answer-wait 2s -o json",
    );
    let run = Run::of(command.args(["--", "sh", "-c", &reload])).exits(5);
    let run = run.names(CONFLICT, pod.name(), &[ADDRESS]);
    let state = &run.pod(&pod)["state"];
    assert!(
        state == "partial" || state == "failed",
        "{}",
        run.transcript()
    );
}
