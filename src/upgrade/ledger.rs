//! What the phases of a window leave: the record, the log and the problems.

use std::time::{Duration, Instant};

use crate::gateways::Unanswered;
use crate::model::problem::{Cause, CommandCause};
use crate::model::window::PhaseName;
use crate::model::{Problem, Window};
use crate::records::stored::Stored;
use crate::restore::Restored;
use crate::upgrade::phases::command::CommandProgress;
use crate::upgrade::phases::snapshot::Before;
use crate::upgrade::phases::verify::Probe;
use crate::upgrade::phases::{command, restore};
use crate::upgrade::problems::{Area, WindowProblems};
use crate::upgrade::signals::Signals;
use crate::window::event::{Event, Reached};
use crate::window::session::WindowSession;

/// The record and log of a window, its problems, and the signals that interrupt a phase.
pub(crate) struct Ledger {
    pub session: WindowSession,
    pub problems: WindowProblems,
    pub signals: Signals,
}

impl Ledger {
    /// The record.
    pub(crate) fn window(&self) -> &Window {
        self.session.window()
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, name: PhaseName, event: &Event) {
        self.session.begin(name, event);
    }

    /// The last phase ends.
    pub(crate) fn end(&mut self, ok: bool) {
        self.session.end(ok);
    }

    /// Stops a window before COMMAND.
    pub(crate) fn stop_on_signal(&self, cause: CommandCause) -> Result<(), Problem> {
        self.signals.stop_if_interrupted(cause)
    }

    /// Records an interruption of the current phase; returns whether there was one.
    pub(crate) fn acknowledge(&mut self, cause: impl Into<Cause>) -> bool {
        let interruption = self.signals.acknowledge(cause);
        let is_interrupted = interruption.is_some();
        self.problems.add(Area::Command, interruption);
        is_interrupted
    }

    /// Logs a problem that people should see at once.
    pub(crate) fn report(&mut self, area: Area, problem: Problem) {
        self.session.log(&Event::Failed(problem.clone()));
        self.problems.add(area, [problem]);
    }

    /// Records the machine before COMMAND.
    pub(crate) fn note_before(&mut self, before: &Before) {
        let Before {
            baseline,
            sandboxes,
            nics,
        } = before;
        self.session
            .note_before(sandboxes, nics.clone(), &baseline.silent);
        let pods = self.session.window().pods.len();
        self.session.log(&Event::SnapshotTaken { pods });
        let count = baseline.silent.len();
        if count > 0 {
            self.session.log(&Event::SilentGateways { count });
        }
    }

    /// Runs COMMAND or the rollback as a phase, and records it; `outcome` is what to log, or the problem.
    pub(crate) fn carry_out(
        &mut self,
        (phase, event): (PhaseName, &Event),
        argv: &[String],
        stored: &Stored,
        outcome: &dyn Fn(Result<Duration, CommandCause>) -> Result<Event, Problem>,
    ) {
        let begin = Instant::now();
        let session = &mut self.session;
        session.begin(phase, event);
        let (id, log) = (session.window().id.clone(), session.log_file().for_thread());
        // The next process must not run it beside this one, and must know a loss that this one saw before it was killed.
        let (run, lost) = command::run(argv, &id, &log, &self.signals, &mut |progress| {
            match progress {
                CommandProgress::Started(run) => session.note_run(run.clone()),
                CommandProgress::Lost(lost) => session.note_losses(lost, stored),
            }
            session.save_if_possible();
        });
        let failure = command::failure(&run);
        session.note_run(run);
        session.end(failure.is_none());
        session.note_losses(&lost, stored);
        match outcome(failure.map_or_else(|| Ok(begin.elapsed()), Err)) {
            Ok(success) => session.log(&success),
            Err(problem) => {
                session.log(&Event::CommandFailed(problem.clone()));
                self.problems.add(Area::Command, [problem]);
            }
        }
    }

    /// Records what a restore did and how it left everything, with its problems in the place of those of earlier ones.
    pub(crate) fn take_restore(&mut self, restored: &mut Restored) {
        self.session.note_restored(restored);
        restore::log(restored, &self.session);
        self.problems.forget_network();
        let problems = std::mem::take(&mut restored.problems);
        self.problems.add(Area::Network, problems);
    }

    /// Records what a probe found; returns whether all is well, and what did not answer.
    pub(crate) fn take_probe(&mut self, probe: Probe) -> (bool, Vec<Unanswered>) {
        let Probe {
            verified,
            problems,
            nics,
        } = probe;
        if let Some(verified) = &verified {
            self.session.log(&Event::Verified(Reached::of(verified)));
            self.session.note_verified(verified);
        }
        let is_well = !problems.iter().any(Problem::is_error);
        self.problems.add(Area::Network, problems);
        self.session.note_nics_after(nics);
        let unanswered = verified.map(|verified| verified.unanswered);
        (is_well, unanswered.unwrap_or_default())
    }
}
