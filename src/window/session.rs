//! The open window of this process: recorded on disk before anything is done, logged, and closed in the end.

use std::io::SeekFrom;
use std::path::Path;
use std::time::Duration;

use crate::inventory::{node, procfs};
use crate::model::problem::WindowCause;
use crate::model::window::{Phase, PhaseName, REBOOT, SCHEMA};
use crate::model::{Exit, Problem, Window};
use crate::refusal::Refusal;
use crate::store::{self, Guard, Store};
use crate::window::clock;
use crate::window::event::{Event, TARGET};
use crate::window::window_log;
use crate::window::window_log::WindowLog;

/// The one writer of a window's record and log.
#[derive(Debug)]
pub(crate) struct WindowSession {
    pub window: Window,
    /// For COMMAND and for threads too.
    pub log_file: WindowLog,
    /// The lock on the state directory; `None` while other commands may run.
    pub guard: Option<Guard>,
    /// Whether the window is on disk. The first pause writes it.
    pub is_saved: bool,
    /// Whether the log has that the disk refuses the record.
    has_warned: bool,
}

impl WindowSession {
    /// A new window, not yet on disk.
    pub(crate) fn open(
        store: &Store,
        guard: Guard,
        command: &str,
        echo: bool,
        log_limit: u64,
    ) -> Result<Self, Refusal> {
        let id = store.free_window_id(&clock::id())?;
        // No window is open: logs of processes that are gone belong to none.
        window_log::sweep();
        let mut log = WindowLog::open(&id, log_limit);
        if echo {
            log.start_echo(SeekFrom::Start(0));
        }
        let window = Window {
            schema: SCHEMA,
            id,
            command: command.to_owned(),
            node: node::node_identity(),
            owner: procfs::own(),
            started: clock::wall(),
            started_boottime: clock::boottime(),
            ended: None,
            exit: None,
            closed_by: None,
            pause: None,
            run: None,
            rollback: None,
            nics: None,
            phases: Vec::new(),
            pods: Vec::new(),
            problems: Vec::new(),
            log: log.path().map(|path| path.display().to_string()),
        };
        Ok(Self::new(window, log, guard, false))
    }

    /// Takes over the window of a process that is gone.
    pub(crate) fn take_over(mut window: Window, guard: Guard, echo: bool, log_limit: u64) -> Self {
        let mut log = WindowLog::open(&window.id, log_limit);
        let earlier = window.log.as_deref().map(Path::new);
        if let Some(earlier) = earlier.filter(|log| window_log::is_live(log)) {
            log.continue_from(earlier);
        }
        window.log = log.path().map(|path| path.display().to_string());
        if echo {
            log.start_echo(SeekFrom::End(0));
        }
        Self::new(window, log, guard, true)
    }

    /// Changes the window of a process that still runs.
    pub(crate) fn visit(window: Window, guard: Guard) -> Self {
        Self::new(window, WindowLog::default(), guard, true)
    }

    fn new(mut window: Window, log_file: WindowLog, guard: Guard, is_saved: bool) -> Self {
        // What an earlier netfix wrote is written again with every key of this format.
        window.schema = SCHEMA;
        Self {
            window,
            log_file,
            guard: Some(guard),
            is_saved,
            has_warned: false,
        }
    }

    /// Milliseconds since the window's start.
    pub(crate) fn now(&self) -> u64 {
        clock::boottime().saturating_sub(self.window.started_boottime)
    }

    /// How long it is until the deadline starts the unit.
    pub(crate) fn until_deadline(&self) -> Duration {
        let pause = self.window.pause.as_ref();
        let at = pause.map(|pause| pause.armed.unwrap_or_default() + pause.deadline * 1000);
        Duration::from_millis(at.unwrap_or_default().saturating_sub(self.now()))
    }

    /// Takes over what `netfix resume` recorded while this process waited for it.
    pub(crate) fn take_resume_of(&mut self, stored: Window) {
        let resume = stored
            .phases
            .into_iter()
            .rfind(|phase| phase.name == PhaseName::Resume);
        // That process may not have recorded the end of its phase yet.
        let resumed = stored.pause.as_ref().and_then(|pause| pause.resumed);
        let ended = |phase: Phase| Phase {
            to: phase.to.or(resumed),
            ok: phase.ok.or(Some(true)),
            ..phase
        };
        self.window.phases.extend(resume.map(ended));
        self.window.pause = stored.pause;
        self.save_if_possible();
    }

    /// Logs a line.
    pub(crate) fn log(&self, event: &Event) {
        self.log_file.line(event);
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, name: PhaseName, event: &Event) {
        log::info!(target: TARGET, PHASE = name.to_string().as_str(); "{event}");
        self.log_file.line(event);
        self.window.phases.push(Phase {
            name,
            from: self.now(),
            to: None,
            ok: None,
        });
        self.save_if_possible();
    }

    /// The last phase ends.
    pub(crate) fn end(&mut self, ok: bool) {
        let now = self.now();
        if let Some(phase) = self.window.phases.last_mut() {
            (phase.to, phase.ok) = (Some(now), Some(ok));
            let name = phase.name;
            log::info!(target: TARGET, PHASE = name.to_string().as_str(); "{}", Event::PhaseEnded { name, ok });
        }
        self.save_if_possible();
    }

    /// Writes the record, where it has to be on disk before the next change.
    pub(crate) fn save(&mut self) -> Result<(), store::StoreError> {
        if let Some(guard) = &self.guard {
            guard.save_window(&self.window)?;
            self.is_saved = true;
        }
        Ok(())
    }

    /// Writes the record, where a full disk must not stop the window.
    pub(crate) fn save_if_possible(&mut self) {
        if !self.is_saved {
            return;
        }
        if let Err(error) = self.save()
            && !std::mem::replace(&mut self.has_warned, true)
        {
            let problem = error.problem().demoted();
            self.log(&Event::NotSaved(problem.clone()));
            self.window.problems.push(problem);
        }
    }

    /// Leaves the window as it is on disk; returns it.
    pub(crate) fn leave(mut self) -> Window {
        self.log_file.end_echo();
        // The record on disk names the log.
        if let (false, Some(log)) = (self.is_saved, self.log_file.path()) {
            window_log::remove(log);
        }
        self.window
    }

    /// Closes the window and keeps its record; returns that, and what failed. A window whose process died while it closed it
    /// keeps the end that it had.
    pub(crate) fn close(mut self, end: Exit, closed_by: Option<&str>) -> (Window, Vec<Problem>) {
        if self.window.ended.is_none() {
            let is_of_other_boot = is_of_other_boot(&self.window);
            // This boot's clock does not apply to a window of another one.
            (self.window.ended, self.window.closed_by) = if is_of_other_boot {
                (self.window.last_known(), Some(REBOOT.to_owned()))
            } else {
                (Some(self.now()), closed_by.map(str::to_owned))
            };
            self.window.exit = Some(end as u8);
        }
        self.log_file.end_echo();
        let mut problems = Vec::new();
        if let Some(guard) = self.guard.take() {
            problems.extend(self.keep_log(&guard));
            match guard.close_window(&self.window) {
                Ok(failed) => {
                    problems.extend(failed.iter().map(|error| error.problem().demoted()));
                }
                Err(error) => problems.push(error.problem()),
            }
        }
        (self.window, problems)
    }

    /// Moves the log from memory to the records.
    fn keep_log(&mut self, guard: &Guard) -> Option<Problem> {
        let log = self.log_file.path()?;
        let text = self.log_file.kept();
        let kept = guard.add_to_window_log(&self.window.id, text);
        let failed = match kept {
            Ok(path) => {
                self.window.log = Some(path.display().to_string());
                window_log::remove(log);
                None
            }
            Err(error) => Some(error.problem().demoted()),
        };
        window_log::sweep();
        failed
    }
}

/// Whether the process that opened a window still runs, and is another one.
pub(crate) fn is_owner_alive(window: &Window) -> bool {
    window.owner != procfs::own() && procfs::is_alive(&window.owner)
}

/// Whether a window is of another boot: masks and timers do not survive a reboot.
pub(crate) fn is_of_other_boot(window: &Window) -> bool {
    !window.node.is_same(&node::node_identity())
}

/// What stops a command that needs a new window.
pub(crate) fn still_open(window: &Window) -> Problem {
    let cause = WindowCause::Open {
        started: window.started.clone(),
        command: window.command.clone(),
        pid: window.owner.pid,
        unit: window.pause.as_ref().map(|pause| pause.unit.clone()),
    };
    cause.error(window.id.clone())
}

/// The window that `upgrade` finds.
pub(crate) enum Found {
    Nothing,
    /// Closing it was interrupted, or the reboot has ended its pause.
    Finished(Window),
    /// An interrupted netfix left it open in this boot.
    Interrupted(Window),
}

/// Finds the window that is open. Refuses when the process still runs that opened it.
pub(crate) fn find(store: &Store) -> Result<Found, Refusal> {
    Ok(match store.open_window()? {
        None => Found::Nothing,
        Some(window) if is_owner_alive(&window) => return Err(still_open(&window).into()),
        Some(window) if window.ended.is_some() || is_of_other_boot(&window) => {
            Found::Finished(window)
        }
        Some(window) => Found::Interrupted(window),
    })
}

/// Opens a window for `upgrade`: a new one, or the interrupted one.
pub(crate) fn open_or_resume(
    guard: Guard,
    store: &Store,
    echo: bool,
    log_limit: u64,
) -> Result<WindowSession, Refusal> {
    const COMMAND: &str = "upgrade";
    let window = match find(store)? {
        Found::Nothing => return WindowSession::open(store, guard, COMMAND, echo, log_limit),
        Found::Finished(window) => {
            WindowSession::take_over(window, guard, false, log_limit).finish_abandoned(REBOOT);
            let guard = store.lock(COMMAND)?;
            return WindowSession::open(store, guard, COMMAND, echo, log_limit);
        }
        Found::Interrupted(window) => window,
    };
    let mut session = WindowSession::take_over(window, guard, echo, log_limit);
    session.window.owner = procfs::own();
    COMMAND.clone_into(&mut session.window.command);
    Ok(session)
}
