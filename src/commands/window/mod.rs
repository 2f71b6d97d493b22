//! The maintenance window as a thing that is kept: on disk before anything is done, with a log, and closed in the end.

pub(super) mod clock;
mod hold;
mod pause;
mod resume;
mod signals;
mod state;
mod talk;

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::{Early, Outcome};
use crate::model::window::{Phase, PhaseName, SCHEMA};
use crate::model::{NodeIdentity, Problem, Window};
use crate::observe;
use crate::runtime;
use crate::store::{self, Guard, Store};

pub(super) use hold::{find, is_held, systemd};
pub(super) use pause::{run as pause, still_open};
pub(super) use resume::run as resume;
pub(super) use signals::Signals;
pub(super) use state::{short, view};
pub(super) use talk::{Talk, follow};

/// The open window of this process.
#[derive(Debug)]
pub(super) struct Keeper {
    pub window: Window,
    pub talk: Talk,
    guard: Option<Rc<Guard>>,
    store: Store,
    /// What was saved before; nothing is on disk until the first pause.
    is_saved: bool,
    /// Whether the disk's refusal was told already.
    is_told: bool,
}

impl Keeper {
    /// A window of this process's, not yet on disk.
    pub(super) fn open(store: &Store, guard: Guard, command: &str, echo: bool) -> Result<Self, Early> {
        let refuse = |error: store::Error| Box::new(Outcome::refused(error.problem()));
        let id = store.free_window_id(&clock::id()).map_err(refuse)?;
        // No window is open: the logs of those who died are nobody's.
        talk::sweep();
        let talk = Talk::open(&id, echo);
        let window = Window {
            schema: SCHEMA,
            id,
            command: command.to_owned(),
            node: observe::node_identity(),
            owner: runtime::own(),
            started: clock::wall(),
            started_boottime: clock::boottime(),
            ended: None,
            exit: None,
            closed_by: None,
            hold: None,
            run: None,
            phases: Vec::new(),
            pods: Vec::new(),
            problems: Vec::new(),
            log: talk.path().map(|path| path.display().to_string()),
        };
        let store = store.clone();
        Ok(Self { window, talk, guard: Some(Rc::new(guard)), store, is_saved: false, is_told: false })
    }

    /// The window that another process has opened and does not keep any more; it goes on as this process's.
    pub(super) fn take_over(mut window: Window, store: &Store, guard: Guard, echo: bool) -> Self {
        let talk = Talk::open(&window.id, false);
        let before =
            window.log.as_deref().map(Path::new).filter(|log| talk::is_live(log)).and_then(talk::read);
        talk.repeat(&before.unwrap_or_default());
        window.log = talk.path().map(|path| path.display().to_string());
        let talk = if echo { talk.with_echo() } else { talk };
        let store = store.clone();
        Self { window, talk, guard: Some(Rc::new(guard)), store, is_saved: true, is_told: false }
    }

    /// A window whose process lives and keeps it, for something to be changed in it.
    pub(super) fn visit(window: Window, store: &Store, guard: Guard) -> Self {
        let (talk, store) = (Talk::on_stderr(), store.clone());
        Self { window, talk, guard: Some(Rc::new(guard)), store, is_saved: true, is_told: false }
    }

    /// Milliseconds since the window's start.
    pub(super) fn now(&self) -> u64 {
        clock::boottime().saturating_sub(self.window.started_boottime)
    }

    /// The lock, as long as it is held.
    pub(super) fn guard(&self) -> Option<&Rc<Guard>> {
        self.guard.as_ref()
    }

    /// How long it is until the unit is started again whatever happens.
    pub(super) fn until_deadline(&self) -> Duration {
        let at = self.window.hold.as_ref().map(|hold| hold.armed.unwrap_or_default() + hold.deadline * 1000);
        Duration::from_millis(at.unwrap_or_default().saturating_sub(self.now()))
    }

    /// Takes over what `netfix resume` has written while this process waited for it.
    pub(super) fn note_resume_of(&mut self, stored: Option<Window>) {
        let Some(stored) = stored else { return };
        let resume = stored.phases.into_iter().rfind(|phase| phase.name == PhaseName::Resume);
        // That process may be at its last words.
        let done = stored.hold.as_ref().and_then(|hold| hold.resumed);
        let ended = |phase: Phase| Phase { to: phase.to.or(done), ok: phase.ok.or(Some(true)), ..phase };
        self.window.phases.extend(resume.map(ended));
        self.window.hold = stored.hold;
        self.save_as_possible();
    }

    /// Lets other commands work.
    pub(super) fn let_go(&mut self) {
        self.guard = None;
    }

    /// Takes the lock again.
    pub(super) fn take_back(&mut self, guard: Guard) {
        self.guard = Some(Rc::new(guard));
    }

    /// A phase begins.
    pub(super) fn begin(&mut self, name: PhaseName, text: &str) {
        log::info!(PHASE = name.to_string().as_str(); "{text}");
        self.talk.say(text);
        self.window.phases.push(Phase { name, from: self.now(), to: None, ok: None });
        self.save_as_possible();
    }

    /// The phase that has begun last is over.
    pub(super) fn end(&mut self, ok: bool) {
        let now = self.now();
        if let Some(phase) = self.window.phases.last_mut() {
            (phase.to, phase.ok) = (Some(now), Some(ok));
            let word = if ok { "is done" } else { "did not do all that it was to do" };
            log::info!(PHASE = phase.name.to_string().as_str(); "{} {word}", phase.name);
        }
        self.save_as_possible();
    }

    /// Writes down how the window stands, where that has to be on disk before the next thing is done.
    pub(super) fn save(&mut self) -> Result<(), store::Error> {
        self.is_saved = true;
        match &self.guard {
            Some(guard) => guard.save_window(&self.window),
            None => Ok(()),
        }
    }

    /// The same where a full disk must not stop anything.
    pub(super) fn save_as_possible(&mut self) {
        if !self.is_saved {
            return;
        }
        if let Err(error) = self.save()
            && !std::mem::replace(&mut self.is_told, true)
        {
            let problem = error.problem().demoted();
            self.talk.say(&format!(
                "{problem}; the window goes on, and is written down again as soon as possible"
            ));
            self.window.problems.push(problem);
        }
    }

    /// What another command has written meanwhile.
    pub(super) fn as_stored(&self) -> Result<Option<Window>, store::Error> {
        self.store.open_window()
    }

    /// Ends the talk and leaves the window as it is on disk.
    pub(super) fn forget(mut self) {
        self.talk.hush();
        if self.is_saved {
            // The log is named there.
            return;
        }
        self.talk.path().into_iter().for_each(talk::remove);
    }

    /// Closes the window and keeps its record; returns that, and what went wrong with it.
    pub(super) fn close(mut self, exit: u8, closed_by: Option<&str>) -> (Window, Vec<Problem>) {
        self.window.ended = Some(self.now());
        self.window.exit = Some(exit);
        self.window.closed_by = closed_by.map(str::to_owned);
        self.talk.hush();
        let mut problems = Vec::new();
        self.keep_log(&mut problems);
        let Some(guard) = &self.guard else { return (self.window, problems) };
        // A window that stays open is what the next upgrade goes on with: a passing refusal is not worth that.
        let closed = guard.close_window(&self.window).or_else(|_| guard.close_window(&self.window));
        match closed {
            Ok(closed) => {
                let errors = closed.incomplete.into_iter().chain(closed.untidy);
                problems.extend(errors.map(|error| error.problem().demoted()));
            }
            Err(error) => problems.push(error.problem()),
        }
        (self.window, problems)
    }

    /// Moves the log from memory to the records.
    fn keep_log(&mut self, problems: &mut Vec<Problem>) {
        let Some(guard) = &self.guard else { return };
        let Some(log) = self.talk.path().map(Path::to_owned) else { return };
        let text = talk::read(&log).unwrap_or_default();
        match guard.add_to_window_log(&self.window.id, &String::from_utf8_lossy(&text)) {
            Ok(path) => {
                self.window.log = Some(path.display().to_string());
                talk::remove(&log);
            }
            Err(error) => {
                problems.push(error.problem().demoted());
            }
        }
        talk::sweep();
    }
}

/// Whether the process that opened a window still keeps it.
pub(super) fn is_kept(window: &Window) -> bool {
    window.owner != runtime::own() && runtime::is_alive(&window.owner)
}

/// Goes on with a window that is still open, or closes one of another boot and opens a new one. Returns whether one goes
/// on in which the user's command was begun.
///
/// # Errors
/// When the process lives that opened it.
pub(super) fn go_on(
    window: Window,
    guard: Guard,
    store: &Store,
    echo: bool,
) -> Result<(Keeper, bool), Early> {
    if is_kept(&window) {
        return Err(Box::new(Outcome::refused(still_open(&window))));
    }
    if is_of_other_boot(&window, &observe::node_identity()) {
        // The reboot has ended what it held.
        Keeper::take_over(window, store, guard, false).finish_abandoned("reboot");
        let guard = store.lock("upgrade").map_err(|error| Box::new(Outcome::refused(error.problem())))?;
        return Ok((Keeper::open(store, guard, "upgrade", echo)?, false));
    }
    let mut keeper = Keeper::take_over(window, store, guard, echo);
    keeper.window.owner = runtime::own();
    "upgrade".clone_into(&mut keeper.window.command);
    let has_begun = keeper.window.has_begun();
    Ok((keeper, has_begun))
}

/// Whether a window is of another boot, so that nothing of it can still be in force: masks and timers do not survive.
pub(super) fn is_of_other_boot(window: &Window, node: &NodeIdentity) -> bool {
    !window.node.is_same(node)
}
