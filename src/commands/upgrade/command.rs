//! The user's command: run beside a watch on the links that pods stand on, and on how long kubelet is paused already.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::commands::window::clock::boottime;
use crate::commands::window::{Signals, Talk};
use crate::kernel::events::Losses;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER, Run};
use crate::runtime;

/// How often it is looked whether the command has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// How often the watches look whether they are still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// The command as it runs.
pub(super) struct Started {
    pub run: Run,
    child: Option<Child>,
}

impl Started {
    /// Starts the command. It has its own process group, so that a terminal's Ctrl-C reaches it through netfix only, and no
    /// input.
    pub(super) fn start(argv: &[String], window: &str, talk: &Talk) -> Self {
        let mut run = Run { argv: argv.to_vec(), process: None, exit: None, signal: None, error: None };
        let Some((program, words)) = argv.split_first() else { return Self { run, child: None } };
        let mut command = Command::new(program);
        command.args(words).env("NETFIX_WINDOW", window).process_group(0);
        command.stdin(Stdio::null()).stdout(talk.output()).stderr(talk.output());
        match command.spawn() {
            Ok(child) => {
                run.process = runtime::process(child.id());
                Self { run, child: Some(child) }
            }
            Err(error) => {
                run.error = Some(error.to_string());
                Self { run, child: None }
            }
        }
    }

    /// Waits for its end; signals are passed on to it meanwhile.
    pub(super) fn wait(&mut self, signals: &Signals) -> Run {
        if let Some(child) = &mut self.child {
            signals.pass_on_to(Some(child.id()));
            match wait(child) {
                Ok(status) => (self.run.exit, self.run.signal) = (status.code(), status.signal()),
                Err(error) => self.run.error = Some(error.to_string()),
            }
            signals.pass_on_to(None);
        }
        self.run.clone()
    }
}

fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        thread::sleep(PAUSE);
    }
}

/// A thread that is asked to end when this is dropped.
struct Watch<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Watch<T> {
    fn start(work: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        Self { stop, thread: Some(thread::spawn(move || work(&stopped))) }
    }

    fn end(&mut self) -> Option<T> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().and_then(|thread| thread.join().ok())
    }
}

/// Hears when the host's links are lost.
pub(super) struct LossWatch(Watch<BTreeMap<String, u64>>);

impl LossWatch {
    /// `None` where the kernel refuses to tell; then no outage is known, and nothing else depends on it.
    pub(super) fn start() -> Option<Self> {
        let mut losses = Losses::listen().ok()?;
        Some(Self(Watch::start(move |stop| {
            let mut lost = BTreeMap::new();
            while !stop.load(Ordering::SeqCst) {
                // More than the socket could hold has happened: what was heard before is still true.
                let Ok(names) = losses.next(LOOK) else { continue };
                let now = boottime();
                for name in names {
                    lost.entry(name).or_insert(now);
                }
            }
            lost
        })))
    }

    /// The links that were lost, and when by the clock that counts from boot, in milliseconds.
    pub(super) fn end(mut self) -> BTreeMap<String, u64> {
        self.0.end().unwrap_or_default()
    }
}

/// Tells how long kubelet has been paused whenever that begins to matter.
pub(super) struct BudgetWatch(Watch<()>);

impl BudgetWatch {
    /// Counts from `paused`, by the clock that counts from boot, in milliseconds; `deadline` in seconds.
    pub(super) fn start(talk: Talk, paused: u64, deadline: u64) -> Self {
        Self(Watch::start(move |stop| {
            let mut warnings = warnings(deadline).into_iter().peekable();
            while !stop.load(Ordering::SeqCst) {
                let elapsed = boottime().saturating_sub(paused) / 1000;
                while let Some((_, text)) = warnings.next_if(|(at, _)| *at <= elapsed) {
                    log::warn!(PHASE = "pause"; "kubelet is paused for {elapsed} s: {text}");
                    talk.say(&format!("kubelet is paused for {elapsed} s: {text}"));
                }
                thread::sleep(LOOK);
            }
        }))
    }
}

impl Drop for BudgetWatch {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// What is to be said after how many seconds.
fn warnings(deadline: u64) -> Vec<(u64, String)> {
    const SOON: u64 = 10;
    const IN_GOOD_TIME: u64 = 60;
    let mut all = vec![
        (NOT_READY_AFTER - SOON, format!("after {NOT_READY_AFTER} s the node is marked NotReady")),
        (NOT_READY_AFTER, "the node is marked NotReady about now; its pods keep running".to_owned()),
        (EVICTION_AFTER - IN_GOOD_TIME, format!("after {EVICTION_AFTER} s its pods are marked for eviction")),
        (
            EVICTION_AFTER,
            "the pods are marked for eviction about now, and are killed when kubelet is back".to_owned(),
        ),
    ];
    if deadline > IN_GOOD_TIME {
        all.push((deadline - IN_GOOD_TIME, format!("the deadline starts it again after {deadline} s")));
    }
    all.push((deadline, "the deadline starts it again now".to_owned()));
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_budget_is_told_of_before_it_is_used_up() {
        let at: Vec<u64> = warnings(600).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [30, 40, 280, 340, 540, 600]);
        let at: Vec<u64> = warnings(20).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [20, 30, 40, 280, 340]);
    }
}
