//! Signals during a window: no signal ends netfix while kubelet is paused.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Arriving};

use crate::model::problem::{Cause, CommandCause};
use crate::model::{Problem, Severity};

/// The object of an interruption.
const OBJECT: &str = "signal";
/// From the third signal on COMMAND gets SIGKILL.
const KILL_FROM: usize = 3;

#[derive(Debug, Default)]
struct SignalState {
    count: AtomicUsize,
    /// How many of them were acknowledged.
    acknowledged: AtomicUsize,
    /// The one that came last.
    last: AtomicI32,
    /// The process group of COMMAND while it runs, otherwise 0.
    group: AtomicI32,
}

/// SIGINT and SIGTERM interrupt the current phase and are passed on to COMMAND. A lost terminal (SIGHUP) changes nothing.
#[derive(Debug)]
pub(crate) struct Signals {
    seen: Arc<SignalState>,
    handle: Handle,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let mut arriving = Arriving::new([SIGINT, SIGTERM, SIGHUP])?;
        let (seen, handle) = (Arc::new(SignalState::default()), arriving.handle());
        let noted = seen.clone();
        thread::Builder::new().spawn(move || {
            for number in arriving.forever().filter(|number| *number != SIGHUP) {
                noted.arrived(number);
            }
        })?;
        Ok(Self { seen, handle })
    }

    /// Whether a signal interrupts the current phase.
    pub(crate) fn interrupted(&self) -> bool {
        self.seen.count.load(Ordering::SeqCst) > self.seen.acknowledged.load(Ordering::SeqCst)
    }

    /// Stops a window that has not changed anything.
    pub(crate) fn stop_if_interrupted(&self, cause: CommandCause) -> Result<(), Problem> {
        if self.interrupted() {
            return Err(cause.error(OBJECT));
        }
        Ok(())
    }

    /// The interruption of the current phase, if there was one: an interruption ends one phase, and the next ones run.
    pub(crate) fn acknowledge(&self, cause: impl Into<Cause>) -> Option<Problem> {
        if !self.interrupted() {
            return None;
        }
        self.seen
            .acknowledged
            .store(self.seen.count.load(Ordering::SeqCst), Ordering::SeqCst);
        Some(Problem::new(Severity::Error, OBJECT, cause))
    }

    /// Passes signals on to this process group from here on; `None`: to no process.
    pub(crate) fn pass_on_to(&self, group: Option<u32>) {
        let group = group
            .and_then(|group| i32::try_from(group).ok())
            .unwrap_or_default();
        self.seen.group.store(group, Ordering::SeqCst);
        // One that came before COMMAND had started.
        if self.interrupted() {
            self.seen.pass_on(
                self.seen.last.load(Ordering::SeqCst),
                self.seen.count.load(Ordering::SeqCst),
            );
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

impl SignalState {
    fn arrived(&self, number: i32) {
        self.last.store(number, Ordering::SeqCst);
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        self.pass_on(number, count);
    }

    fn pass_on(&self, number: i32, count: usize) {
        let group = self.group.load(Ordering::SeqCst);
        let signal = if count >= KILL_FROM {
            Ok(Signal::SIGKILL)
        } else {
            Signal::try_from(number)
        };
        if let (1.., Ok(signal)) = (group, signal) {
            // Fails where COMMAND has just ended.
            let _ = killpg(Pid::from_raw(group), signal);
        }
    }
}
