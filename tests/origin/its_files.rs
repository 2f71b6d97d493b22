//! Checkpoints in the format of `i40e_net_fix` alone, without netfix's key.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::traffic::reaches;
use crate::common::{Node, Pod, Run};

const SANDBOX: &str = "06c9b8d0a800735982222588c28e70140820acfd04a120264b87a20306322f55";
const MAC: &str = "6e:92:1a:b4:fc:34";

/// Writes a template into the state directory, under the name that `i40e_net_fix` gives it.
fn place(node: &Node, template: &str, netns: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/origin")
        .join(template);
    let text = fs::read_to_string(&source).unwrap_or_else(|e| panic!("{}: {e}", source.display()));
    let folder = node.state_dir().join("checkpoints");
    fs::create_dir_all(&folder).expect("the folder of checkpoints");
    for private in [&node.state_dir(), &folder] {
        fs::set_permissions(private, Permissions::from_mode(0o700)).expect("a private folder");
    }
    let file = folder.join(&SANDBOX[..12]);
    fs::write(&file, text.replace("@NETNS@", netns)).expect("a checkpoint");
    fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("a private file");
}

/// A pod that has lost its interface, known only from a file of `i40e_net_fix`.
fn lost_pod<'n>(node: &'n Node, template: &str) -> Pod<'n> {
    let pod = node.pod("web");
    place(node, template, &pod.ns.path().to_string_lossy());
    node.lose_and_reload();
    pod
}

fn restore(node: &Node) -> Run {
    node.netfix("restore --parent eth0")
}

fn assert_is_back(pod: &Pod<'_>, run: &Run) {
    let link = pod.ip("-d link show dev eth0");
    for part in [MAC, "macvlan mode bridge", "mtu 1500", "state UP"] {
        assert!(
            link.contains(part),
            "no {part} in {link}\n{}",
            run.transcript()
        );
    }
    let address = pod.ip("addr show dev eth0");
    assert!(
        address.contains("10.88.1.155/16"),
        "{address}\n{}",
        run.transcript()
    );
    assert!(
        reaches(pod, "10.88.0.1:9"),
        "no way to the gateway\n{}",
        run.transcript()
    );
}

#[test]
fn an_ipv4_pod_is_restored_from_a_file_of_i40e_net_fix() {
    let node = Node::new();
    let pod = lost_pod(&node, "ipv4.json");
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
    assert!(
        pod.ip("route").contains("default via 10.88.0.1"),
        "{}",
        run.transcript()
    );
}

#[test]
fn a_dual_stack_pod_is_restored_from_a_file_of_i40e_net_fix() {
    let node = Node::new();
    let pod = lost_pod(&node, "dual-stack.json");
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
    assert!(
        pod.ip("-6 addr show dev eth0").contains("fd88::1:155/64"),
        "{}",
        run.transcript()
    );
    assert!(
        reaches(&pod, "[fd88::1]:9"),
        "no way to the gateway by IPv6\n{}",
        run.transcript()
    );
}

#[test]
fn a_route_without_a_gateway_uses_that_of_the_address() {
    let node = Node::new();
    let pod = lost_pod(&node, "route-without-gateway.json");
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
    let routes = pod.ip("route");
    assert!(
        routes.contains("default via 10.88.0.1") && routes.contains("172.16.0.0/12 via 10.88.0.1"),
        "{routes}"
    );
}

#[test]
fn the_interface_of_the_container_need_not_be_the_first() {
    let node = Node::new();
    let pod = lost_pod(&node, "container-not-first.json");
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
}

#[test]
fn a_file_without_routes_restores_the_pod_without_a_default_route() {
    let node = Node::new();
    let pod = lost_pod(&node, "empty-routes.json");
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
    assert!(!pod.ip("route").contains("default"), "{}", run.transcript());
}

#[test]
fn an_unreachable_route_is_reported_and_the_rest_is_restored() {
    let node = Node::new();
    let pod = lost_pod(&node, "unreachable-route.json");
    let run = restore(&node).exits(1).names(
        "failed",
        &SANDBOX[..12],
        &["198.51.100.0/24", "203.0.113.1"],
    );
    assert_is_back(&pod, &run);
    assert!(
        pod.ip("route").contains("default via 10.88.0.1"),
        "{}",
        run.transcript()
    );
}

/// A file that makes `i40e_net_fix` panic: netfix reports it, and restores the other pod.
fn is_corrupt(template: &str) {
    let node = Node::new();
    let other = node.simple_pods(1);
    let before = other[0].capture();
    node.snapshot();
    let pod = lost_pod(&node, template);
    let run = restore(&node)
        .exits(5)
        .errors(&[
            ("checkpoint-corrupt", &SANDBOX[..12]),
            ("checkpoint-missing", pod.name()),
        ])
        .lacks("panicked");
    assert!(!pod.has_eth0(), "{}", run.transcript());
    other[0].assert_same_as(&before);
}

#[test]
fn a_file_with_empty_interfaces_is_corrupt() {
    is_corrupt("empty-interfaces.json");
}

#[test]
fn a_file_without_a_result_is_corrupt() {
    is_corrupt("no-result.json");
}

#[test]
fn without_a_parent_the_message_suggests_the_option_and_nothing_changes() {
    let node = Node::new();
    let pod = lost_pod(&node, "ipv4.json");
    let run = node
        .netfix("restore")
        .exits(1)
        .errors(&[("parent-missing", &SANDBOX[..12])])
        .names("parent-missing", &SANDBOX[..12], &["--parent"]);
    assert!(!pod.has_eth0(), "{}", run.transcript());
}

#[test]
fn a_parent_that_does_not_exist_is_reported() {
    let node = Node::new();
    let pod = lost_pod(&node, "ipv4.json");
    let run = node
        .netfix("restore --parent eth7")
        .exits(4)
        .errors(&[("parent-missing", "")])
        .names("parent-missing", "", &["eth7"]);
    assert!(!pod.has_eth0(), "{}", run.transcript());
}

#[test]
fn a_namespace_in_the_path_of_a_process_is_opened() {
    let node = Node::new();
    let pod = node.pod("web").with_process();
    let path = format!("/proc/{}/ns/net", pod.process_id());
    place(&node, "ipv4.json", &path);
    node.lose_and_reload();
    let run = node
        .netfix(&format!("restore --parent eth0 --netns {path}"))
        .exits(0);
    assert_is_back(&pod, &run);
}

#[test]
fn a_namespace_in_the_path_of_a_process_can_be_selected_by_its_mount() {
    let node = Node::new();
    let pod = node.pod("web").with_process();
    place(
        &node,
        "ipv4.json",
        &format!("/proc/{}/ns/net", pod.process_id()),
    );
    node.lose_and_reload();
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
}

#[test]
fn a_second_restore_from_a_file_of_i40e_net_fix_changes_nothing() {
    let node = Node::new();
    let pod = lost_pod(&node, "dual-stack.json");
    restore(&node).exits(0);
    let first = pod.capture();
    let trace = node.netfix_traced("restore --parent eth0");
    assert_eq!(trace.run.code, Some(0), "{}", trace.run.transcript());
    assert!(
        trace.netlink_changes().is_empty(),
        "{:#?}",
        trace.netlink_changes()
    );
    first.assert_same(&pod.capture(), pod.name());
}

#[test]
fn an_existing_interface_gets_its_missing_address() {
    let node = Node::new();
    let pod = lost_pod(&node, "ipv4.json");
    node.ns.ip("link set eth0 up");
    pod.macvlan("mode bridge", &format!("address {MAC}"));
    let run = restore(&node).exits(0);
    assert_is_back(&pod, &run);
}

#[test]
fn a_snapshot_replaces_a_file_of_i40e_net_fix_by_a_complete_one() {
    let node = Node::new();
    let pod = lost_pod(&node, "ipv4.json");
    restore(&node).exits(0);
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    let before = pod.capture();
    node.snapshot();
    node.lose_and_reload();
    node.restore();
    pod.assert_same_as(&before);
}
