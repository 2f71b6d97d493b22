//! The node: a private host namespace, its parent interface `eth0`, and the gateway at the other end of the
//! wire.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::background::wait_until;
use super::capture::Capture;
use super::leftovers::FOLDER_PREFIX;
use super::namespace::{Namespace, unique_name};
use super::pod::Pod;
use super::tool;

pub const GATEWAY4: &str = "10.88.0.1";
pub const GATEWAY6: &str = "fd88::1";
/// Makes a NIC of another driver.
pub const OTHER_NIC: &str = "ip link add other index 77 address 02:00:00:00:00:77 type vxlan id 9 dstport 4789\nip link set other up";
pub const PARENT_MAC: &str = "02:00:00:88:00:02";

pub struct Node {
    pub ns: Namespace,
    pub gateway: Namespace,
    temp: TempDir,
    next_pod: Cell<u8>,
}

impl Node {
    /// A node with `eth0` up, one IPv4 and one IPv6 address, and default routes to the gateway.
    pub fn new() -> Self {
        let node = Self::without_addresses();
        node.give_addresses();
        node
    }

    /// What a network manager does with the NIC.
    pub fn give_addresses(&self) {
        self.ns.batch(&format!(
            "link set eth0 up
            addr add 10.88.0.2/16 dev eth0
            addr add fd88::2/64 dev eth0
            route add default via {GATEWAY4}
            route add default via {GATEWAY6}\n"
        ));
    }

    /// A node whose `eth0` is up and has no address.
    pub fn without_addresses() -> Self {
        tool::require_everything();
        let name = unique_name();
        let node = Self {
            ns: Namespace::new(&name),
            gateway: Namespace::new(&format!("{name}gw")),
            temp: TempDir::with_prefix(format!("{FOLDER_PREFIX}{name}-"))
                .expect("a temporary folder"),
            next_pod: Cell::new(10),
        };
        for ns in [&node.ns, &node.gateway] {
            ns.set_sysctl("ipv6/conf/default/dad_transmits", "0");
        }
        node.reload();
        node.ns.ip("link set eth0 up");
        node
    }

    /// What unloading a driver does: it removes the parent and every macvlan on it.
    pub fn lose(&self) {
        self.ns.ip("link del eth0");
        assert!(
            !self.gateway.has_link("up0"),
            "the veth pair is still there"
        );
    }

    /// What loading a driver does: the same NIC appears, down and without addresses. The other end of the wire is up
    /// and has its addresses.
    pub fn reload(&self) {
        self.reload_without_carrier();
        self.give_carrier();
    }

    pub fn reload_without_carrier(&self) {
        let gateway = self.gateway.name();
        self.ns.ip(&format!("link add eth0 address {PARENT_MAC} type veth peer name up0 address 02:00:00:88:00:01 netns {gateway}"));
    }

    pub fn give_carrier(&self) {
        self.gateway.batch(&format!(
            "link set up0 up\naddr add {GATEWAY4}/16 dev up0\naddr add {GATEWAY6}/64 dev up0\n"
        ));
    }

    pub fn lose_and_reload(&self) {
        self.lose();
        self.reload();
    }

    /// The NIC is lost and back, and up. The other end of its wire is another machine's, which sends at once: here it is ready when the
    /// kernel has seen its carrier, which takes time on a busy machine.
    pub fn lose_and_connect(&self) {
        self.lose_and_reload();
        self.ns.ip("link set eth0 up");
        for (ns, link) in [(&self.ns, "eth0"), (&self.gateway, "up0")] {
            let is_ready = || ns.ip(&format!("-br link show {link}")).contains(" UP ");
            assert!(wait_until(is_ready), "{link} is not ready");
        }
    }

    /// An empty pod. Duplicate address detection is off in it, which saves a second or two for each capture.
    pub fn pod(&self, name: &str) -> Pod<'_> {
        let pod = self.pod_with_dad(name);
        pod.ns.set_sysctl("ipv6/conf/default/dad_transmits", "0");
        pod
    }

    /// An empty pod with duplicate address detection on, as on a real node.
    pub fn pod_with_dad(&self, name: &str) -> Pod<'_> {
        Pod::new(
            self,
            &format!("{}.{name}", self.ns.name()),
            self.next_number(),
        )
    }

    /// A pod that `pods_glob` does not select.
    pub fn bystander(&self, name: &str) -> Pod<'_> {
        Pod::new(
            self,
            &format!("{}{name}", self.ns.name()),
            self.next_number(),
        )
    }

    fn next_number(&self) -> u8 {
        self.next_pod.replace(self.next_pod.get() + 1)
    }

    /// A pod on a NIC of another driver than the veth under the other pods, see `OTHER_NIC`.
    pub fn pod_on_other_nic(&self, name: &str) -> Pod<'_> {
        for line in OTHER_NIC.lines() {
            self.ns.ip(line.trim_start_matches("ip "));
        }
        let pod = self.pod(name);
        self.ns.ip(&format!(
            "link add link other name new0 netns {} type macvlan mode bridge",
            pod.name()
        ));
        pod.ip("link set new0 name eth0 up");
        pod.ip("addr add 172.31.0.9/24 dev eth0");
        pod
    }

    /// `count` pods with a macvlan, one address and a default route each.
    pub fn simple_pods(&self, count: usize) -> Vec<Pod<'_>> {
        let names = ["web", "api", "db", "cache", "queue"];
        names
            .iter()
            .cycle()
            .take(count)
            .map(|name| self.pod(name).simple())
            .collect()
    }

    /// The glob that selects this node's pods and no others.
    pub fn pods_glob(&self) -> String {
        format!("/run/netns/{}.*", self.ns.name())
    }

    /// A directory that is removed after the test.
    pub fn temp(&self) -> PathBuf {
        self.temp.path().to_owned()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.temp.path().join("state")
    }

    /// The pod's checkpoint file, found by its `netns`.
    pub fn checkpoint_of(&self, pod: &Pod<'_>) -> PathBuf {
        let folder = self.state_dir().join("checkpoints");
        let files = fs::read_dir(&folder)
            .unwrap_or_else(|e| panic!("cannot list {}: {e}", folder.display()));
        let names_pod = |path: &PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let value: Value = serde_json::from_str(&text).unwrap_or_default();
            value["netns"]
                .as_str()
                .is_some_and(|netns| netns.ends_with(&format!("/{}", pod.ns.name())))
        };
        let mut found = files.flatten().map(|entry| entry.path()).filter(names_pod);
        found.next().unwrap_or_else(|| {
            panic!(
                "no checkpoint names {} in {}",
                pod.ns.name(),
                folder.display()
            )
        })
    }

    /// Every file of the state directory with its content, except the lock.
    pub fn state_files(&self) -> Vec<(PathBuf, String)> {
        let mut folders = vec![self.state_dir()];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => folders.push(path),
                    false if path.ends_with("lock") => {}
                    false => {
                        files.push((path.clone(), fs::read_to_string(&path).unwrap_or_default()));
                    }
                }
            }
        }
        files.sort();
        files
    }

    /// Snapshot, loss, reload, restore: afterwards each pod and the node have their former state.
    pub fn assert_all_survive_a_loss(&self, pods: &[Pod<'_>]) {
        let before: Vec<_> = pods.iter().map(Pod::capture).collect();
        let host = self.capture();
        self.snapshot();
        self.assert_rehearsed(pods.len());
        self.lose_and_reload();
        assert!(
            pods.iter().all(|pod| !pod.has_eth0()),
            "a pod kept its eth0 over the loss"
        );
        self.restore();
        for (pod, before) in pods.iter().zip(&before) {
            pod.assert_same_as(before);
        }
        self.assert_same_as(&host);
    }

    /// A rehearsal finds that so many pods come back identical.
    pub fn assert_rehearsed(&self, pods: usize) {
        let run = self.netfix_json("check --rehearse");
        let found = run.coded("rehearsal-differs");
        assert!(found.is_empty(), "{}", run.transcript());
        let figures = &run.json()["check"]["rehearsal"];
        let identical = figures["identical"]
            .as_u64()
            .and_then(|some| some.try_into().ok());
        assert_eq!(identical, Some(pods), "{}", run.transcript());
    }

    pub fn assert_same_as(&self, before: &Capture) {
        before.assert_becomes("the node", || self.capture());
    }

    pub fn capture(&self) -> Capture {
        Capture::of_node(&self.ns)
    }
}

/// A simple pod with these objects, each a line for ip(8).
pub fn prepared<'n>(node: &'n Node, lines: &[&str]) -> Pod<'n> {
    let pod = node.pod("web").simple();
    for line in lines {
        pod.ip(line);
    }
    pod
}
