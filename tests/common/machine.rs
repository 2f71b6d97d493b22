//! A machine within the machine, on a node's network: it has process ids, mounts, cgroups, /run and /var/lib
//! of its own, and takes everything with it when it ends, also after a kill of the tests.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::background::wait_until;
use super::leftovers;
use super::node::Node;

const PATIENCE: Duration = Duration::from_secs(10);

pub struct Machine {
    /// Its standard input is what the machine lives by.
    outside: Child,
    init: u32,
    folder: PathBuf,
    cgroup: String,
}

impl Machine {
    /// On the node's network and in the node's temporary folder.
    pub fn start(node: &Node) -> Self {
        Self::with_first_process(node, "plain")
    }

    /// `first` is what `machine.sh` makes its process 1.
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
            .args([&cgroup, first]);
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
        // The child before it is the one that reads systemd's input.
        let init = children
            .split_whitespace()
            .last()
            .and_then(|child| child.parse().ok());
        self.init = init.unwrap_or_else(|| panic!("{children:?} has no child in it"));
    }

    /// Its process 1, as it goes by outside.
    pub fn init(&self) -> u32 {
        self.init
    }

    /// A command that starts inside.
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

    /// The machine's root folder with its mounts, seen from outside.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init))
    }

    /// Where a path below the machine's /run or /var/lib is outside.
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

    /// Where a file of a process is outside that goes by this id inside, such as `ns/net`.
    pub fn proc_file(&self, pid: u32, name: &str) -> PathBuf {
        self.root().join(format!("proc/{pid}/{name}"))
    }

    /// Sends a signal to a process that goes by this id inside.
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
    /// The end of process 1 is the end of every process in there, and of every mount.
    fn drop(&mut self) {
        drop(self.outside.stdin.take());
        if !wait_until(PATIENCE, || matches!(self.outside.try_wait(), Ok(Some(_))))
            && let Ok(init) = i32::try_from(self.init)
        {
            let _ = kill(Pid::from_raw(init), Signal::SIGKILL);
            let _ = self.outside.wait();
        }
        leftovers::remove_cgroup(&self.cgroup);
    }
}
