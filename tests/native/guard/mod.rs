//! `netfix guard`: restores by itself what was lost without a window, and nothing else.

mod alone;
mod day;
mod lasting;
mod losses;
mod persons;
mod policy;
mod quiet;

use std::fs;

use serde_json::Value;

use crate::common::background::{Background, wait_until};
use crate::common::{Node, Pod, Run};

/// Short times, unless others are given.
fn quick(words: &str) -> String {
    let times = [
        "--watch 1s",
        "--manager-wait 0s",
        "--nic-wait 2s",
        "--backoff 1s",
    ];
    let is_given = |time: &&str| {
        time.split(' ')
            .next()
            .is_some_and(|name| words.contains(name))
    };
    let missing: Vec<&str> = times.into_iter().filter(|time| !is_given(time)).collect();
    format!("guard {words} {}", missing.join(" "))
}

/// A guard that runs beside the test.
struct Guard<'n> {
    node: &'n Node,
    process: Background,
}

impl<'n> Guard<'n> {
    /// One that has looked for the first time.
    fn start(node: &'n Node, words: &str) -> Self {
        Self::run(node, node.netfix_command(&[], &quick(words)))
    }

    fn run(node: &'n Node, mut command: std::process::Command) -> Self {
        let file = node.temp().join(format!("guard-{}", unique()));
        let guard = Self {
            node,
            process: Background::start(&mut command, file),
        };
        guard.says("watching");
        guard
    }

    fn text(&self) -> String {
        self.process.text()
    }

    fn says(&self, words: &str) {
        let is_said = || self.text().contains(words);
        assert!(wait_until(is_said), "{words:?} not in\n{}", self.text());
    }

    /// Waits until so many of its windows are closed.
    fn closes(&self, windows: usize) -> Vec<Value> {
        let done = || self.windows().len() >= windows;
        assert!(wait_until(done), "{}", self.text());
        // The line after the window.
        let count = || self.text().matches(": netfix report ").count();
        assert!(wait_until(|| count() >= windows), "{}", self.text());
        self.windows()
    }

    fn windows(&self) -> Vec<Value> {
        unplanned(self.node)
    }
}

fn unique() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The records of closed windows that a guard opened, the oldest first.
fn unplanned(node: &Node) -> Vec<Value> {
    let folder = fs::read_dir(node.state_dir().join("windows"));
    let files = folder.into_iter().flatten().flatten().map(|one| one.path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    files.sort();
    let texts = files
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok());
    let records = texts.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
    records
        .filter(|record| record["kind"] == "unplanned" && !record["ended"].is_null())
        .collect()
}

/// What the guard remembers.
fn remembered(node: &Node) -> Value {
    let text = fs::read_to_string(node.state_dir().join("guard.json"));
    serde_json::from_str(&text.unwrap_or_default()).unwrap_or_default()
}

/// One look.
fn once(node: &Node, words: &str) -> Run {
    node.netfix(&quick(&format!("--once {words}")))
}

/// One look, not started yet.
fn starting(node: &Node, words: &str) -> std::process::Command {
    let mut command = node.netfix_command(&[], &quick(&format!("--once {words}")));
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    command
}

/// A window of `netfix upgrade` with this COMMAND, not started yet.
fn upgrade(node: &Node, options: &str, command: &[&str]) -> std::process::Command {
    let words = format!(
        "upgrade --yes --foreground --no-pause --no-rehearsal --watch 0s --nic-wait 0s --manager-wait 0s {options}"
    );
    let mut whole = node.netfix_command(&[], &words);
    whole.arg("--").args(command);
    whole
}

/// A pod on another parent than `eth0`, without a gateway.
fn pod_on<'n>(node: &'n Node, name: &str, parent: &str) -> Pod<'n> {
    let pod = node.pod(name);
    let (netns, mac) = (pod.name(), pod.mac());
    node.ns.ip(&format!(
        "link add link {parent} name new0 netns {netns} address {mac} type macvlan mode bridge"
    ));
    pod.ip("link set new0 name eth0");
    pod.ip("link set eth0 up");
    pod.ip(&format!("addr add {}/16 dev eth0", pod.address()));
    pod
}

/// A link on `eth0` that goes with it and that somebody can delete; this kernel has no VLANs.
fn add_upper(node: &Node) {
    node.ns
        .ip("link add vx0 type vxlan id 9 dev eth0 dstport 4789 group 239.1.1.1");
    node.ns.ip("link set vx0 up");
}

/// A command that takes no selectors, among the processes of this machine.
fn beside(node: &Node, words: &str) -> Run {
    let mut command = node.ns.exec(env!("CARGO_BIN_EXE_netfix"));
    command.args(words.split(' '));
    command.arg("--state-dir").arg(node.state_dir());
    Run::of(command.env("NETFIX_RUNTIME", "none").env("NO_COLOR", "1"))
}
