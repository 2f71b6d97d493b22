//! The kernel's duplicate address detection: what a restore says of its end, and what the next one does with an address that
//! failed it.

use crate::common::background::wait_until;
use crate::common::node::PARENT_MAC;
use crate::common::{GATEWAY4, Node, Pod, Run};

const CONFLICT: &str = "address-conflict";
/// The MAC of the gateway's end of the wire.
const GATEWAY_MAC: &str = "02:00:00:88:00:01";
const ADDRESS: &str = "fd88::9:1";

fn addresses(pod: &Pod<'_>) -> String {
    pod.ip("-6 addr show dev eth0 scope global")
}

/// The gateway gets an address without detection.
fn claim(node: &Node) {
    node.gateway
        .ip(&format!("addr add {ADDRESS}/64 dev up0 nodad"));
}

fn release(node: &Node) {
    node.gateway.ip(&format!("addr del {ADDRESS}/64 dev up0"));
}

/// A pod with an address for which the kernel probes.
fn pod_with<'n>(node: &'n Node, name: &str, address: &str) -> Pod<'n> {
    let pod = node.pod_with_dad(name).simple();
    pod.ip(&format!("addr add {address}/64 dev eth0"));
    let usable = || !pod.ip("-6 addr show dev eth0").contains("tentative");
    assert!(wait_until(usable), "tentative");
    pod
}

#[test]
fn a_restore_waits_until_the_kernel_has_probed() {
    let node = Node::new();
    let first = pod_with(&node, "a", ADDRESS);
    let second = pod_with(&node, "b", "fd88::9:2");
    node.snapshot();
    node.lose_and_reload();
    claim(&node);
    let run = node.netfix_json("restore").exits(5);
    let (failed, usable) = (addresses(&first), addresses(&second));
    let run = run
        .errors(&[(CONFLICT, first.name())])
        .names(CONFLICT, first.name(), &[ADDRESS]);
    assert!(failed.contains("dadfailed"), "{failed}");
    assert!(!usable.contains("tentative"), "{usable}");
    assert_eq!(run.pod(&first)["state"], "partial");
    assert_eq!(run.pod(&second)["state"], "restored");
}

#[test]
fn the_next_restore_probes_an_address_that_failed_and_adds_it_again() {
    let node = Node::new();
    let pod = pod_with(&node, "web", ADDRESS);
    pod.ip("addr add fd88::9:2/64 dev eth0 nodad");
    pod.ip(&format!("route add fd99::/64 via fd88::1 src {ADDRESS}"));
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    claim(&node);
    node.netfix("restore").exits(1);
    let failed = addresses(&pod);
    assert!(failed.contains("dadfailed"), "{failed}");

    let run = node.netfix_json("restore").exits(1);
    let run = run.errors(&[(CONFLICT, pod.name())]);
    let run = run.names(CONFLICT, pod.name(), &[ADDRESS, GATEWAY_MAC, "eth0"]);
    assert!(run.steps(&pod).is_empty(), "{}", run.transcript());

    release(&node);
    node.restore();
    let usable = addresses(&pod);
    assert!(!usable.contains("tentative"), "{usable}");
    pod.assert_same_as(&before);
    node.netfix("diff").exits(0);
}

#[test]
fn an_address_that_is_claimed_again_fails_again() {
    let node = Node::new();
    let pod = pod_with(&node, "web", ADDRESS);
    node.snapshot();
    node.lose_and_reload();
    claim(&node);
    node.netfix("restore").exits(1);
    // Without its own probe netfix only knows what the kernel finds.
    let run = node
        .netfix_json("restore --conflict-probe off")
        .exits(1)
        .errors(&[(CONFLICT, pod.name())]);
    assert_eq!(run.steps(&pod).len(), 1, "{}", run.transcript());
    assert!(
        addresses(&pod).contains("dadfailed"),
        "{}",
        run.transcript()
    );
}

#[test]
fn an_address_that_has_failed_is_reported_before_a_loss_and_used_after_it() {
    let node = Node::new();
    claim(&node);
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
    claim(&node);
    let run = node.netfix_json("restore").exits(5);
    let run = run
        .errors(&[(CONFLICT, "")])
        .names(CONFLICT, "", &[ADDRESS, "eth0"]);
    assert_eq!(run.pod(&pod)["state"], "restored");
    let run = node.netfix_json("restore").exits(5);
    run.names(CONFLICT, "", &[ADDRESS, GATEWAY_MAC, "eth0"]);
    release(&node);
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
