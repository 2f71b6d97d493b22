//! A pod: a mounted namespace with a macvlan `eth0` on the node's parent.

use std::fs;
use std::process::Child;
use std::time::Duration;

use serde_json::Value;

use super::background::wait_until;
use super::capture::Capture;
use super::cni::Attachment;
use super::namespace::Namespace;
use super::node::{GATEWAY4, Node};
use super::tool;

pub struct Pod<'n> {
    pub ns: Namespace,
    node: &'n Node,
    number: u8,
    sleeper: Option<Child>,
    attachment: Option<Attachment>,
}

impl<'n> Pod<'n> {
    pub(super) fn new(node: &'n Node, name: &str, number: u8) -> Self {
        let ns = Namespace::new(&format!("{name}{number}"));
        Self {
            ns,
            node,
            number,
            sleeper: None,
            attachment: None,
        }
    }

    pub fn name(&self) -> &str {
        self.ns.name()
    }

    /// The pod's IPv4 address, without the prefix length.
    pub fn address(&self) -> String {
        format!("10.88.1.{}", self.number)
    }

    pub fn address6(&self) -> String {
        format!("fd88::1:{}", self.number)
    }

    pub fn mac(&self) -> String {
        format!("02:00:00:88:01:{:02x}", self.number)
    }

    pub fn ip(&self, words: &(impl AsRef<[u8]> + ?Sized)) -> String {
        self.ns.ip(words)
    }

    /// tc(8) in the pod.
    pub fn tc(&self, words: &str) {
        self.tc_batch(&format!("{words}\n"));
    }

    /// A filter of a kind that netfix does not restore.
    pub fn add_bpf_filter(&self) {
        self.tc("qdisc add dev eth0 clsact");
        self.tc("filter add dev eth0 egress pref 5 bpf bytecode \"1,6 0 0 0\" direct-action");
    }

    /// Attaches a program to `eth0`: `tcx`, at its ingress, or `xdp`.
    pub fn attach_program(&self, kind: &str) {
        let words = ["-c", include_str!("bpf.py"), kind, "eth0"];
        let mut command = tool::command("python3", words);
        self.ns.enter(|| tool::run(&mut command));
    }

    /// tc(8) in the pod, one command a line; a word with spaces is in quotes.
    pub fn tc_batch(&self, lines: &str) {
        let mut command = tool::command("tc", ["-batch", "-"]);
        self.ns.enter(|| tool::feed(&mut command, lines));
    }

    /// Adds a macvlan `eth0` with the pod's MAC, and leaves it down. `kind` is what follows `type
    /// macvlan`, `link` what precedes it.
    pub fn macvlan(&self, kind: &str, link: &str) {
        let (name, mac) = (self.ns.name(), self.mac());
        let address = if link.contains("address") {
            String::new()
        } else {
            format!("address {mac}")
        };
        // Older kernels refuse the name of a link that is in the host's own namespace.
        self.node.ns.ip(&format!(
            "link add link eth0 name new0 netns {name} {address} {link} type macvlan {kind}"
        ));
        self.ip("link set new0 name eth0");
    }

    /// A macvlan in bridge mode, up, one IPv4 address, a default route.
    pub fn simple(self) -> Self {
        self.macvlan("mode bridge", "");
        self.up_with_address();
        self
    }

    pub fn up_with_address(&self) {
        let address = self.address();
        self.ns.batch(&format!(
            "link set eth0 up\naddr add {address}/16 dev eth0\nroute add default via {GATEWAY4}\n"
        ));
    }

    /// Attaches the pod with the real CNI plugin. `ipam` is that section of the plugin's configuration.
    pub fn attach(mut self, ipam: &Value) -> Self {
        self.attachment = Some(Attachment::add(self.node, &self.ns, ipam));
        // Plugins since 1.2 set this in addition to arp_notify; distributions still ship 1.1.
        self.ns.set_sysctl("ipv6/conf/eth0/ndisc_notify", "1");
        self
    }

    /// The plugin's CHECK against the result of its ADD.
    pub fn cni_check(&self) -> Result<(), String> {
        let attachment = self
            .attachment
            .as_ref()
            .expect("the pod was not attached with the CNI plugin");
        attachment.check(self.node, &self.ns)
    }

    /// Starts a process in the pod, so that netfix finds the pod through /proc too.
    pub fn with_process(mut self) -> Self {
        self.replace_process();
        self
    }

    /// Ends the pod's process and starts another one, as a container restart does.
    pub fn replace_process(&mut self) {
        self.end_process();
        let child = self.ns.exec("sleep").arg("600").spawn();
        self.sleeper =
            Some(child.unwrap_or_else(|e| panic!("cannot start sleep in {}: {e}", self.ns.name())));
        self.wait_for_process();
    }

    pub fn end_process(&mut self) {
        if let Some(child) = &mut self.sleeper {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn wait_for_process(&self) {
        let comm = format!("/proc/{}/comm", self.process_id());
        let there = || fs::read_to_string(&comm).is_ok_and(|comm| comm.trim() == "sleep");
        assert!(
            wait_until(there),
            "sleep did not start in {}",
            self.ns.name()
        );
    }

    pub fn process_id(&self) -> u32 {
        self.sleeper
            .as_ref()
            .map(Child::id)
            .expect("no process was started in the pod")
    }

    pub fn has_eth0(&self) -> bool {
        self.ns.has_link("eth0")
    }

    pub fn capture(&self) -> Capture {
        Capture::of_pod(&self.ns, &self.node.ns)
    }

    /// Fails unless the pod returns to its captured state within the time of duplicate address detection.
    pub fn assert_same_as(&self, before: &Capture) {
        before.assert_becomes(self.ns.name(), || self.capture());
    }
}

impl Drop for Pod<'_> {
    fn drop(&mut self) {
        self.end_process();
    }
}
