//! An address or a MAC that several pods claim: it costs the claimants that object alone, and every other pod nothing.

use serde_json::json;

use crate::common::capture::Capture;
use crate::common::cni::static_ipam;
use crate::common::libcni::{Network, cache_dir};
use crate::common::{Node, Pod, Run};

/// A pod on the NIC with this other pod's address as its only one.
fn twin<'n>(node: &'n Node, of: &Pod<'_>) -> Pod<'n> {
    let twin = node.pod("twin");
    twin.macvlan("mode bridge", "");
    twin.ip("link set eth0 up");
    twin.ip(&format!("addr add {}/16 dev eth0", of.address()));
    twin
}

/// Everything is as before but for what is in the pods' IPv4 subnet, of which it has nothing.
#[track_caller]
fn assert_has_all_but_its_address(pod: &Pod<'_>, before: &Capture) {
    let differences = before.differences(&pod.capture());
    let is_other = |line: &&String| !line.contains("10.88.");
    let others: Vec<_> = differences.iter().filter(is_other).collect();
    assert!(others.is_empty(), "{}: {others:?}", pod.name());
    assert_eq!(pod.ip("-4 addr show dev eth0").trim(), "");
    assert_eq!(pod.ip("-4 route show").trim(), "");
}

fn captured(pods: &[Pod<'_>]) -> Vec<Capture> {
    pods.iter().map(Pod::capture).collect()
}

#[test]
fn of_two_claims_of_the_same_age_both_keep_the_address_and_after_a_loss_neither_gets_it() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let twin = twin(&node, &pods[1]);
    let (before, of_twin) = (captured(&pods), twin.capture());
    let both = [&pods[1], &twin];
    let address = pods[1].address();
    let run = node.netfix("snapshot").exits(5);
    run.claimed_by_both("address-conflict", both, &address);
    node.netfix("restore").exits(5);
    twin.assert_same_as(&of_twin);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    node.lose_and_reload();
    for words in ["plan", "restore"] {
        let run = node.netfix(words).exits(5);
        run.claimed_by_both("address-conflict", both, &address);
    }
    assert_has_all_but_its_address(&pods[1], &before[1]);
    assert_has_all_but_its_address(&twin, &of_twin);
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
}

#[test]
fn the_older_of_two_claims_is_restored_and_the_younger_one_named() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before = captured(&pods);
    node.snapshot();
    let twin = twin(&node, &pods[1]);
    let of_twin = twin.capture();
    let check = |run: Run| {
        run.exits(5)
            .errors(&[("address-conflict", twin.name())])
            .names(
                "address-conflict",
                twin.name(),
                &[&pods[1].address(), pods[1].name()],
            )
            .names("address-conflict", pods[1].name(), &[twin.name()])
    };
    check(node.netfix("snapshot"));
    node.lose_and_reload();
    for words in ["plan", "restore"] {
        check(node.netfix(words));
    }
    assert_has_all_but_its_address(&twin, &of_twin);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_claim_that_is_as_old_in_every_generation_gives_no_pod_the_address() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let twin = twin(&node, &pods[1]);
    // The generation that shows the pod alone goes.
    node.netfix("snapshot --keep 1").exits(5);
    node.lose_and_reload();
    let both = [&pods[1], &twin];
    let run = node.netfix("restore").exits(5);
    run.claimed_by_both("address-conflict", both, &pods[1].address());
}

#[test]
fn a_claim_of_an_older_generation_counts_only_while_its_pod_lives() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let gone = twin(&node, &pods[1]);
    pods[1].ip(&format!("addr del {}/16 dev eth0", pods[1].address()));
    node.snapshot();
    let name = gone.name().to_owned();
    drop(gone);
    pods[1].ip(&format!("addr add {}/16 dev eth0", pods[1].address()));
    pods[1].ip("route add default via 10.88.0.1");
    let before = captured(&pods);
    node.snapshot();
    node.lose_and_reload();
    node.netfix("restore")
        .exits(0)
        .names("netns-gone", &name, &[]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn the_pod_to_which_a_cni_plugin_gave_the_address_gets_it() {
    let node = Node::new();
    let web = node.pod("web");
    let address = format!("{}/16", web.address());
    let plugin = json!({"type": "macvlan", "master": "eth0", "ipam": static_ipam(&[&address])});
    let _attached = Network::new(&node, "macvlan", &[plugin]).attach(&web, "eth0");
    let twin = twin(&node, &web);
    let (before, of_twin) = (web.capture(), twin.capture());
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    let words = format!("restore --cni-cache-dir {}", cache_dir(&node).display());
    node.netfix(&words)
        .exits(5)
        .errors(&[("address-conflict", twin.name())])
        .names("address-conflict", twin.name(), &[web.name(), "CNI"]);
    web.assert_same_as(&before);
    assert_has_all_but_its_address(&twin, &of_twin);
}

#[test]
fn a_link_with_another_pods_mac_costs_that_link_alone() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before = captured(&pods);
    node.snapshot();
    // The kernel puts a macvlan on a macvlan onto the lower device.
    for number in [1, 2] {
        let mac = pods[number].mac();
        pods[0].ip(&format!(
            "link add thief{number} link eth0 address {mac} type macvlan mode bridge"
        ));
    }
    let thief = pods[0].name();
    node.netfix("snapshot")
        .exits(5)
        .errors(&[("mac-conflict", thief)]);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("mac-conflict", thief)])
        .names("mac-conflict", thief, &[&pods[1].mac(), pods[1].name()])
        .names("mac-conflict", thief, &[&pods[2].mac(), pods[2].name()]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn a_link_that_is_down_keeps_no_mac_from_its_pod() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = captured(&pods);
    node.snapshot();
    node.lose_and_reload();
    let heir = node.pod("heir");
    heir.macvlan("mode bridge", &format!("address {}", pods[1].mac()));
    let theirs = heir.capture();
    node.netfix("restore")
        .exits(5)
        .errors(&[("mac-conflict", heir.name())])
        .names(
            "mac-conflict",
            heir.name(),
            &[&pods[1].mac(), pods[1].name()],
        );
    theirs.assert_same(&heir.capture(), "the new pod");
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn an_address_that_a_new_pod_has_now_is_not_given_to_the_old_one() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    let before = captured(&pods);
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    let heir = twin(&node, &pods[1]);
    let theirs = heir.capture();
    node.netfix("restore")
        .exits(5)
        .errors(&[("address-conflict", pods[1].name())])
        .names(
            "address-conflict",
            pods[1].name(),
            &[&pods[1].address(), heir.name()],
        );
    theirs.assert_same(&heir.capture(), "the new pod");
    assert_has_all_but_its_address(&pods[1], &before[1]);
    for number in [0, 2] {
        pods[number].assert_same_as(&before[number]);
    }
}

#[test]
fn a_pod_with_all_its_neighbours_addresses_takes_none_of_them_away() {
    let node = Node::new();
    let pods = node.simple_pods(6);
    let before = captured(&pods);
    node.snapshot();
    for victim in &pods[1..] {
        pods[0].ip(&format!("addr add {}/32 dev eth0", victim.address()));
    }
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("address-conflict", pods[0].name())]);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn the_hosts_address_costs_a_pod_only_that_address() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.ns
        .ip(&format!("addr add {}/16 dev eth0", pods[0].address()));
    let (host, before) = (node.capture(), captured(&pods));
    let check = |words| {
        node.netfix(words)
            .exits(5)
            .errors(&[("address-conflict", pods[0].name())])
            .names(
                "address-conflict",
                pods[0].name(),
                &[&pods[0].address(), "the host"],
            );
    };
    check("snapshot");
    node.lose_and_reload();
    check("restore");
    node.assert_same_as(&host);
    assert_has_all_but_its_address(&pods[0], &before[0]);
    pods[1].assert_same_as(&before[1]);
}

#[test]
fn a_younger_address_of_the_host_is_the_pods_that_had_it_before() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let (host, before) = (node.capture(), captured(&pods));
    node.snapshot();
    let address = pods[0].address();
    node.ns.ip(&format!("addr add {address}/16 dev eth0"));
    let check = |words| {
        node.netfix(words)
            .exits(5)
            .errors(&[("address-conflict", "")])
            .names("address-conflict", "", &[&address, pods[0].name()]);
    };
    check("snapshot");
    node.lose_and_reload();
    check("restore");
    node.assert_same_as(&host);
    for (pod, before) in pods.iter().zip(&before) {
        pod.assert_same_as(before);
    }
}

#[test]
fn an_older_address_of_the_host_is_its_own_also_after_a_loss() {
    let node = Node::new();
    let mut pods = node.simple_pods(1);
    pods.push(node.pod("late"));
    let address = pods[1].address();
    node.ns.ip(&format!("addr add {address}/16 dev eth0"));
    let host = node.capture();
    node.snapshot();
    let late = pods.pop().expect("the late one").simple();
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("address-conflict", late.name())]);
    node.assert_same_as(&host);
}

#[test]
fn a_claim_that_was_given_up_meanwhile_is_not_older_than_that_of_the_present_owner() {
    let node = Node::new();
    let pods = node.simple_pods(3);
    node.snapshot();
    let address = format!("{}/16", pods[0].address());
    let other = "10.88.0.201/16";
    // The second pod takes over the address of the first one, which gets it again by mistake.
    pods[0].ip(&format!("addr del {address} dev eth0"));
    pods[0].ip(&format!("addr add {other} dev eth0"));
    pods[0].ip("route replace default via 10.88.0.1");
    pods[1].ip(&format!("addr add {address} dev eth0"));
    node.snapshot();
    pods[0].ip(&format!("addr add {address} dev eth0"));
    let before = captured(&pods);
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("address-conflict", pods[0].name())]);
    pods[1].assert_same_as(&before[1]);
    pods[2].assert_same_as(&before[2]);
}

#[test]
fn the_only_address_of_the_host_is_never_a_pods() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    node.snapshot();
    let address = pods[0].address();
    node.ns.ip("addr del 10.88.0.2/16 dev eth0");
    node.ns.ip(&format!("addr add {address}/16 dev eth0"));
    node.ns.ip("route replace default via 10.88.0.1");
    let host = node.capture();
    node.netfix("snapshot").exits(5);
    node.lose_and_reload();
    node.netfix("restore")
        .exits(5)
        .errors(&[("address-conflict", pods[0].name())]);
    node.assert_same_as(&host);
}
