//! The host's own addresses, which another machine may have taken while the NIC was gone.

use crate::common::background::tcpdump;
use crate::common::capture::Capture;
use crate::common::namespace::Namespace;
use crate::common::{GATEWAY4, Node, Pod, Run, tool};

const CONFLICT: &str = "address-conflict";
/// The MAC of the gateway's end of the wire.
const GATEWAY_MAC: &str = "02:00:00:88:00:01";
const VIRTUAL: &str = "10.88.0.250";

fn addresses(ns: &Namespace) -> String {
    ns.ip("-br addr show dev eth0")
}

/// The names of what the restore did on the host.
fn steps_on_host(run: &Run) -> Vec<String> {
    let steps = &run.json()["node"]["steps"];
    let steps = steps.as_array().into_iter().flatten();
    steps
        .map(|step| step.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// A pod after a loss, and the host before it; `taken` is an address that the gateway has now.
fn after_a_loss<'n>(node: &'n Node, taken: &str) -> (Pod<'n>, Capture) {
    let pod = node.simple_pods(1).remove(0);
    let before = node.capture();
    node.snapshot();
    node.lose_and_reload();
    node.gateway.ip(&format!("addr add dev up0 {taken}"));
    (pod, before)
}

#[test]
fn a_virtual_address_that_moved_stays_where_it_is() {
    let node = Node::new();
    node.ns.ip(&format!("addr add {VIRTUAL}/32 dev eth0"));
    node.ns.ip(&format!(
        "route add 10.99.0.0/16 via {GATEWAY4} src {VIRTUAL}"
    ));
    let (pod, _) = after_a_loss(&node, &format!("{VIRTUAL}/32"));
    let run = node.netfix_json("restore").exits(0);
    let run = run.errors(&[]).warnings(&[(CONFLICT, "")]).names(
        CONFLICT,
        "",
        &[VIRTUAL, GATEWAY_MAC, "eth0"],
    );
    assert_eq!(run.coded(CONFLICT).len(), 1, "{}", run.transcript());
    let has = addresses(&node.ns);
    assert!(
        !has.contains(VIRTUAL) && has.contains("10.88.0.2/16"),
        "{has}"
    );
    assert!(has.contains("fd88::2/64"), "{has}");
    let routes = node.ns.ip("route show");
    assert!(
        routes.contains(GATEWAY4) && !routes.contains("10.99."),
        "{routes}"
    );
    assert_eq!(run.pod(&pod)["state"], "restored");

    // The next ones say so too, and the snapshot of the new state ends it.
    let again = node.netfix_json("restore").exits(0);
    again.warnings(&[(CONFLICT, "")]);
    node.netfix("diff").exits(3).stdout_has(&[VIRTUAL]);
    node.snapshot();
    for words in ["check", "diff", "restore"] {
        node.netfix(words).exits(0).lacks(VIRTUAL);
    }
    assert!(!addresses(&node.ns).contains(VIRTUAL));
}

#[test]
fn a_virtual_address_comes_back_when_no_other_machine_has_it() {
    let node = Node::new();
    node.ns.ip(&format!("addr add {VIRTUAL}/32 dev eth0"));
    let (_pod, before) = after_a_loss(&node, &format!("{VIRTUAL}/32"));
    node.netfix("restore").exits(0);
    node.gateway.ip(&format!("addr del {VIRTUAL}/32 dev up0"));
    node.restore();
    node.assert_same_as(&before);
}

/// As systemd-networkd does with a lease.
#[test]
fn an_address_that_its_manager_gives_the_host_meanwhile_is_no_conflict() {
    let node = Node::new();
    let (_pod, before) = after_a_loss(&node, "10.88.0.9/16");
    let script = "until ip -o link show up dev eth0 | grep -q .; do sleep 0.01; done
        sleep \"$0\"; ip addr add 10.88.0.2/16 dev eth0 2>/dev/null; true";
    for delay in ["0", "0.1", "0.2", "0.3", "0.4"] {
        let mut manager = tool::command("sh", ["-c", script, delay]);
        let mut manager = node.ns.enter(|| manager.spawn()).expect("a manager");
        let run = node.netfix_json("restore").exits(0);
        assert!(run.coded(CONFLICT).is_empty(), "{}", run.transcript());
        manager.wait().expect("its end");
        node.assert_same_as(&before);
        node.lose_and_reload();
    }
}

#[test]
fn the_first_address_of_the_host_that_another_machine_has_is_an_error_with_a_way_out() {
    let node = Node::new();
    let (pod, before) = after_a_loss(&node, "10.88.0.2/16");
    let run = node.netfix_json("restore").exits(5);
    let words = ["10.88.0.2", GATEWAY_MAC, "eth0", "--conflict-probe off"];
    let run = run.errors(&[(CONFLICT, "")]).names(CONFLICT, "", &words);
    let has = addresses(&node.ns);
    assert!(
        !has.contains("10.88.0.2") && has.contains("fd88::2/64"),
        "{has}"
    );
    assert_eq!(run.pod(&pod)["state"], "restored");
    assert_eq!(run.json()["node"]["state"], "partial");

    node.netfix("restore --conflict-probe off").exits(0);
    node.assert_same_as(&before);
}

#[test]
fn an_address_behind_one_that_another_machine_has_takes_its_place_once() {
    let node = Node::new();
    node.ns.ip("addr add 10.88.0.7/16 dev eth0");
    let (_pod, before) = after_a_loss(&node, "10.88.0.2/16");
    node.netfix_json("restore")
        .exits(5)
        .errors(&[(CONFLICT, "")]);
    let has = node.ns.ip("addr show dev eth0");
    assert!(
        has.contains("10.88.0.7/16") && !has.contains("secondary"),
        "{has}"
    );
    let again = node.netfix_json("restore").exits(5);
    assert!(steps_on_host(&again).is_empty(), "{}", again.transcript());

    node.gateway.ip("addr del 10.88.0.2/16 dev up0");
    node.restore();
    node.assert_same_as(&before);
}

#[test]
fn an_ipv6_address_of_the_host_is_probed_where_the_kernel_does_not() {
    let node = Node::new();
    node.ns.ip("addr add fd88::250/128 dev eth0");
    let (_pod, _) = after_a_loss(&node, "fd88::250/128 nodad");
    let run = node.netfix_json("restore").exits(0);
    run.warnings(&[(CONFLICT, "")])
        .names(CONFLICT, "", &["fd88::250", GATEWAY_MAC, "eth0"]);
    let has = addresses(&node.ns);
    assert!(
        !has.contains("fd88::250") && has.contains("fd88::2/64"),
        "{has}"
    );
}

#[test]
fn an_address_that_another_link_of_the_host_has_is_not_probed() {
    let node = Node::new();
    node.ns.ip("link set lo up");
    for dev in ["lo", "eth0"] {
        node.ns.ip(&format!("addr add {VIRTUAL}/32 dev {dev}"));
    }
    let (_pod, before) = after_a_loss(&node, &format!("{VIRTUAL}/32"));
    node.netfix_json("restore").exits(0).has_no(CONFLICT);
    node.assert_same_as(&before);
}

#[test]
fn the_host_is_probed_beside_its_pods() {
    let node = Node::new();
    let pod = node.simple_pods(1).remove(0);
    node.snapshot();
    node.lose_and_reload();
    let frames = tcpdump(&node, "arp");
    node.restore();
    frames.wait_for(&format!("tell {},", pod.address()));
    let text = frames.text();
    let probes = text.lines().filter(|line| line.contains("tell 0.0.0.0"));
    let asked: Vec<&str> = probes
        .filter_map(|line| line.split("who-has ").nth(1)?.split(' ').next())
        .collect();
    let (host, own) = ("10.88.0.2", pod.address());
    // Two probes of each, on one clock.
    assert_eq!(asked, [&own, host, &own, host], "{text}");
    let mut of_host = text
        .lines()
        .filter(|line| line.contains("who-has 10.88.0.2 "));
    let first = of_host.next().unwrap_or_default();
    assert!(
        first.contains("02:00:00:88:00:02 > ff:ff:ff:ff:ff:ff"),
        "{text}"
    );
}
