//! A cgroup with a name like those of runtimes, and processes in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::background::within;

/// A cgroup of the test. The drop removes it and moves its processes back to the root cgroup.
pub struct Cgroup {
    root: PathBuf,
    path: PathBuf,
}

impl Cgroup {
    /// Creates `path`, such as `docker/0123`, below the root of the first hierarchy that allows it.
    pub fn new(path: &str) -> Self {
        let roots = [
            "/sys/fs/cgroup/unified",
            "/sys/fs/cgroup/pids",
            "/sys/fs/cgroup",
        ]
        .map(PathBuf::from);
        let root = roots
            .into_iter()
            .find(|root| root.join("cgroup.procs").exists());
        let root = root.expect("a hierarchy of cgroups below /sys/fs/cgroup");
        let path = root.join(path);
        fs::create_dir_all(&path).unwrap_or_else(|e| panic!("cannot make {}: {e}", path.display()));
        Self { root, path }
    }

    pub fn take(&self, pid: u32) {
        move_to(&self.path, pid)
            .unwrap_or_else(|e| panic!("cannot move {pid} to {}: {e}", self.path.display()));
    }

    /// The same command, started inside the cgroup.
    pub fn inside(&self, command: &Command) -> Command {
        let enter = format!("echo $$ > {} && exec \"$@\"", self.procs().display());
        let mut inside = Command::new("sh");
        inside
            .args(["-c", &enter, "sh"])
            .arg(command.get_program())
            .args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// A process that writes its pid to this file moves into the cgroup.
    pub fn procs(&self) -> PathBuf {
        self.path.join("cgroup.procs")
    }
}

fn move_to(cgroup: &Path, pid: u32) -> std::io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), pid.to_string())
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A dying process cannot be moved, and keeps the cgroup until it is dead.
        within(Duration::from_secs(5), || {
            let inside = fs::read_to_string(self.procs()).unwrap_or_default();
            for pid in inside.lines().filter_map(|line| line.parse().ok()) {
                let _ = move_to(&self.root, pid);
            }
            fs::remove_dir(&self.path).is_ok() || !self.path.exists()
        });
        // A directory that another test also uses is not empty, and stays.
        for parent in self
            .path
            .ancestors()
            .skip(1)
            .take_while(|parent| *parent != self.root)
        {
            let _ = fs::remove_dir(parent);
        }
    }
}
