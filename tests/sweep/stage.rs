//! A node with two pods on a separate machine, and the initial states of commands.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::common::background::wait_until;
use crate::common::machine::Machine;
use crate::common::namespace::Namespace;
use crate::common::node::PARENT_MAC;
use crate::common::run::{BINARY, Run};
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, tool};
use crate::fault::Fault;
use crate::kubelet;

const LIMIT_SECONDS: &str = "600";
/// The link that occupies the index of the second pod's former interface.
const TAKER: &str = "taker";

/// The initial state of a command.
#[derive(Clone, Copy, PartialEq)]
pub enum Start {
    /// An empty state directory.
    Nothing,
    /// An old snapshot: both pods have changed since, and a third one is gone.
    Older,
    /// Good checkpoints, and a reloaded NIC.
    Loss,
    /// The same, with the same checkpoints each time, and no window.
    Unplanned,
    /// Good checkpoints and a reloaded NIC, and in the second pod another link occupies the index of the lost one.
    TakenIndex,
    /// kubelet runs, with its unit file in this directory.
    Running(&'static str),
    /// The same, paused by netfix.
    Paused(&'static str),
    /// kubelet runs, the checkpoints are good, and a reload follows.
    Upgrade(&'static str),
}

impl Start {
    /// The directory of kubelet's unit file, if there is one.
    pub fn kubelet(self) -> Option<&'static str> {
        match self {
            Self::Running(folder) | Self::Paused(folder) | Self::Upgrade(folder) => Some(folder),
            Self::Nothing | Self::Older | Self::Loss | Self::Unplanned | Self::TakenIndex => None,
        }
    }
}

pub struct Stage<'n> {
    pub node: &'n Node,
    pub machine: Machine,
    pub pods: Vec<Pod<'n>>,
    pub start: Start,
    /// The index of the second pod's interface.
    index: u32,
}

/// How a run of netfix ended.
pub struct Ran {
    pub code: Option<i32>,
    /// The names of the points that it passed.
    pub points: Vec<String>,
    /// Whether it reached the fault.
    pub was_hit: bool,
    /// The whole run, for the text of a failure.
    pub transcript: String,
}

impl<'n> Stage<'n> {
    pub fn new(node: &'n Node, start: Start) -> Self {
        without_dad(&node.ns, &["all", "default", "eth0"]);
        // Detection of the one from before would end during the first run.
        for verb in ["del", "add"] {
            node.ns.ip(&format!("addr {verb} fd88::2/64 dev eth0"));
        }
        let pods = vec![
            rich(quick(node.pod("web"))),
            quick(node.pod("api")).simple(),
        ];
        let machine = Machine::with_systemd(node);
        for pod in &pods {
            machine.adopt(&pod.ns);
        }
        let index = pods[1].ns.index_of("eth0");
        let stage = Self {
            node,
            machine,
            pods,
            start,
            index,
        };
        start
            .kubelet()
            .into_iter()
            .for_each(|folder| stage.machine.start_kubelet(folder));
        match start {
            Start::Nothing | Start::Running(_) | Start::Paused(_) => {}
            Start::Older => stage.make_older(),
            Start::Loss | Start::TakenIndex => stage.must_run("snapshot"),
            Start::Unplanned => stage.must_run_and_keep(),
            Start::Upgrade(_) => {
                stage.must_run_and_keep();
                stage.write_reload();
            }
        }
        stage
    }

    fn must_run(&self, words: &str) {
        let run = self.run(words, None);
        assert_eq!(run.code, Some(0), "{}", run.transcript);
    }

    fn must_run_and_keep(&self) {
        self.must_run("snapshot");
        copy(&self.node.state_dir(), &self.kept());
    }

    fn make_older(&self) {
        let gone = quick(self.node.pod("gone")).simple();
        self.machine.adopt(&gone.ns);
        self.must_run("snapshot");
        self.must_run("snapshot");
        self.machine.disown(&gone.ns);
        let mac = gone.mac();
        drop(gone);
        // The kernel takes a namespace down later: until then the parent has the MAC of its link, which would be the host's own.
        let has_mac = || {
            let mut bridge = tool::command("bridge", ["fdb", "show", "dev", "eth0"]);
            let shown = self.node.ns.enter(|| tool::try_run(&mut bridge));
            shown.is_ok_and(|shown| shown.contains(&mac))
        };
        assert!(wait_until(|| !has_mac()), "{mac} stays");
        self.pods
            .iter()
            .for_each(|pod| drop(pod.ip("link set eth0 mtu 1400")));
        copy(&self.node.state_dir(), &self.kept());
    }

    /// The initial state directory of every run.
    fn kept(&self) -> PathBuf {
        self.node.temp().join("kept")
    }

    fn reload(&self) -> PathBuf {
        self.node.temp().join("reload")
    }

    /// Held by each of these programs while it runs.
    fn reload_lock(&self) -> PathBuf {
        self.reload().with_extension("lock")
    }

    fn removal(&self) -> PathBuf {
        self.node.temp().join("removal")
    }

    /// Programs that reload the NIC from inside the machine, and remove it; two of them do not run at once.
    fn write_reload(&self) {
        let gateway = self.machine.hide(&self.node.gateway);
        let removal = format!(
            "#!/bin/sh
            exec 9>{} && flock 9
            ip link del eth0 2>/dev/null",
            self.reload_lock().display()
        );
        tool::program(&format!("{removal}\n:"), &self.removal());
        let script = format!(
            "{removal}
            ip link add eth0 address {PARENT_MAC} type veth peer name up0 address 02:00:00:88:00:01 netns {gateway} || exit
            nsenter --net={gateway} sh -c '
                ip link set up0 up && ip addr add {GATEWAY4}/16 dev up0 && ip addr add {GATEWAY6}/64 dev up0'"
        );
        tool::program(&script, &self.reload());
    }

    /// The program of a killed upgrade ends without help.
    pub fn wait_for_reload(&self) {
        if self.reload().exists() {
            tool::run(tool::command("flock", [self.reload_lock()]).arg("true"));
        }
    }

    /// A person brings the former driver back, and restores; returns what went wrong.
    pub fn repair_by_hand(&self) -> Option<String> {
        tool::run(&mut self.machine.exec(&self.reload().to_string_lossy()));
        let run = self.run("restore --nic-wait 5s", None);
        (run.code != Some(0)).then_some(run.transcript)
    }

    /// Creates the initial state, whatever the last run has left.
    pub fn prepare(&self) {
        match self.start {
            Start::Nothing => self.forget(),
            Start::Older | Start::Upgrade(_) => self.put_back(),
            Start::Running(_) => kubelet::let_run(self),
            // The last run has resumed it.
            Start::Paused(_) => {
                kubelet::forget_windows(self);
                self.must_run("pause");
            }
            Start::Loss => self.node.lose_and_reload(),
            Start::Unplanned => {
                self.put_back();
                self.node.lose_and_reload();
            }
            Start::TakenIndex => {
                let ns = &self.pods[1].ns;
                let _ = ns.try_ip(&format!("link del {TAKER}"));
                self.node.lose_and_reload();
                ns.ip(&format!(
                    "link add {TAKER} index {} address 02:00:00:00:00:01 type ifb",
                    self.index
                ));
            }
        }
    }

    /// The initial state directory, and no window.
    fn put_back(&self) {
        self.forget();
        copy(&self.kept(), &self.node.state_dir());
    }

    fn forget(&self) {
        let _ = fs::remove_dir_all(self.node.state_dir());
        // What memory has belongs to that folder, and not to the next one.
        let _ = fs::remove_dir_all(self.machine.outside(kubelet::LOGS));
    }

    /// Whether the interfaces of pods have their former indexes.
    pub fn keeps_indexes(&self) -> bool {
        self.start != Start::TakenIndex
    }

    /// `netfix WORDS` inside the machine, without a selection.
    pub fn run(&self, words: &str, fault: Option<Fault>) -> Ran {
        let log = self.node.temp().join("points");
        let _ = fs::remove_file(&log);
        let mut command = self.machine.exec("timeout");
        let words = words
            .replace("RELOAD", &self.reload().to_string_lossy())
            .replace("REMOVAL", &self.removal().to_string_lossy());
        command
            .args(["--kill-after=5", LIMIT_SECONDS, BINARY])
            .args(words.split_whitespace());
        command
            .env("NETFIX_STATE_DIR", self.node.state_dir())
            .env("NETFIX_RUNTIME", "none");
        command
            .env("NO_COLOR", "1")
            .env("NETFIX_FAILPOINT_LOG", &log)
            .stdin(Stdio::null());
        if let Some(Fault { point, action }) = fault {
            command.env("NETFIX_FAILPOINT", format!("{point}:{action}"));
        }
        let run = Run::of(&mut command);
        let log = fs::read_to_string(log).unwrap_or_default();
        let names = log
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(_, name)| name.to_owned());
        let was_hit = log.lines().any(|line| line.contains(": "));
        Ran {
            code: run.code,
            points: names.collect(),
            was_hit,
            transcript: run.transcript(),
        }
    }
}

/// Duplicate address detection takes up to a second, even if it sends nothing.
fn without_dad(ns: &Namespace, places: &[&str]) {
    for place in places {
        ns.set_sysctl(&format!("ipv6/conf/{place}/accept_dad"), "0");
    }
}

fn quick(pod: Pod<'_>) -> Pod<'_> {
    without_dad(&pod.ns, &["all", "default"]);
    pod
}

/// A pod with one object of every kind.
fn rich(pod: Pod<'_>) -> Pod<'_> {
    let pod = pod.simple();
    pod.ip(&format!("addr add {}/64 dev eth0", pod.address6()));
    pod.ip("addr add 10.88.77.7/32 dev eth0");
    pod.ip(&format!("route add default via {GATEWAY6}"));
    pod.ip("route add 192.0.2.0/24 via 10.88.0.1 mtu 1300");
    pod.ip("route add default via 10.88.0.1 table 7");
    pod.ip("rule add from 10.88.77.7 lookup 7");
    pod.ip("neigh add 10.88.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent");
    pod.ip("link set eth0 alias something");
    pod.ns.set_sysctl("ipv4/conf/eth0/arp_notify", "1");
    pod.ns.set_sysctl("ipv6/conf/eth0/accept_ra", "0");
    pod
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap_or_else(|e| panic!("cannot make {}: {e}", to.display()));
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else if let Err(error) = fs::copy(&from, &to) {
            panic!("cannot copy {}: {error}", from.display());
        }
    }
}
