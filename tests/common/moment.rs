//! Runs code in the middle of a netfix run: strace stops netfix at chosen system calls, then netfix continues.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::background::wait_until;
use super::node::Node;
use super::old_kernel;
use super::run::Run;

const STOPPED: &str = "--- stopped by SIGSTOP ---";

/// When netfix is stopped, and on which kernel it runs.
pub struct Moment {
    /// netfix stops after each call of this system call.
    pub call: &'static str,
    /// The call's line, as strace prints it with paths, must contain this.
    pub holds: &'static str,
    /// Whether the kernel has namespace cookies.
    pub cookies: bool,
}

/// netfix has listed all processes and opened no namespace yet.
pub const AFTER_LOOKING: Moment = Moment {
    call: "getdents64",
    holds: "</proc>, 0x",
    cookies: true,
};
/// netfix has opened every namespace and entered none yet.
pub const AFTER_OPENING: Moment = Moment {
    call: "setns",
    holds: "setns(",
    cookies: true,
};

impl Moment {
    pub fn without_cookies(self) -> Self {
        Self {
            cookies: false,
            ..self
        }
    }
}

impl Node {
    /// Runs `netfix WORDS`, and at that moment `act`, once.
    pub fn netfix_while(&self, words: &str, moment: &Moment, act: impl FnOnce()) -> Run {
        let file = self.temp().join("moments");
        let name = file.to_string_lossy().into_owned();
        let trace = format!("trace={}", moment.call);
        let stop = format!("inject={}:signal=SIGSTOP", moment.call);
        let mut wrapper = vec![
            "timeout", "600", "strace", "-f", "-y", "-o", &name, "-e", &trace, "-e", &stop,
        ];
        if !moment.cookies {
            wrapper.extend(["-e", "inject=getsockopt:error=ENOPROTOOPT"]);
        }
        let mut command = self.netfix_command(&wrapper, words);
        let line = format!("{command:?}");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = if moment.cookies {
            command.spawn()
        } else {
            old_kernel::spawn(&mut command)
        };
        let mut child = started.unwrap_or_else(|e| panic!("cannot start {line}: {e}"));
        let mut act = Some(act);
        let (mut seen, mut ended) = (0, false);
        while !ended {
            let mut text = String::new();
            let mut stopped = BTreeSet::new();
            let moved = wait_until(|| {
                text = fs::read_to_string(&file).unwrap_or_default();
                ended = child.try_wait().ok().flatten().is_some();
                stopped = stopped_processes(&text, seen);
                ended || !stopped.is_empty()
            });
            assert!(moved, "{line} neither ends nor stops:\n{text}");
            let is_now = text.lines().any(|line| is_moment(line, moment));
            if let Some(act) = act.take_if(|_| is_now && !stopped.is_empty()) {
                act();
            }
            for pid in stopped {
                drop(Command::new("kill").args(["-CONT", &pid]).status());
            }
            seen = text.matches(STOPPED).count();
        }
        let output = child
            .wait_with_output()
            .unwrap_or_else(|e| panic!("{line}: {e}"));
        let run = Run::from_output(line, &output);
        assert!(act.is_none(), "the moment never came\n{}", run.transcript());
        run
    }
}

/// The processes that stand still now, of the stops after the first `seen` ones. Each thread has a line of its own, also one that comes
/// late: a process that is told twice to go on would not stop at its next call.
fn stopped_processes(text: &str, seen: usize) -> BTreeSet<String> {
    let stops = text.lines().filter(|line| line.contains(STOPPED));
    let threads = stops
        .skip(seen)
        .filter_map(|line| line.split_whitespace().next());
    threads.filter_map(stopped_process).collect()
}

/// The process of a thread, where all of its threads stand still.
fn stopped_process(thread: &str) -> Option<String> {
    let status = |file: &Path| fs::read_to_string(file.join("status")).ok();
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().to_owned())
    };
    let folder = Path::new("/proc").join(thread);
    let pid = field(&status(&folder)?, "Tgid:")?;
    let mut threads = fs::read_dir(folder.join("task")).ok()?.flatten();
    let stands =
        |status: &str| field(status, "State:").is_some_and(|state| state.starts_with(['t', 'T']));
    threads
        .all(|entry| status(&entry.path()).is_none_or(|status| stands(&status)))
        .then_some(pid)
}

/// The last read of a directory returns nothing: netfix has read all of it.
fn is_moment(line: &str, moment: &Moment) -> bool {
    let is_last = moment.call != "getdents64" || line.trim_end().ends_with("= 0");
    line.contains(moment.call) && line.contains(moment.holds) && is_last
}
