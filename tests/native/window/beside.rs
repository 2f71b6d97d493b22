//! A netfix inside the machine that runs beside the test.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::scene::Scene;
use crate::common::background::wait_until;
use crate::common::run::Run;

/// The drop kills it, by its process id.
pub struct Beside {
    /// nsenter(1), which waits for it.
    outside: Child,
    line: String,
    /// Its process id as seen from outside.
    pid: Pid,
    out: PathBuf,
    err: PathBuf,
}

impl Beside {
    pub fn start(scene: &Scene<'_>, command: Command) -> Self {
        Self::start_in(&scene.node.temp(), command)
    }

    /// Its output goes to files in this directory.
    pub fn start_in(folder: &Path, mut command: Command) -> Self {
        let number = fs::read_dir(folder).map_or(0, Iterator::count);
        let [out, err] = ["out", "err"].map(|name| folder.join(format!("beside-{number}-{name}")));
        let file = |path: &PathBuf| File::create_new(path).expect("a file for its output");
        let child = command
            .stdin(Stdio::null())
            .stdout(file(&out))
            .stderr(file(&err))
            .spawn();
        let line = format!("{command:?}");
        let outside = child.unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        let mut beside = Self {
            outside,
            line,
            pid: Pid::from_raw(0),
            out,
            err,
        };
        beside.find();
        beside
    }

    /// The child process of nsenter(1).
    fn find(&mut self) {
        let outside = self.outside.id();
        let children = format!("/proc/{outside}/task/{outside}/children");
        let found = wait_until(|| {
            let text = fs::read_to_string(&children).unwrap_or_default();
            let child = text
                .split_whitespace()
                .next()
                .and_then(|pid| pid.parse().ok());
            let is_there = |pid: &i32| {
                fs::read_to_string(format!("/proc/{pid}/comm"))
                    .is_ok_and(|comm| comm.trim() != "nsenter")
            };
            self.pid = Pid::from_raw(child.filter(is_there).unwrap_or_default());
            self.pid.as_raw() != 0 || self.outside.try_wait().is_ok_and(|ended| ended.is_some())
        });
        assert!(found, "{} does not start", self.line);
    }

    /// Its stderr so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap_or_default()).into_owned()
    }

    /// Its stdout so far.
    pub fn answer(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.out).unwrap_or_default()).into_owned()
    }

    pub fn wait_for(&self, text: &str) {
        let printed = wait_until(|| self.stderr().contains(text) || self.answer().contains(text));
        assert!(
            printed,
            "{text:?} was never printed:\n{}\n{}",
            self.answer(),
            self.stderr()
        );
    }

    pub fn signal(&self, signal: Signal) {
        assert_ne!(
            self.pid.as_raw(),
            0,
            "{} has ended already:\n{}",
            self.line,
            self.stderr()
        );
        kill(self.pid, signal)
            .unwrap_or_else(|e| panic!("{signal} to {}: {e}\n{}", self.line, self.stderr()));
    }

    /// The same for a process that may end at this moment.
    pub fn try_signal(&self, signal: Signal) {
        assert_ne!(self.pid.as_raw(), 0, "{} never began", self.line);
        let _ = kill(self.pid, signal);
    }

    pub fn has_ended(&mut self) -> bool {
        matches!(self.outside.try_wait(), Ok(Some(_)))
    }

    /// Waits until it ends.
    pub fn finish(mut self) -> Run {
        let ended = wait_until(|| self.has_ended());
        assert!(
            ended,
            "it does not end: {}\n{}\n{}",
            self.line,
            self.answer(),
            self.stderr()
        );
        let status = self
            .outside
            .wait()
            .unwrap_or_else(|_| ExitStatusExt::from_raw(0));
        Run {
            line: self.line.clone(),
            code: status.code(),
            out: self.answer(),
            err: self.stderr(),
        }
    }

    /// Kills it with SIGKILL, so it cannot clean up.
    pub fn kill(mut self) {
        self.signal(Signal::SIGKILL);
        assert!(
            wait_until(|| self.has_ended()),
            "{} was killed and does not end",
            self.line
        );
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.has_ended() && self.pid.as_raw() != 0 {
            let _ = kill(self.pid, Signal::SIGKILL);
            let _ = self.outside.kill();
        }
        let _ = self.outside.wait();
    }
}
