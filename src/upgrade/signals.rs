//! Signals during a window: no signal ends netfix while kubelet is paused. Each is logged with what it does.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals as Arriving};

use crate::model::Problem;
use crate::model::problem::CommandCause;
use crate::upgrade::process_tree::ProcessTree;
use crate::window::event::{Event, SignalEffect, UserCommand};
use crate::window::window_log::WindowLog;

/// The object of an interruption.
pub(crate) const OBJECT: &str = "signal";
/// From the third signal on a command of the user gets SIGKILL.
const KILL_FROM: usize = 3;

#[derive(Debug, Default)]
struct SignalState {
    count: usize,
    /// How many of them were acknowledged.
    acknowledged: usize,
    /// The one that came last.
    last: Option<Signal>,
    /// The command of the user that runs.
    running: Option<UserProcess>,
    /// The log of the window, once it is open.
    log: WindowLog,
}

/// A command of the user, and how many signals it got.
#[derive(Debug, Clone, Copy)]
struct UserProcess {
    program: UserCommand,
    pid: u32,
    signals: usize,
}

/// SIGINT and SIGTERM interrupt the current phase and are passed on to COMMAND. A lost terminal (SIGHUP) changes nothing.
#[derive(Debug)]
pub(crate) struct Signals {
    seen: Arc<Mutex<SignalState>>,
    handle: Handle,
}

impl Signals {
    pub(crate) fn catch() -> io::Result<Self> {
        let mut arriving = Arriving::new([SIGINT, SIGTERM, SIGHUP])?;
        let (seen, handle) = (Arc::new(Mutex::default()), arriving.handle());
        let noted = seen.clone();
        thread::Builder::new().spawn(move || {
            for number in arriving.forever().filter(|number| *number != SIGHUP) {
                if let Ok(signal) = Signal::try_from(number) {
                    state(&noted).arrived(signal);
                }
            }
        })?;
        Ok(Self { seen, handle })
    }

    /// Logs what each signal does from here on.
    pub(crate) fn log_to(&self, log: WindowLog) {
        state(&self.seen).log = log;
    }

    /// Whether a signal interrupts the current phase.
    pub(crate) fn interrupted(&self) -> bool {
        state(&self.seen).is_interrupted()
    }

    /// Stops a window that has not changed anything.
    pub(crate) fn stop_if_interrupted(&self, cause: CommandCause) -> Result<(), Problem> {
        if self.interrupted() {
            return Err(cause.error(OBJECT));
        }
        Ok(())
    }

    /// The last signal, if one interrupts the current phase: an interruption ends one phase, and the next ones run.
    pub(crate) fn acknowledge(&self) -> Option<&'static str> {
        let mut seen = state(&self.seen);
        let signal = seen.last.filter(|_| seen.is_interrupted());
        seen.acknowledged = seen.count;
        signal.map(Signal::as_str)
    }

    /// Passes signals on to this process and its group from here on.
    pub(crate) fn pass_on_to(&self, program: UserCommand, pid: u32) {
        let mut seen = state(&self.seen);
        seen.running = Some(UserProcess {
            program,
            pid,
            signals: 0,
        });
        // One that came before it had started.
        if let (true, Some(signal)) = (seen.is_interrupted(), seen.last) {
            seen.pass_on(signal);
        }
    }

    /// Passes signals on to no process any more.
    pub(crate) fn pass_on_to_none(&self) {
        state(&self.seen).running = None;
    }

    /// Whether signals have killed the command that runs.
    pub(crate) fn have_killed(&self) -> bool {
        let running = state(&self.seen).running;
        running.is_some_and(|running| running.signals >= KILL_FROM)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
    }
}

fn state(seen: &Mutex<SignalState>) -> MutexGuard<'_, SignalState> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SignalState {
    fn is_interrupted(&self) -> bool {
        self.count > self.acknowledged
    }

    fn arrived(&mut self, signal: Signal) {
        self.last = Some(signal);
        self.count += 1;
        self.pass_on(signal);
    }

    /// Passes a signal on where a command of the user runs, and logs what it does.
    fn pass_on(&mut self, signal: Signal) {
        let passed = self.running.as_mut().and_then(|running| {
            running.signals += 1;
            running.get(signal)
        });
        let effect = passed.unwrap_or_else(|| SignalEffect::OnPhase(self.log.moment()));
        let signal = signal.as_str();
        self.log.line(&Event::Signal { signal, effect });
    }
}

impl UserProcess {
    /// Gives the signal to the command; `None` where it has just ended.
    fn get(self, signal: Signal) -> Option<SignalEffect> {
        let Self { program, pid, .. } = self;
        if self.signals >= KILL_FROM {
            ProcessTree::of(pid).signal(Signal::SIGKILL);
            return Some(SignalEffect::Killed { program, pid });
        }
        killpg(Pid::from_raw(pid.cast_signed()), signal).ok()?;
        Some(SignalEffect::Passed { program, pid })
    }
}
