//! A machine whose process 1 is systemd, with D-Bus and the journal: for tests that stop, mask and start units.

use std::process::Stdio;
use std::time::Duration;

use super::background::wait_until;
use super::machine::Machine;
use super::namespace::Namespace;
use super::node::Node;
use super::tool;

/// The main process of a test unit: it runs until it is stopped.
const KUBELET: &str = "[Service]\nExecStart=/bin/sleep infinity\n";

/// The administrator's unit files; a file there overrides a runtime mask.
pub const ADMINISTRATOR: &str = "/etc/systemd/system";
/// The unit files of packages.
pub const PACKAGES: &str = "/usr/lib/systemd/system";

impl Machine {
    /// On the node's network and in the node's temporary directory; systemd has started.
    pub fn with_systemd(node: &Node) -> Self {
        let machine = Self::with_first_process(node, "systemd");
        let is_up = || machine.systemctl("is-active multi-user.target").is_ok();
        assert!(
            wait_until(is_up),
            "systemd did not come up:\n{}",
            machine.systemd_state()
        );
        machine
    }

    /// systemctl(1) with its arguments in one string; `Err` holds its output when it failed.
    pub fn systemctl(&self, words: &str) -> Result<String, String> {
        tool::try_run(
            self.exec("systemctl")
                .args(words.split_whitespace())
                .stdin(Stdio::null()),
        )
    }

    /// Installs a service that replaces kubelet into a directory, and starts it.
    pub fn start_kubelet(&self, folder: &str) {
        self.put(&format!("{folder}/kubelet.service"), KUBELET);
        for words in ["daemon-reload", "start kubelet.service"] {
            self.systemctl(words).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    /// Writes a file by its path inside the machine.
    pub fn put(&self, path: &str, text: &str) {
        tool::run(
            self.exec("sh")
                .args(["-c", "printf %s \"$2\" >\"$1\"", "sh", path, text]),
        );
    }

    /// The value of a unit's property.
    pub fn unit(&self, name: &str, property: &str) -> String {
        let text = self.systemctl(&format!("show --value --property {property} {name}"));
        text.unwrap_or_else(|e| panic!("{e}")).trim().to_owned()
    }

    /// Gives a namespace its name inside the machine too, and starts a process in it.
    pub fn adopt(&self, ns: &Namespace) {
        let script = "mkdir -p /run/netns && : >\"$1\" && mount --no-canonicalize --bind /proc/self/ns/net \"$1\" && \
            exec >/dev/null 2>&1 && { sleep infinity & }";
        let mut command = tool::command("nsenter", ["--target", &self.init().to_string()]);
        command
            .args(["--mount", "--pid", "--cgroup", "--uts"])
            .arg(format!("--net={}", ns.path().display()));
        tool::run(
            command
                .args(["sh", "-c", script, "sh"])
                .arg(ns.path())
                .stdin(Stdio::null()),
        );
    }

    /// Removes the name inside the machine, and ends the process.
    pub fn disown(&self, ns: &Namespace) {
        let script = "ip netns pids \"$1\" | xargs -r kill -KILL && umount \"/run/netns/$1\" && rm \"/run/netns/$1\"";
        tool::run(self.exec("sh").args(["-c", script, "sh", ns.name()]));
    }

    /// Keeps a namespace open inside where netfix does not search; returns a path to it.
    pub fn hide(&self, ns: &Namespace) -> String {
        let script = "exec 9</proc/self/ns/net && { nsenter --net=/proc/1/ns/net sleep infinity >/dev/null & } && echo $!";
        let mut command = tool::command("nsenter", ["--target", &self.init().to_string()]);
        command
            .args(["--mount", "--pid", "--cgroup", "--uts"])
            .arg(format!("--net={}", ns.path().display()));
        let pid = tool::run(
            command
                .args(["sh", "-c", script])
                .stdin(Stdio::null())
                .stderr(Stdio::null()),
        );
        format!("/proc/{}/fd/9", pid.trim())
    }

    /// The state of systemd, for the text of a failed assertion.
    pub fn systemd_state(&self) -> String {
        let listing = |words: &str| self.systemctl(words).unwrap_or_else(|e| e);
        listing("list-units --all --no-pager") + &listing("list-jobs --no-pager")
    }
}
