//! A node with kubelet and two pods on a machine with systemd, a replacement for a driver upgrade there, and the state
//! of a window as the machine itself shows it, without netfix.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::beside::Beside;
use crate::common::background::wait_until;
use crate::common::capture::Capture;
use crate::common::kept::{self, json};
use crate::common::machine::Machine;
use crate::common::namespace::Namespace;
use crate::common::node::PARENT_MAC;
use crate::common::run::{BINARY, LIMIT_SECONDS, Run};
use crate::common::systemd::{ADMINISTRATOR, PACKAGES};
use crate::common::{GATEWAY4, GATEWAY6, Node, Pod, tool};

/// The directory of netfix's files that must not be on the disk.
pub const MEMORY: &str = "/run/netfix";
/// The directory of masks that last until the next boot.
const MASKS: [&str; 2] = ["/run/systemd/system", "/run/systemd/system.control"];
/// The unit name by default.
pub const KUBELET: &str = "kubelet.service";
/// The file that netfix reads in place of the kernel's log, where a test has one.
pub const KERNEL_LOG: &str = "kernel-log";
/// What unloading a driver does.
pub const LOSING: &str = "ip link del eth0";
/// The default time limits of an upgrade in these tests.
const HASTE: [(&str, &str); 3] = [
    ("--watch", "0s"),
    ("--nic-wait", "20s"),
    ("--answer-wait", "2s"),
];

pub struct Scene<'n> {
    pub node: &'n Node,
    pub machine: Machine,
    pub pods: Vec<Pod<'n>>,
    before: Vec<Capture>,
    host: Capture,
}

impl<'n> Scene<'n> {
    /// kubelet's unit file is in the directory of packages.
    pub fn new(node: &'n Node) -> Self {
        Self::with_kubelet_in(node, PACKAGES)
    }

    pub fn with_kubelet_in(node: &'n Node, folder: &str) -> Self {
        let scene = Self::without_kubelet(node);
        scene.machine.start_kubelet(folder);
        scene
    }

    pub fn without_kubelet(node: &'n Node) -> Self {
        let pods = vec![
            quick(node.pod("web")).simple(),
            quick(node.pod("api")).simple(),
        ];
        Self::with_pods(node, pods)
    }

    pub fn with_pods(node: &'n Node, pods: Vec<Pod<'n>>) -> Self {
        without_dad(&node.ns);
        without_dad(&node.gateway);
        let machine = Machine::with_systemd(node);
        for pod in &pods {
            machine.adopt(&pod.ns);
        }
        let (before, host) = (pods.iter().map(Pod::capture).collect(), node.capture());
        let scene = Self {
            node,
            machine,
            pods,
            before,
            host,
        };
        scene.keep_gateway();
        scene
    }

    /// Keeps the gateway's namespace reachable for commands inside, by an open file: netfix must not find a pod in it.
    fn keep_gateway(&self) {
        let script = "exec 9</proc/self/ns/net 8>&- >/dev/null 2>&1; nsenter --net=/proc/1/ns/net sleep infinity & \
            echo $! >\"$1\"; until [ /proc/$!/ns/net -ef /proc/1/ns/net ]; do :; done";
        let mut command = tool::command("nsenter", ["--target", &self.machine.init().to_string()]);
        command.args(["--mount", "--pid", "--cgroup", "--uts"]);
        command.arg(format!("--net={}", self.node.gateway.path().display()));
        tool::run(
            command
                .args(["sh", "-c", script, "sh"])
                .arg(self.path("keeper"))
                .stdin(Stdio::null()),
        );
    }

    /// A file of the test, with the same path inside and outside.
    pub fn path(&self, name: &str) -> PathBuf {
        self.node.temp().join(name)
    }

    /// A program; its path has no blanks.
    pub fn script(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        tool::program(&format!("#!/bin/sh\n{text}\n"), &path);
        path.display().to_string()
    }

    /// A replacement for a driver upgrade: `ip link del` and `ip link add`.
    pub fn reload(&self) -> String {
        self.script(
            "reload",
            &format!(
                "set -e\necho the driver is being upgraded\n{}",
                self.reloading()
            ),
        )
    }

    /// The same as text for another script.
    pub fn reloading(&self) -> String {
        format!("{LOSING}\n{}", self.loading())
    }

    /// The same NIC, down and without addresses.
    pub fn loading(&self) -> String {
        self.loading_with(&[&format!("{GATEWAY4}/16"), &format!("{GATEWAY6}/64")])
    }

    /// The same if the gateway has only these addresses.
    pub fn loading_with(&self, addresses: &[&str]) -> String {
        let gateway = format!("/proc/$(cat {})/fd/9", self.path("keeper").display());
        let link = format!(
            "ip link add eth0 address {PARENT_MAC} type veth peer name up0 address 02:00:00:88:00:01"
        );
        let add: Vec<String> = addresses
            .iter()
            .map(|address| format!("ip addr add {address} dev up0"))
            .collect();
        format!(
            "{link} netns {gateway}\nnsenter --net={gateway} sh -ec 'ip link set up0 up; {}'",
            add.join("; ")
        )
    }

    /// What `loading` does, at once and without netfix.
    pub fn load_driver(&self) {
        let load = self.script("load", &self.loading());
        tool::run(self.machine.exec("sh").arg("-e").arg(load));
    }

    /// netfix inside, not started yet.
    pub fn command(&self, words: &str) -> Command {
        self.under(&[], words)
    }

    /// The same as a child of another program.
    pub fn under(&self, wrapper: &[&str], words: &str) -> Command {
        let mut program = wrapper.iter().copied().chain([BINARY]);
        let mut command = self.machine.exec(program.next().expect("a program"));
        command.args(program).args(words.split_whitespace());
        command
            .env("NETFIX_STATE_DIR", self.node.state_dir())
            .env("NETFIX_RUNTIME", "none");
        command.env("NETFIX_KMSG", self.path(KERNEL_LOG));
        command.env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    /// Runs `netfix WORDS` until it ends.
    pub fn netfix(&self, words: &str) -> Run {
        Run::of(&mut self.under(&["timeout", "--kill-after=5", LIMIT_SECONDS], words))
    }

    /// `netfix upgrade` in the foreground and with short limits.
    pub fn upgrade(&self, options: &str, command: &str) -> Run {
        self.netfix(&hasty(&format!("--foreground {options}"), command))
    }

    /// The same beside the test.
    pub fn start_upgrade(&self, options: &str, command: &str) -> Beside {
        self.start(&hasty(&format!("--foreground {options}"), command))
    }

    pub fn start(&self, words: &str) -> Beside {
        Beside::start(self, self.command(words))
    }

    /// The document of the open window, if there is one.
    pub fn window(&self) -> Option<Value> {
        fs::read(self.node.state_dir().join("window.json"))
            .ok()
            .map(|bytes| json(&bytes))
    }

    /// The current phase of the open window.
    pub fn phase(&self) -> Option<String> {
        let window = self.window()?;
        let last = window["phases"].as_array()?.last()?.clone();
        last["to"]
            .is_null()
            .then(|| last["name"].as_str().map(str::to_owned))
            .flatten()
    }

    pub fn wait_for_phase(&self, phase: &str) {
        let come = wait_until(|| self.phase().as_deref() == Some(phase));
        assert!(come, "the phase {phase} never came: {:?}", self.window());
    }

    /// Waits until the upgrade holds kubelet for a person, without the lock.
    pub fn wait_for_hold(&self) {
        self.wait_for_phase("hold");
        let is_free = || !kept::is_locked(&self.node.state_dir());
        assert!(wait_until(is_free), "the lock is not released");
    }

    /// Waits for a file that a script creates.
    pub fn wait_for_file(&self, name: &str) {
        assert!(
            wait_until(|| self.path(name).exists()),
            "{name} never came: {:?}",
            self.window()
        );
    }

    /// Until no process of the machine has this id.
    pub fn wait_for_end(&self, pid: &str) {
        let path = format!("/proc/{}", pid.trim());
        let has_ended = || {
            let status = self.machine.exec("test").args(["!", "-e", &path]).status();
            status.expect("test runs").success()
        };
        assert!(wait_until(has_ended), "process {pid} still runs");
    }

    /// The process of COMMAND, as the open window has it; netfix writes it when COMMAND runs already.
    pub fn command_pid(&self) -> u32 {
        let pid = || {
            let window = self.window()?;
            window["run"]["process"]["pid"].as_u64()
        };
        assert!(wait_until(|| pid().is_some()), "no COMMAND");
        u32::try_from(pid().unwrap_or_default()).expect("a pid")
    }

    /// Kills COMMAND, which has outlived its netfix.
    pub fn end_command(&self) {
        let pid = self.command_pid();
        assert!(self.machine.signal(pid, Signal::SIGKILL));
        self.wait_for_end(&pid.to_string());
    }

    /// The records of all closed windows, oldest first.
    pub fn records(&self) -> Vec<Value> {
        records(self.node)
    }

    /// The only record.
    pub fn record(&self) -> Value {
        let mut all = self.records();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// The files of a window's log beside its record.
    pub fn log_of(&self, record: &Value) -> String {
        let id = record["id"].as_str().expect("an id");
        let path = self
            .node
            .state_dir()
            .join("windows")
            .join(format!("{id}.log"));
        String::from_utf8_lossy(&fs::read(path).expect("a log")).into_owned()
    }

    /// The load state and active state of a unit.
    pub fn state(&self, unit: &str) -> (String, String) {
        (
            self.machine.unit(unit, "LoadState"),
            self.machine.unit(unit, "ActiveState"),
        )
    }

    /// The links that mask a unit until the next boot.
    pub fn masks(&self, unit: &str) -> Vec<String> {
        let links = MASKS.iter().map(|folder| format!("{folder}/{unit}"));
        links
            .filter(|link| self.machine.outside(link).is_symlink())
            .collect()
    }

    /// netfix's units in systemd, each with its active state.
    pub fn units(&self) -> BTreeMap<String, String> {
        let text = self
            .machine
            .systemctl("list-units --all --plain --no-legend --no-pager netfix-*");
        let text = text.unwrap_or_else(|e| panic!("{e}"));
        let row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Some(((*words.first()?).to_owned(), (*words.get(2)?).to_owned()))
        };
        text.lines().filter_map(row).collect()
    }

    /// The armed deadlines.
    pub fn deadlines(&self) -> Vec<String> {
        let is_armed = |(name, state): &(String, String)| {
            let is_timer = Path::new(name)
                .extension()
                .is_some_and(|ending| ending == "timer");
            name.starts_with("netfix-deadline-") && is_timer && state == "active"
        };
        self.units()
            .into_iter()
            .filter(is_armed)
            .map(|(name, _)| name)
            .collect()
    }

    /// kubelet is stopped and masked, cannot be started, and a timer is armed that starts it.
    pub fn assert_held(&self, unit: &str) {
        let (load, active) = self.state(unit);
        assert!(
            load == "masked" && ["inactive", "failed"].contains(&&*active),
            "{load} {active}\n{}",
            self.machine.systemd_state()
        );
        self.machine
            .systemctl(&format!("start {unit}"))
            .expect_err("a masked unit was started");
        let deadlines = self.deadlines().len();
        assert_eq!(deadlines, 1, "{}", self.machine.systemd_state());
    }

    /// kubelet runs, is not masked, and no deadline is left.
    pub fn assert_runs(&self, unit: &str) {
        let (load, active) = self.state(unit);
        assert!(
            load == "loaded" && active == "active",
            "{load} {active}\n{}",
            self.machine.systemd_state()
        );
        assert_eq!(self.masks(unit), [""; 0]);
    }

    pub fn runs(&self, unit: &str) -> bool {
        self.state(unit) == ("loaded".to_owned(), "active".to_owned())
    }

    /// No unit, no open window, no log in memory, no half-written file.
    pub fn assert_nothing_left(&self) {
        let ended = wait_until(|| self.units().is_empty());
        assert!(ended, "units are left: {:?}", self.units());
        assert_eq!(self.window(), None);
        assert!(
            !self.machine.outside(MEMORY).exists(),
            "{:?}",
            kept::names(&self.machine.outside(MEMORY))
        );
        let is_temporary = |path: &PathBuf| {
            path.components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with('.'))
                || path.extension().is_some_and(|ending| ending == "tmp")
        };
        let state = self.node.state_dir();
        let inside = |path: &Path| {
            path.strip_prefix(&state)
                .map(Path::to_owned)
                .unwrap_or_default()
        };
        let files = self
            .node
            .state_files()
            .into_iter()
            .map(|(path, _)| inside(&path));
        assert_eq!(
            files.filter(is_temporary).collect::<Vec<_>>(),
            [""; 0].map(PathBuf::from)
        );
    }

    /// Every pod and the node have their former network.
    pub fn assert_networks(&self) {
        for (pod, before) in self.pods.iter().zip(&self.before) {
            pod.assert_same_as(before);
        }
        self.node.assert_same_as(&self.host);
    }

    /// The expected end of every good window.
    pub fn assert_whole(&self) {
        self.assert_networks();
        self.assert_runs(KUBELET);
        self.assert_nothing_left();
    }

    /// The errors of a window after which the NIC is missing: these of the host, and those of each pod.
    pub fn nic_is_missing<'s>(&'s self, others: &[&'s str]) -> Vec<(&'s str, &'s str)> {
        let both = |of: &'s str| ["parent-missing", "gateway-unreachable"].map(|code| (code, of));
        let of_host = others.iter().map(|code| (*code, ""));
        let all = of_host.chain(both(""));
        let pods = self.pods.iter().map(Pod::name);
        all.chain(pods.flat_map(both)).collect()
    }

    /// Nothing was ever changed: no network, no window, and kubelet was never stopped.
    pub fn assert_untouched(&self, kubelet: &Untouched) {
        assert_eq!(*kubelet, self.touchable(), "kubelet was touched");
        assert_eq!(self.records(), [(); 0].map(|()| Value::Null));
        self.assert_whole();
    }

    /// The values that show whether kubelet kept running.
    pub fn touchable(&self) -> Untouched {
        Untouched(
            ["MainPID", "InvocationID", "ActiveEnterTimestampMonotonic"]
                .map(|property| self.machine.unit(KUBELET, property)),
        )
    }
}

/// Identifies one run of kubelet.
#[derive(Debug, PartialEq, Eq)]
pub struct Untouched([String; 3]);

/// The records of all closed windows of a node, oldest first.
pub fn records(node: &Node) -> Vec<Value> {
    let folder = node.state_dir().join("windows");
    let all = kept::names(&folder)
        .into_iter()
        .map(|name| folder.join(name));
    let records = all.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let mut records: Vec<Value> = records
        .map(|path| json(&fs::read(path).expect("a record")))
        .collect();
    records.sort_by_key(|record| record["started_boottime"].as_u64());
    records
}

/// The phases of a record, in order.
pub fn phases(record: &Value) -> Vec<String> {
    let names = record["phases"].as_array().into_iter().flatten();
    names
        .filter_map(|phase| phase["name"].as_str().map(str::to_owned))
        .collect()
}

/// One value of every pod of a record.
pub fn of_pods(record: &Value, key: &str) -> Vec<Value> {
    record["pods"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pod| pod[key].clone())
        .collect()
}

/// The codes of the problems with this severity in a record or a document.
pub fn codes(document: &Value, severity: &str) -> Vec<String> {
    let all = document["problems"].as_array().into_iter().flatten();
    let some = all.filter(|problem| problem["severity"] == severity);
    some.filter_map(|problem| problem["code"].as_str().map(str::to_owned))
        .collect()
}

/// The arguments of an upgrade without confirmation and with short limits, unless others are given.
pub fn hasty(options: &str, command: &str) -> String {
    let is_given = |option: &str| options.contains(option);
    let missing = HASTE.iter().filter(|(option, _)| !is_given(option));
    let missing: Vec<String> = missing
        .map(|(option, value)| format!("{option} {value}"))
        .collect();
    format!("upgrade --yes {options} {} -- {command}", missing.join(" "))
}

/// The directories of unit files.
pub const FOLDERS: [&str; 2] = [PACKAGES, ADMINISTRATOR];

/// Duplicate address detection takes up to a second, even if it sends nothing.
pub fn quick(pod: Pod<'_>) -> Pod<'_> {
    without_dad(&pod.ns);
    pod
}

fn without_dad(ns: &Namespace) {
    for place in ["all", "default"] {
        ns.set_sysctl(&format!("ipv6/conf/{place}/accept_dad"), "0");
    }
}
