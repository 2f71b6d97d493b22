//! The end of a command of the user that has passed its limit, or got its third signal.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::upgrade::limit::TimeLimit;
use crate::upgrade::process_tree::ProcessTree;
use crate::upgrade::signals::Signals;
use crate::window::event::{Event, UserCommand};
use crate::window::window_log::WindowLog;

/// How often netfix checks whether what the command has started has ended.
const INTERVAL: Duration = Duration::from_millis(250);

/// Where a command of the user runs, and for how long.
pub(crate) struct Terms<'a> {
    pub program: UserCommand,
    /// `None`: until it ends.
    pub limit: Option<TimeLimit>,
    pub log: &'a WindowLog,
    pub signals: &'a Signals,
}

/// SIGTERM to the command and to all that it has started, SIGKILL, and then netfix continues without its end: the kernel keeps a
/// process that waits for a driver.
pub(crate) struct Termination<'a> {
    pid: u32,
    terms: &'a Terms<'a>,
    stage: TerminationStage,
    /// When the next stage begins.
    next: Option<Instant>,
    /// What has to end, since the limit has passed.
    tree: Option<ProcessTree>,
    checked: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminationStage {
    Runs,
    Terminated,
    Killed,
}

impl<'a> Termination<'a> {
    /// Of a command that has just started.
    pub(super) fn new(pid: u32, terms: &'a Terms<'a>) -> Self {
        let now = Instant::now();
        Self {
            pid,
            terms,
            stage: TerminationStage::Runs,
            // A limit beyond the clock is none.
            next: terms.limit.and_then(|one| now.checked_add(one.limit)),
            tree: None,
            checked: now,
        }
    }

    /// Begins the next stage when it is time; returns whether netfix continues. What a command has left behind that ended within
    /// its limit is a daemon.
    pub(super) fn is_over(&mut self, has_ended: bool) -> bool {
        if has_ended && !self.tree_runs() {
            return true;
        }
        if self.stage == TerminationStage::Runs && self.terms.signals.have_killed() {
            self.begin(TerminationStage::Killed);
        }
        let is_time = self.next.is_some_and(|next| Instant::now() >= next);
        match self.stage {
            _ if !is_time => return false,
            TerminationStage::Runs => self.terminate(),
            TerminationStage::Terminated => self.kill(),
            TerminationStage::Killed => {
                let (program, pid) = (self.terms.program, self.pid);
                self.log(&Event::DoesNotEnd { program, pid });
                return true;
            }
        }
        false
    }

    /// The limit in milliseconds, if it has passed.
    pub(super) fn timed_out(&self) -> Option<u64> {
        self.tree.as_ref()?;
        let limit = self.terms.limit?.limit.as_millis();
        Some(u64::try_from(limit).unwrap_or(u64::MAX))
    }

    fn tree_runs(&mut self) -> bool {
        let Some(tree) = &self.tree else {
            return false;
        };
        if self.checked.elapsed() < INTERVAL {
            return true;
        }
        self.checked = Instant::now();
        tree.is_running()
    }

    fn terminate(&mut self) {
        let (program, pid) = (self.terms.program, self.pid);
        let tree = ProcessTree::of(pid);
        if let Some(TimeLimit { limit, grace }) = self.terms.limit {
            self.log(&Event::TimedOut {
                program,
                pid,
                limit,
                grace,
            });
        }
        tree.signal(Signal::SIGTERM);
        self.tree = Some(tree);
        self.begin(TerminationStage::Terminated);
    }

    fn kill(&mut self) {
        let (program, pid) = (self.terms.program, self.pid);
        self.log(&Event::KilledAtLimit { program, pid });
        if let Some(tree) = &mut self.tree {
            tree.update();
            tree.signal(Signal::SIGKILL);
        }
        self.begin(TerminationStage::Killed);
    }

    fn begin(&mut self, stage: TerminationStage) {
        let grace = self.terms.limit.map_or(TimeLimit::GRACE, |one| one.grace);
        self.next = Instant::now().checked_add(grace);
        self.stage = stage;
    }

    fn log(&self, event: &Event) {
        self.terms.log.line(event);
    }
}
