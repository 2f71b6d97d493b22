//! A network namespace that only one process holds.

use std::fs;
use std::process::{Child, Command};
use std::time::Duration;

use super::background::wait_until;
use super::runtimes::Cgroup;
use super::tool;

/// A process with a network namespace of its own, which is mounted nowhere.
pub struct Alone(Child);

impl Alone {
    pub fn start() -> Self {
        Self::by(Command::new("unshare").args(["--net", "sleep", "600"]))
    }

    /// By a command that executes sleep(1).
    pub fn by(command: &mut Command) -> Self {
        Self::named(command, b"sleep")
    }

    /// By a command that executes a program with this name.
    pub fn named(command: &mut Command, name: &[u8]) -> Self {
        let child = command.spawn().expect("unshare starts");
        let alone = Self(child);
        let comm = format!("/proc/{}/comm", alone.id());
        let runs = || fs::read(&comm).is_ok_and(|comm| comm.trim_ascii_end() == name);
        assert!(wait_until(runs), "no process");
        alone
    }

    pub fn id(&self) -> u32 {
        self.0.id()
    }

    pub fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.id())
    }

    /// Runs ip(8) in the namespace.
    pub fn ip(&self, words: &str) -> String {
        let target = self.id().to_string();
        tool::run(
            tool::command("nsenter", ["--net", "--target", &target, "ip"])
                .args(words.split_whitespace()),
        )
    }

    pub fn moved(self, cgroup: &Cgroup) -> Self {
        cgroup.take(self.id());
        self
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
