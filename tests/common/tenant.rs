//! A pod without a mount: its namespace exists as long as its processes.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::background::wait_until;
use super::capture::Capture;
use super::namespace::{Namespace, unique_name};
use super::node::{GATEWAY4, Node};
use super::reuse::{Unnamed, inode_of};

pub struct Tenant<'n> {
    node: &'n Node,
    processes: Vec<Child>,
}

impl<'n> Tenant<'n> {
    /// One process, and only a loopback device.
    pub fn new(node: &'n Node) -> Self {
        let mut tenant = Self {
            node,
            processes: Vec::new(),
        };
        tenant.start(Command::new("unshare").args(["--net", "sleep", "600"]));
        tenant
    }

    /// With a macvlan in bridge mode, an address and a default route.
    pub fn simple(self, address: &str) -> Self {
        self.attached(|ns| furnish(self.node, ns, address));
        self
    }

    /// A second process, younger than the first.
    pub fn with_another_process(mut self) -> Self {
        let pid = self.process_id().to_string();
        self.start(Command::new("nsenter").args(["--target", &pid, "--net", "sleep", "600"]));
        self
    }

    fn start(&mut self, command: &mut Command) {
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let comm = format!("/proc/{}/comm", child.id());
        self.processes.push(child);
        let sleeps = || fs::read_to_string(&comm).is_ok_and(|comm| comm.trim() == "sleep");
        assert!(wait_until(sleeps), "{command:?} did not start");
    }

    /// The oldest process.
    pub fn process_id(&self) -> u32 {
        self.processes
            .first()
            .map(Child::id)
            .expect("a process in the namespace")
    }

    /// Ends the oldest process.
    pub fn lose_oldest(&mut self) {
        let mut oldest = self.processes.remove(0);
        oldest
            .kill()
            .and_then(|()| oldest.wait())
            .expect("the oldest process ends");
    }

    /// A path to its namespace.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.process_id()))
    }

    /// The option that selects it.
    pub fn selector(&self) -> String {
        format!("--netns {}", self.path().display())
    }

    /// Gives the namespace a name while `work` runs.
    pub fn attached<T>(&self, work: impl FnOnce(&Namespace) -> T) -> T {
        work(&Namespace::attach(&unique_name(), self.process_id()))
    }

    pub fn capture(&self) -> Capture {
        self.attached(|ns| Capture::of_pod(ns, &self.node.ns))
    }

    pub fn assert_same_as(&self, before: &Capture) {
        before.assert_becomes("the pod without a mount", || self.capture());
    }

    pub fn has_eth0(&self) -> bool {
        self.attached(|ns| ns.has_link("eth0"))
    }
}

impl Drop for Tenant<'_> {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A process that moves from one namespace to another.
pub struct Wanderer {
    shell: Child,
}

impl Wanderer {
    /// Starts it in a new namespace.
    pub fn new() -> Self {
        let shell = Command::new("unshare")
            .args(["--net", "sh"])
            .stdin(Stdio::piped())
            .spawn();
        let wanderer = Self {
            shell: shell.unwrap_or_else(|e| panic!("cannot start unshare: {e}")),
        };
        let comm = format!("/proc/{}/comm", wanderer.id());
        let there = || fs::read_to_string(&comm).is_ok_and(|comm| comm.trim() == "sh");
        assert!(wait_until(there), "no shell in a namespace of its own");
        wanderer
    }

    pub fn id(&self) -> u32 {
        self.shell.id()
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.id()))
    }

    pub fn move_to(&mut self, namespace: &Unnamed) {
        let command = format!("exec nsenter --net={} sh\n", namespace.path().display());
        let stdin = self.shell.stdin.as_mut().expect("stdin is a pipe");
        stdin
            .write_all(command.as_bytes())
            .expect("a shell that reads");
        let there = || inode_of(&self.path()) == namespace.inode();
        assert!(
            wait_until(there),
            "the shell did not go to another namespace"
        );
    }
}

impl Drop for Wanderer {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// Adds a macvlan in bridge mode, an address and a default route to a namespace.
pub fn furnish(node: &Node, ns: &Namespace, address: &str) {
    ns.set_sysctl("ipv6/conf/default/dad_transmits", "0");
    ns.ip("link set lo up");
    node.ns.ip(&format!(
        "link add link eth0 name new0 netns {} type macvlan mode bridge",
        ns.name()
    ));
    ns.ip("link set new0 name eth0");
    ns.ip("link set eth0 up");
    ns.ip(&format!("addr add {address}/16 dev eth0"));
    ns.ip(&format!("route add default via {GATEWAY4}"));
}
