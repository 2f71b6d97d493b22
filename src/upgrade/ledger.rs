//! What a window leaves while it runs, the record, the log and the problems: how it opens, and how it ends.

mod conclusion;

use std::mem;
use std::time::Instant;

use crate::clock::boottime;
use crate::context::Context;
use crate::journal;
use crate::kernel::kmsg::KernelLogReader;
use crate::kubelet::resume::finish_abandoned;
use crate::model::problem::{CommandCause, RollbackCause, WindowCause};
use crate::model::window::{PhaseName, command_line};
use crate::model::{Exit, Problem, Window};
use crate::refusal::Refusal;
use crate::restore::{RestoreState, Restored};
use crate::store::{Guard, Store};
use crate::systemd::Bus;
use crate::upgrade::baseline::Baseline;
use crate::upgrade::limit::{self, TimeLimit};
use crate::upgrade::phases::command::{self, CommandProgress};
use crate::upgrade::phases::termination::Terms;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals::{self, Signals};
use crate::window::bus;
use crate::window::event::{Event, PodCount, UserCommand};
use crate::window::observed::still_open;
use crate::window::records::{EarlierWindow, find_earlier};
use crate::window::session::WindowSession;
use crate::window::session::close::require_closed;
use crate::window::session::damaged::mend;

const COMMAND: &str = "upgrade";
/// The command of a window after a loss that no COMMAND caused.
pub(crate) const GUARD: &str = "guard";
/// So many of the pods that are not restored are named in the log. The report has all.
const NAMED: usize = 30;

/// The record and log of a window, its problems, and the signals that interrupt a phase.
pub(crate) struct Ledger {
    pub session: WindowSession,
    pub problems: WindowProblems,
    pub signals: Signals,
    /// systemd; `None` where another init system runs this machine.
    pub bus: Option<Bus>,
    /// The signals that interrupted COMMAND or the rollback.
    interruptions: Vec<(UserCommand, &'static str)>,
}

impl Ledger {
    /// netfix failed in the window.
    pub(super) fn panicked() -> Problem {
        WindowCause::Panicked.error("netfix")
    }

    /// Opens a window under the lock, or takes over the one that an interrupted netfix left; from here on no signal ends this
    /// process. One ends netfix while it waits for the lock.
    pub(crate) fn open(context: &Context, echo: bool, log_limit: u64) -> Result<Self, Refusal> {
        let guard = context.store.lock(COMMAND)?;
        Self::with(guard, COMMAND, context, echo, log_limit)
    }

    /// Opens the window of a guard that has the lock, or takes over the one that a guard left.
    pub(crate) fn unplanned(
        guard: Guard,
        context: &Context,
        log_limit: u64,
    ) -> Result<Self, Refusal> {
        Self::with(guard, GUARD, context, false, log_limit)
    }

    fn with(
        guard: Guard,
        command: &'static str,
        context: &Context,
        echo: bool,
        log_limit: u64,
    ) -> Result<Self, Refusal> {
        let signals = Signals::catch().map_err(|error| {
            let error = error.to_string();
            WindowCause::Signals { error }.error("signals")
        })?;
        let bus = bus::connect()?;
        let mut problems = WindowProblems::default();
        problems.add(Area::Kubelet, mend(&guard));
        let echo = echo && !context.quiet;
        let (session, of_earlier) =
            open_or_resume(guard, command, &context.store, echo, log_limit)?;
        problems.add(Area::Kubelet, of_earlier);
        signals.log_to(session.log_file.for_thread());
        if session.is_saved() {
            journal::continues(command, &session.window().id);
        } else {
            journal::begins(command);
        }
        Ok(Self {
            session,
            problems,
            signals,
            bus,
            interruptions: Vec::new(),
        })
    }

    /// Records an interruption of the current phase; returns whether there was one.
    pub(crate) fn acknowledge(&mut self, cause: CommandCause) -> bool {
        let signal = self.signals.acknowledge();
        let interruption = signal.map(|_| cause.error(signals::OBJECT));
        self.problems.add(Area::Command, interruption);
        signal.is_some()
    }

    /// How long COMMAND, or the rollback, may run if it starts now.
    pub(crate) fn time_limit(&self, request: &UpgradeRequest<'_>, phase: PhaseName) -> TimeLimit {
        let window = self.session.window();
        let now = boottime().saturating_sub(window.started_boottime);
        limit::left(request, phase, window, now)
    }

    /// Logs a problem that people should see at once.
    pub(crate) fn report(&mut self, area: Area, problem: Problem) {
        self.session.log(&Event::Failed(problem.clone()));
        self.problems.add(area, [problem]);
    }

    /// Runs COMMAND or the rollback as a phase, and records what came of it.
    pub(crate) fn carry_out(
        &mut self,
        phase: PhaseName,
        event: &Event,
        argv: &[String],
        limit: TimeLimit,
        baseline: &Baseline,
    ) {
        let begin = Instant::now();
        let (session, stored) = (&mut self.session, &baseline.stored);
        session.begin(phase, event);
        session.watch_kernel(baseline.kernel_names(), KernelLogReader::at_end);
        let (id, log) = (session.window().id.clone(), session.log_file.for_thread());
        let is_rollback = phase == PhaseName::Rollback;
        let (program, area) = if is_rollback {
            (UserCommand::Rollback, Area::Rollback)
        } else {
            (UserCommand::Command, Area::Command)
        };
        let terms = Terms {
            program,
            limit: Some(limit),
            log: &log,
            signals: &self.signals,
        };
        // The next process must not run it beside this one, and must know a loss that this one saw before it was killed.
        let (run, lost) = command::run(argv, &id, &terms, &mut |progress| {
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
        let interruption = self.signals.acknowledge().map(|signal| (program, signal));
        self.interruptions.extend(interruption);
        let elapsed = begin.elapsed();
        let problem = match failure {
            None if is_rollback => return session.log(&Event::RolledBack { elapsed }),
            None => return session.log(&Event::CommandSucceeded { elapsed }),
            Some(cause) if is_rollback => RollbackCause::Failed { cause }.error(command_line(argv)),
            Some(cause) => cause.error(command_line(argv)),
        };
        session.log(&Event::CommandFailed(problem.clone()));
        self.problems.add(area, [problem]);
    }

    /// Records what a restore did and how it left everything, with its problems in the place of those of earlier ones.
    pub(crate) fn take_restore(&mut self, restored: &mut Restored) {
        let session = &mut self.session;
        session.note_restored(restored);
        if restored.is_unknown() {
            for problem in &restored.problems {
                session.log(&Event::Failed(problem.clone()));
            }
        } else {
            session.log(&Event::Restored {
                restored: restored.count(RestoreState::Restored),
                correct: restored.count(RestoreState::InSync),
                failed: restored.broken().count(),
                is_selection: restored.is_selection,
            });
            let is_device = |problem: &&Problem| problem.missing_device().is_some();
            for problem in restored.problems.iter().filter(is_device) {
                session.log(&Event::Failed(problem.clone()));
            }
        }
        self.problems.forget_network();
        let problems = mem::take(&mut restored.problems);
        self.problems.add(Area::Network, problems);
    }

    /// Logs the pods that are not restored. Returns whether there are any.
    pub(crate) fn log_broken(&self, restored: &Restored, is_held: bool) -> bool {
        let pods = restored.broken().count();
        if pods > 0 {
            let window = self.session.window();
            let starts = window.pause.as_ref();
            let starts = starts.filter(|_| window.is_paused() && !is_held);
            let unit = starts.map(|pause| pause.unit.clone());
            let pods = PodCount {
                pods,
                is_selection: restored.is_selection,
            };
            self.session.log(&Event::Unrestored { pods, unit });
        }
        for pod in restored.broken().take(NAMED) {
            self.session.log(&Event::UnrestoredPod {
                title: pod.pod.info.title(),
                state: pod.state.into(),
                is_bare: pod.after.as_ref().is_none_or(Vec::is_empty),
            });
        }
        if pods > NAMED {
            let pods = pods - NAMED;
            self.session.log(&Event::MoreUnrestored { pods });
        }
        pods > 0
    }

    /// Ends a window before COMMAND. One that was found paused stays paused and open.
    pub(crate) fn refused(self, restored: Restored) -> Upgraded {
        let (mut session, mut problems) = (self.session, self.problems.into_problems());
        session.note_refusal(&problems);
        let window = session.window();
        if window.is_paused() || window.pause.is_none() {
            session.leave();
        } else {
            problems.extend(session.close(Exit::Refused, None).1);
        }
        Upgraded {
            end: Exit::Refused,
            window: None,
            is_open: false,
            restored,
            problems,
        }
    }

    /// Ends a window after COMMAND.
    pub(crate) fn closed(self, mut end: Exit, restored: Restored) -> Upgraded {
        let (mut session, mut problems) = (self.session, self.problems.into_problems());
        session.note_outcome(&problems);
        let is_open = session.window().is_paused();
        let window = if is_open {
            // kubelet does not run: the window stays open for the next process.
            session.save_if_possible();
            session.leave()
        } else {
            let (window, failed) = session.close(end, None);
            if end == Exit::Done && failed.iter().any(Problem::is_error) {
                // All is well but the window, which is still open.
                end = Exit::Failed;
            }
            problems.extend(failed);
            window
        };
        Upgraded {
            end,
            window: Some(window),
            is_open,
            restored,
            problems,
        }
    }
}

/// A new window, or the interrupted one of this command; with the problems of the end of a guard's, which another command closes.
fn open_or_resume(
    guard: Guard,
    command: &'static str,
    store: &Store,
    echo: bool,
    log_limit: u64,
) -> Result<(WindowSession, Vec<Problem>), Refusal> {
    let (guard, problems) = match find_earlier(store)? {
        EarlierWindow::Nothing => (guard, Vec::new()),
        EarlierWindow::Interrupted(window) if window.is_unplanned() == (command == GUARD) => {
            let mut session = WindowSession::take_over(window, guard, echo, log_limit);
            session.own(command);
            return Ok((session, Vec::new()));
        }
        EarlierWindow::Interrupted(window) if command == GUARD => {
            return Err(still_open(&window, store).into());
        }
        EarlierWindow::Interrupted(window) => {
            let session = WindowSession::take_over(window, guard, false, log_limit);
            let problems = finish_abandoned(session, command);
            (store.lock(command)?, problems)
        }
        EarlierWindow::Finished(window) => {
            require_closed(&window, &guard)?;
            (guard, Vec::new())
        }
    };
    let session = WindowSession::open(store, guard, command, echo, log_limit)?;
    Ok((session, problems))
}

/// How a window ended.
pub(crate) struct Upgraded {
    pub end: Exit,
    /// The record; `None` where the window ended before its first change.
    pub window: Option<Window>,
    /// Whether the window is still open: kubelet does not run.
    pub is_open: bool,
    pub restored: Restored,
    pub problems: Vec<Problem>,
}

/// What a problem of a window is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// What the check found and --force accepted.
    Preflight,
    /// COMMAND, and interruptions: the pods may all be well.
    Command,
    /// The rollback that ran, and why.
    Rollback,
    Kubelet,
    /// The pods' network: another restore may put it right.
    Network,
    /// Rebuilt pods, and failures of netfix.
    Rebuild,
}

/// Every problem of a window, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct WindowProblems(Vec<(Area, Problem)>);

impl WindowProblems {
    pub(crate) fn add(&mut self, area: Area, problems: impl IntoIterator<Item = Problem>) {
        self.0
            .extend(problems.into_iter().map(|problem| (area, problem)));
    }

    /// Removes the problems that another observation of the pods' network reports again if they still exist.
    pub(crate) fn forget_network(&mut self) {
        self.0.retain(|(area, _)| *area != Area::Network);
    }

    /// Those of one area.
    pub(crate) fn of(&self, area: Area) -> impl Iterator<Item = &Problem> {
        let own = self.0.iter().filter(move |(one, _)| *one == area);
        own.map(|(_, problem)| problem)
    }

    /// How the window ends: the pods and kubelet decide, then COMMAND.
    pub(crate) fn end(&self) -> Exit {
        let errors = || self.0.iter().filter(|(_, problem)| problem.is_error());
        if errors().next().is_none() {
            Exit::Done
        } else if errors().all(|(area, _)| matches!(area, Area::Command | Area::Rollback)) {
            Exit::Failed
        } else {
            Exit::Partly
        }
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.0.into_iter().map(|(_, problem)| problem).collect()
    }
}
