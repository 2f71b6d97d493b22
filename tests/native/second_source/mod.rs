//! Pods without a snapshot, restored from what libcni recorded at their creation.

mod damaged;
mod in_containerd;
mod owners;
mod parents;
mod plugins;
mod whole;

use serde_json::{Value, json};

use crate::common::capture::Capture;
use crate::common::cni::static_ipam;
use crate::common::libcni::{Attached, Network, cache_dir};
use crate::common::{Node, Pod, Run};

/// A pod that plugins created, with its state at that time.
struct Subject<'n> {
    node: &'n Node,
    pod: Pod<'n>,
    attached: Vec<Attached>,
    before: Capture,
}

impl<'n> Subject<'n> {
    /// A pod with one interface of each network: eth0, net1, net2.
    fn new(node: &'n Node, name: &str, networks: &[&Network<'n>]) -> Self {
        Self::of(node, node.pod(name), networks)
    }

    /// The same with a pod that has no interface yet.
    fn of(node: &'n Node, pod: Pod<'n>, networks: &[&Network<'n>]) -> Self {
        let names = ["eth0", "net1", "net2"];
        let attached = networks
            .iter()
            .zip(names)
            .map(|(network, name)| network.attach(&pod, name))
            .collect();
        let before = pod.capture();
        Self {
            node,
            pod,
            attached,
            before,
        }
    }

    /// A pod with one macvlan and fixed addresses.
    fn plain(node: &'n Node, name: &str, addresses: &[&str]) -> Self {
        Self::plain_of(node, node.pod(name), addresses)
    }

    /// The same with a pod that has no interface yet.
    fn plain_of(node: &'n Node, pod: Pod<'n>, addresses: &[&str]) -> Self {
        let network = Network::new(node, "lab", &[macvlan(&static_ipam(addresses))]);
        Self::of(node, pod, &[&network])
    }

    /// The differences except those that such a source cannot avoid: the ifindex, the queue length, and settings that
    /// depend on the release of the plugin.
    fn unexplained(&self) -> Vec<String> {
        let unknown = ["ifindex", "txqlen", "ndisc_notify"];
        let lines = self.before.differences(&self.pod.capture()).into_iter();
        lines
            .filter(|line| !unknown.iter().any(|word| line.contains(word)))
            .collect()
    }

    /// The pod has its former state, except what is not recorded, and the CHECK of its plugins passes.
    fn assert_back(&self, run: &Run) {
        let lines = self.unexplained();
        let name = self.pod.name();
        assert!(
            lines.is_empty(),
            "{name} (- before, + after):\n{}\n{}",
            lines.join("\n"),
            run.transcript()
        );
        for attached in &self.attached {
            let checked = attached.check(self.node, &self.pod);
            checked.unwrap_or_else(|e| {
                panic!(
                    "CHECK of {name} {}: {e}\n{}",
                    attached.cached.interface,
                    run.transcript()
                )
            });
        }
    }
}

fn words(node: &Node, command: &str) -> String {
    format!(
        "{command} --source cni-cache --cni-cache-dir {}",
        cache_dir(node).display()
    )
}

fn restore(node: &Node) -> Run {
    node.netfix(&words(node, "restore"))
}

fn macvlan(ipam: &Value) -> Value {
    json!({"type": "macvlan", "master": "eth0", "mode": "bridge", "ipam": ipam})
}

/// A value with some keys set.
fn with(mut value: Value, keys: &Value) -> Value {
    for (key, new) in keys.as_object().into_iter().flatten() {
        value[key] = new.clone();
    }
    value
}
