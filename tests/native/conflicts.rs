//! Two claims on one object: netfix reports both sides and changes neither.

use std::process::Command;

use crate::common::background::{Background, Monitor};
use crate::common::capture::Capture;
use crate::common::{Node, Pod};

/// Some pods; after the loss a macvlan elsewhere on the parent has the MAC of the second one.
struct TakenMac<'n> {
    pods: Vec<Pod<'n>>,
    /// Of the first one and every `step`th.
    before: Vec<Capture>,
    thief: Pod<'n>,
}

impl<'n> TakenMac<'n> {
    fn new(node: &'n Node) -> Self {
        Self::among(node, 3, 1)
    }

    fn among(node: &'n Node, count: usize, step: usize) -> Self {
        let thief = node.bystander("thief");
        let pods = node.simple_pods(count);
        let before = pods.iter().step_by(step).map(Pod::capture).collect();
        let taken = Self {
            pods,
            before,
            thief,
        };
        taken.rob(node);
        taken
    }

    /// A snapshot, and a loss after which another has the MAC of the second pod.
    fn rob(&self, node: &Node) {
        node.snapshot();
        node.lose_and_reload();
        node.ns.ip("link set eth0 up");
        let address = format!("address {}", self.pods[1].mac());
        self.thief.macvlan("mode bridge", &address);
        self.thief.ip("link set eth0 up");
    }
}

#[test]
fn a_taken_mac_is_a_conflict_that_changes_nothing_in_its_pod_and_no_other_until_it_is_free() {
    let node = Node::new();
    let taken = TakenMac::new(&node);
    let robbed = &taken.pods[1];
    let (theirs, bare) = (taken.thief.capture(), robbed.capture());
    let conflict = [("mac-conflict", robbed.name())];
    node.netfix("restore").exits(5).errors(&conflict).names(
        "mac-conflict",
        robbed.name(),
        &[&robbed.mac(), taken.thief.name()],
    );
    for number in [0, 2] {
        taken.pods[number].assert_same_as(&taken.before[number]);
    }
    theirs.assert_same(&taken.thief.capture(), "the one who has the MAC");
    bare.assert_same(&robbed.capture(), "the pod whose MAC is taken");
    node.netfix_json("restore").exits(5).errors(&conflict);
    taken.thief.ip("link del eth0");
    node.restore();
    robbed.assert_same_as(&taken.before[1]);
}

#[test]
fn among_many_pods_a_taken_mac_and_a_namespace_that_dies_cost_only_their_pods() {
    // Neither the pods that die nor the one whose MAC is taken.
    const STEP: usize = 5;
    let node = Node::new();
    let taken = TakenMac::among(&node, 48, STEP);
    let (robbed, thief) = (&taken.pods[1], taken.thief.name());
    let mut others = vec![1];
    // Their links are created in three batches: without probes while there is work in the first ones.
    for (probe, dead) in [("off", 28), ("fast", 27)] {
        let name = taken.pods[dead].name();
        let script = format!("sleep 0.03; exec ip netns del {name}");
        let log = node.temp().join(format!("deletion-{dead}"));
        let deletion = Background::start(Command::new("sh").args(["-c", &script]), log);
        let restored = node.netfix(&format!("restore --conflict-probe {probe}"));
        drop(deletion);
        restored
            .exits(5)
            .names("mac-conflict", robbed.name(), &[thief]);
        others.push(dead);
        for (number, pod) in taken.pods.iter().enumerate() {
            assert!(others.contains(&number) || pod.has_eth0(), "{}", pod.name());
        }
        for (pod, before) in taken.pods.iter().step_by(STEP).zip(&taken.before) {
            pod.assert_same_as(before);
        }
        taken.thief.ip("link del eth0");
        node.restore();
        taken.rob(&node);
    }
}

#[test]
fn a_mac_taken_by_a_macvlan_of_the_node_is_reported_with_both_sides() {
    let node = Node::new();
    let pods = node.simple_pods(1);
    node.snapshot();
    node.lose_and_reload();
    node.ns.ip("link set eth0 up");
    node.ns.ip(&format!(
        "link add link eth0 name thief0 address {} type macvlan mode bridge",
        pods[0].mac()
    ));
    node.ns.ip("link set thief0 up");
    node.netfix("restore")
        .exits(1)
        .errors(&[("mac-conflict", pods[0].name())])
        .names("mac-conflict", pods[0].name(), &["thief0"]);
}

#[test]
fn an_interface_of_another_kind_with_the_pods_name_is_kept_and_reported() {
    let node = Node::new();
    let pods = node.simple_pods(2);
    let before = pods[0].capture();
    node.snapshot();
    node.lose_and_reload();
    pods[1].ip("link add eth0 type veth peer name other0");
    let intruder = pods[1].capture();
    node.netfix("restore")
        .exits(5)
        .errors(&[("link-conflict", pods[1].name())])
        .names("link-conflict", pods[1].name(), &["eth0", "veth"]);
    intruder.assert_same(&pods[1].capture(), "the pod with a veth named eth0");
    pods[0].assert_same_as(&before);
}

#[test]
fn a_taken_interface_index_is_reported_and_the_pod_is_restored_unnoticed_by_the_host() {
    let node = Node::new();
    let pod = node.pod("web");
    pod.macvlan("mode bridge", "index 777");
    pod.up_with_address();
    node.snapshot();
    node.lose_and_reload();
    pod.ip("link add other0 index 777 type bridge");
    node.netfix(&format!("restore --netns {}", node.pods_glob()))
        .exits(0);
    pod.ip("link del eth0");
    let monitor = Monitor::of(&node.ns, &node);
    let run =
        node.netfix("restore")
            .exits(0)
            .errors(&[])
            .names("ifindex-differs", pod.name(), &["777"]);
    let heard = monitor.heard();
    let is_about_another = |line: &&str| line.contains(": ") && !line.contains(": eth0@");
    let others: Vec<_> = heard.lines().filter(is_about_another).collect();
    assert!(others.is_empty(), "{others:?}\n{}", run.transcript());
    let link = pod.ip("-o addr show dev eth0");
    assert!(
        link.contains(&pod.address()),
        "the pod stayed dead: {link}\n{}",
        run.transcript()
    );
    assert!(
        pod.ip("-o link show dev other0").starts_with("777:"),
        "other0 lost its index\n{}",
        run.transcript()
    );
}
