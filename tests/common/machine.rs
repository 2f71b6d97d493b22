//! A machine within the machine, on a node's network: it has its own process ids, mounts, cgroups, /run and
//! /var/lib, and removes everything when it ends, also after a kill of the tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::background::within;
use super::leftovers;
use super::node::Node;

const TIMEOUT: Duration = Duration::from_secs(10);

pub struct Machine {
    /// The machine ends when this standard input is closed.
    outside: Child,
    init: u32,
    folder: PathBuf,
    cgroup: String,
}

impl Machine {
    /// On the node's network and in the node's temporary directory.
    pub fn start(node: &Node) -> Self {
        Self::with_first_process(node, "plain")
    }

    /// `first` is the process 1 that `machine.sh` starts.
    pub(super) fn with_first_process(node: &Node, first: &str) -> Self {
        let folder = node.temp().join("machine");
        for name in ["run", "var-lib"] {
            fs::create_dir_all(folder.join(name))
                .unwrap_or_else(|e| panic!("cannot make {name}: {e}"));
        }
        let cgroup = node.ns.name().to_owned();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/machine.sh");
        let mut command = node.ns.exec("unshare");
        command
            .args(["--mount", "sh"])
            .arg(script)
            .arg(&folder)
            .args([&cgroup, first])
            .env_remove("NETFIX_HOST_NETNS");
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let outside = child.unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let mut machine = Self {
            outside,
            init: 0,
            folder,
            cgroup,
        };
        machine.wait_for_the_start();
        machine
    }

    fn wait_for_the_start(&mut self) {
        let stdout = self.outside.stdout.take().expect("stdout is a pipe");
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("a word of the machine");
        assert_eq!(line, "ready\n", "the machine did not start");
        let outside = self.outside.id();
        let children = fs::read_to_string(format!("/proc/{outside}/task/{outside}/children"));
        let children = children.expect("the kernel lists a process's children");
        // Its first child reads systemd's input.
        let init = children
            .split_whitespace()
            .last()
            .and_then(|child| child.parse().ok());
        self.init = init.unwrap_or_else(|| panic!("{children:?} has no child in it"));
    }

    /// Its process 1, by its process id outside.
    pub fn init(&self) -> u32 {
        self.init
    }

    /// A command that starts inside the machine.
    pub fn exec(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.init.to_string(),
            "--mount",
            "--pid",
            "--net",
            "--cgroup",
            "--uts",
            program,
        ]);
        command
    }

    /// The machine's root directory with its mounts, seen from outside.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init))
    }

    /// The path outside of a path below the machine's /run or /var/lib.
    pub fn outside(&self, path: &str) -> PathBuf {
        let inside = Path::new(path);
        for (root, folder) in [
            ("/run", "run"),
            ("/var/run", "run"),
            ("/var/lib", "var-lib"),
        ] {
            if let Ok(rest) = inside.strip_prefix(root) {
                return self.folder.join(folder).join(rest);
            }
        }
        panic!("{path} is not the machine's own");
    }

    /// The path outside of a file in /proc, such as `ns/net`, of a process with this id inside.
    pub fn proc_file(&self, pid: u32, name: &str) -> PathBuf {
        self.root().join(format!("proc/{pid}/{name}"))
    }

    /// Sends a signal to a process by its id inside.
    pub fn signal(&self, pid: u32, signal: Signal) -> bool {
        let number = signal as i32;
        let mut command = self.exec("sh");
        command
            .args(["-c", &format!("kill -{number} {pid}")])
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    pub fn is_alive(&self, pid: u32) -> bool {
        let mut command = self.exec("sh");
        command
            .args(["-c", &format!("kill -0 {pid}")])
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl Drop for Machine {
    /// The end of process 1 ends every process in the machine and removes every mount.
    fn drop(&mut self) {
        drop(self.outside.stdin.take());
        if !within(TIMEOUT, || matches!(self.outside.try_wait(), Ok(Some(_))))
            && let Ok(init) = i32::try_from(self.init)
        {
            let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
            let _ = self.outside.wait();
        }
        leftovers::remove_cgroup(&self.cgroup);
    }
}
