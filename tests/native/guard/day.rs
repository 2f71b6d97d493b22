//! A day of losses in a short time: five kinds, one after the other, beside two pods that no restore can complete.

#![allow(clippy::print_stdout, reason = "the figures are for people")]

use std::env;
use std::thread;
use std::time::{Duration, Instant};

use super::quiet::{anonymous, switches};
use super::{Guard, remembered};
use crate::common::background::wait_until;
use crate::common::node::GATEWAY4;
use crate::common::{Node, Pod, tool};

/// A NIC of the node beside `eth0`: its other end is the router of its network.
struct Nic {
    name: &'static str,
    /// 10.N.0.0/16
    network: u8,
    /// The network in a VXLAN on it.
    over: Option<u8>,
}

const SECOND: Nic = Nic {
    name: "eth1",
    network: 91,
    over: None,
};
const UNDER_VXLAN: Nic = Nic {
    name: "eth2",
    network: 92,
    over: Some(94),
};
/// The VXLAN is the uplink of a bridge.
const UNDER_BRIDGE: Nic = Nic {
    name: "eth3",
    network: 93,
    over: Some(95),
};

/// What makes the VXLAN of a network.
fn vxlan(network: u8) -> String {
    format!("link add vx{network} type vxlan id {network} dstport 4789 group 239.1.1.1")
}

impl Nic {
    fn load(&self, node: &Node) {
        let (name, gateway, network) = (self.name, node.gateway.name(), self.network);
        node.ns.ip(&format!(
            "link add {name} address 02:00:00:{network}:00:02 type veth peer name up-{name} netns {gateway}"
        ));
        node.gateway.batch(&format!(
            "link set up-{name} up\naddr add 10.{network}.0.1/16 dev up-{name}\n"
        ));
        if let Some(over) = self.over {
            let link = vxlan(over);
            node.gateway.batch(&format!(
                "{link} dev up-{name}\nlink set vx{over} address 02:00:00:{over}:00:01 up\naddr add 10.{over}.0.1/16 dev vx{over}\n"
            ));
        }
    }

    fn lose(&self, node: &Node) {
        node.ns.ip(&format!("link del {}", self.name));
    }
}

/// The pods that must come back, each with its gateway.
type Healthy<'n> = Vec<(Pod<'n>, String)>;

/// What is lost, the first of the two pods that lose their network with it, and what makes it so.
type KindOfLoss<'n> = (&'static str, usize, Box<dyn Fn() + 'n>);

fn losses(node: &Node) -> [KindOfLoss<'_>; 5] {
    let again = |nic: &'static Nic| {
        move || {
            nic.lose(node);
            nic.load(node);
        }
    };
    [
        ("eth0", 0, Box::new(|| node.lose_and_reload())),
        ("a second NIC", 2, Box::new(again(&SECOND))),
        ("a NIC with a VXLAN", 4, Box::new(again(&UNDER_VXLAN))),
        ("the uplink of a bridge", 6, Box::new(again(&UNDER_BRIDGE))),
        (
            "eth0, twice",
            0,
            Box::new(|| {
                node.lose_and_reload();
                thread::sleep(Duration::from_millis(200));
                node.lose_and_reload();
            }),
        ),
    ]
}

fn healthy(node: &Node) -> Healthy<'_> {
    for nic in [&SECOND, &UNDER_VXLAN, &UNDER_BRIDGE] {
        nic.load(node);
        let (name, network) = (nic.name, nic.network);
        node.ns.ip(&format!("link set {name} up"));
        if let Some(over) = nic.over {
            let link = vxlan(over);
            node.ns.batch(&format!(
                "addr add 10.{network}.0.2/16 dev {name}\n{link} dev {name}\nlink set vx{over} up\n"
            ));
        }
    }
    // Its MAC is its own, not that of its lowest port.
    node.ns.batch(
        "link add br0 address 02:00:00:95:00:03 type bridge\nlink set br0 up\nlink set vx95 master br0\n",
    );
    let mut all = Healthy::new();
    for pod in node.simple_pods(2) {
        all.push((pod, GATEWAY4.to_owned()));
    }
    for (parent, network) in [("eth1", 91), ("vx94", 94), ("br0", 95)] {
        for number in [11, 12] {
            let pod = node.pod(parent);
            let (name, mac) = (pod.name().to_owned(), pod.mac());
            if parent == "br0" {
                node.ns.ip(&format!(
                    "link add veth{number} type veth peer name eth0 address {mac} netns {name}"
                ));
                node.ns.ip(&format!("link set veth{number} master br0 up"));
            } else {
                node.ns.ip(&format!(
                    "link add link {parent} name new0 netns {name} address {mac} type macvlan mode bridge"
                ));
                pod.ip("link set new0 name eth0");
            }
            pod.ns.batch(&format!(
                "link set eth0 up\naddr add 10.{network}.0.{number}/16 dev eth0\nroute add default via 10.{network}.0.1\n"
            ));
            all.push((pod, format!("10.{network}.0.1")));
        }
    }
    all
}

fn answers((pod, gateway): &(Pod<'_>, String)) -> bool {
    let mut ping = tool::command("ping", ["-n", "-q", "-c1", "-W0.2", gateway]);
    pod.ns.enter(|| tool::try_run(&mut ping).is_ok())
}

/// `NETFIX_LOSSES` losses in `NETFIX_MINUTES`.
fn number(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn losses_of_five_kinds_take_nothing_from_healthy_pods_beside_two_that_cannot_be_completed() {
    let (count, minutes) = (number("NETFIX_LOSSES"), number("NETFIX_MINUTES"));
    let is_measured = count.is_some();
    let count = count.unwrap_or(10);
    let between = Duration::from_millis(minutes.unwrap_or(0) * 60_000 / count);
    let node = Node::new();
    let healthy = healthy(&node);
    let [taken, bridged] = [node.pod("taken").simple(), node.pod("bridged").simple()];
    assert!(wait_until(|| healthy.iter().all(answers)));
    let before: Vec<_> = healthy.iter().map(|(pod, _)| pod.capture()).collect();
    node.snapshot();
    let guard = Guard::start(&node, "--backoff 400ms");
    // A tenant's own.
    bridged.ip("link del eth0");
    bridged.ip("link add eth0 type bridge");
    // Another machine's address by now; it answers as soon as its end of the wire is there.
    let address = taken.address();
    node.gateway.ip(&format!("addr add {address}/32 dev lo"));
    let kinds = losses(&node);
    let mut took = Vec::new();
    for (number, (kind, first, lose)) in (0..count).zip(kinds.iter().cycle()) {
        let begun = Instant::now();
        lose();
        let back = Instant::now();
        let lost = &healthy[*first..*first + 2];
        let are_back = wait_until(|| lost.iter().all(answers));
        assert!(are_back, "loss {number}, {kind}: {}", guard.text());
        took.push((back.elapsed(), *kind));
        thread::sleep(between.saturating_sub(begun.elapsed()));
    }
    took.sort();
    let (longest, median) = (took[took.len() - 1], took[took.len() / 2]);
    println!("{count} losses: back after {median:?} (median), {longest:?} (longest)");
    // On a machine that does nothing else.
    assert!(
        !is_measured || longest.0 < Duration::from_secs(2),
        "{took:?}"
    );
    assert!(!guard.text().contains("loss-repeats"), "{}", guard.text());
    let is_over = || remembered(&node)["watch"].is_null();
    assert!(wait_until(is_over), "{}", guard.text());
    for ((pod, _), before) in healthy.iter().zip(&before) {
        pod.assert_same_as(before);
    }
    assert!(bridged.ip("-d link show eth0").contains("bridge"));
    assert!(!taken.ip("addr show").contains(&address));
    assert!(guard.windows().len() <= 50, "{}", guard.windows().len());
    let memory = anonymous(&guard);
    assert!(memory < 10 * 1024, "{memory} kB");
    // Nothing is left to do, once the two are gone.
    drop((taken, bridged));
    node.restore();
    let is_idle = || {
        let memory = remembered(&node);
        memory["again_at"].is_null() && memory["watch"].is_null()
    };
    assert!(
        wait_until(is_idle),
        "{:#}\n{}",
        remembered(&node),
        guard.text()
    );
    // The kernel takes their namespaces down later, with events of the links under them.
    let sleeps = || {
        let idle = switches(&guard);
        thread::sleep(Duration::from_secs(5));
        switches(&guard) == idle
    };
    assert!(wait_until(sleeps), "{}", guard.text());
    println!("memory: {memory} kB; no wake-up while idle");
}
