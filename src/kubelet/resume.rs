//! Starts kubelet again, even if the netfix that paused it is gone.

use crate::context::Context;
use crate::kubelet::{damaged, deadline};
use crate::model::problem::{GuardCause, KubeletCause, WindowCause};
use crate::model::window::PhaseName;
use crate::model::{Exit, Problem, Window};
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::systemd::{self, Bus};
use crate::window::event::Event;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::observed::observe;
use crate::window::records::is_owner_alive;
use crate::window::session::WindowSession;
use crate::window::session::damaged::mend;
use crate::window::status::WindowStatus;
use crate::window::{abandoned, bus};

const COMMAND: &str = "resume";

/// What came of a pause or a resume.
pub(crate) struct Held {
    /// The window; `None` where none is open.
    pub status: Option<WindowStatus>,
    pub exit: Exit,
    pub problems: Vec<Problem>,
}

/// Refuses while a kubelet that starts may rebuild pods, unless that is accepted. The deadline starts the unit without this.
pub(crate) fn run(
    config: &RuntimeConfig,
    accepts_losses: bool,
    context: &mut Context,
) -> Result<Held, Refusal> {
    let hold = context.store.load_hold().ok().flatten();
    let is_guard_held = hold.is_some_and(|hold| hold.is_pause);
    // Without a record nothing is paused, and no folder is created for the lock.
    if !context.store.has_window_file() && !is_guard_held {
        return Ok(none_open(WindowCause::NothingPaused.info("window")));
    }
    let over = context.store.unclosed_window().ok().flatten();
    let guard = context.store.lock(COMMAND)?;
    let window = match context.store.unclosed_window() {
        Ok(Some(window)) => window,
        Ok(None) if is_guard_held => {
            guard.save_hold(None)?;
            return Ok(none_open(GuardCause::Resumed.info("guard")));
        }
        Ok(None) => return Ok(closed(over)),
        Err(error) if error.is_newer() => return Err(error.into()),
        Err(error) => {
            let damage = context.store.window_damage().unwrap_or(error);
            drop(guard);
            return damaged::resume(&damage, context);
        }
    };
    let damage = mend(&guard);
    if !accepts_losses && window.ended.is_none() {
        let now = observe(&window, &context.store);
        if now.is_resume_dangerous() {
            let cause = WindowCause::NotResumable { now };
            return Err(cause.error(window.id).into());
        }
    }
    let (window, mut problems, has_lost) = if is_owner_alive(&window) {
        let mut session = WindowSession::visit(window, guard);
        let (problems, _) = end_pause(&mut session);
        (session.leave(), problems, false)
    } else {
        let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
        end_abandoned(session, config, context)
    };
    problems.extend(damage);
    let worst = if has_lost { Exit::Partly } else { Exit::Failed };
    Ok(Held {
        status: Some(WindowStatus::new(window, None)),
        exit: worst.if_errors(&problems),
        problems,
    })
}

/// No window was open.
fn none_open(problem: Problem) -> Held {
    Held {
        status: None,
        exit: Exit::Done,
        problems: vec![problem],
    }
}

/// With the lock the record of a window that was `over` was closed, if another process has not closed it before.
fn closed(over: Option<Window>) -> Held {
    let Some(window) = over.filter(|window| window.ended.is_some()) else {
        return none_open(WindowCause::NothingPaused.info("window"));
    };
    Held {
        status: Some(WindowStatus::new(window, None)),
        exit: Exit::Done,
        problems: Vec::new(),
    }
}

/// Observes the pods, starts kubelet, and closes the window; returns whether kubelet runs and pods are lost.
fn end_abandoned(
    mut session: WindowSession,
    config: &RuntimeConfig,
    context: &mut Context,
) -> (Window, Vec<Problem>, bool) {
    let observed = abandoned::observe_pods(&mut session, config, &context.store);
    let (mut problems, runs) = end_pause(&mut session);
    let of_pods = match observed {
        Some(observed) => abandoned::note_pods(&mut session, observed, config, context),
        None => Vec::new(),
    };
    let has_lost = of_pods.iter().any(Problem::is_error);
    problems.extend(of_pods);
    if !runs {
        session.save_if_possible();
        return (session.leave(), problems, false);
    }
    // The end of a pause is this; any other window was to do more.
    let end = match session.window().command.as_str() {
        "pause" => Exit::Done,
        _ if has_lost => Exit::Partly,
        _ => Exit::Failed,
    };
    let (window, failed) = session.close(end, Some(COMMAND));
    problems.extend(failed);
    (window, problems, has_lost)
}

/// Starts the unit and stops the deadline; `Ok` has what is worth knowing about the deadline. Where the unit does not start, the
/// deadline stays armed and the window open.
pub(crate) fn resume(session: &mut WindowSession, bus: &Bus) -> Result<Option<Problem>, Problem> {
    let Some(pause) = &session.window().pause else {
        return Ok(None);
    };
    let unit = pause.unit.clone();
    session.begin(PhaseName::Resume, &Event::Resuming { unit: unit.clone() });
    if let Err(cause) = systemd::resume(bus, &unit) {
        session.end(false);
        let cause = KubeletCause::NotResumed {
            unit: unit.clone(),
            cause,
        };
        return Err(cause.error(unit));
    }
    // The deadline or another program may have started it long before.
    let since = bus.active_since(&unit).ok().flatten();
    let began = session.window().started_boottime;
    session.note_resumed(since.and_then(|since| since.checked_sub(began)));
    let left = deadline::disarm(bus, session.window());
    // The unit runs; a deadline that is left is a warning.
    session.end(true);
    session.log(&Event::Resumed { unit });
    Ok(left)
}

/// Starts the paused unit again, unless that was done; returns whether it runs.
fn end_pause(session: &mut WindowSession) -> (Vec<Problem>, bool) {
    let window = session.window();
    if window.pause.is_none() || window.is_ended_by_reboot() {
        return (Vec::new(), true);
    }
    let bus = bus::connect();
    if !window.is_paused() {
        // The process that resumed it may have died before it stopped the deadline.
        let bus = bus.ok().flatten();
        let left = bus.and_then(|bus| deadline::disarm(&bus, window));
        return (left.into_iter().collect(), true);
    }
    let resumed = match bus {
        Ok(Some(bus)) => resume(session, &bus),
        Ok(None) => Err(KubeletCause::NoSystemd.error("")),
        Err(problem) => Err(problem),
    };
    match resumed {
        Ok(left) => (left.into_iter().collect(), true),
        Err(problem) => (vec![problem], false),
    }
}

/// Ends a window whose process died: kubelet runs, the record stays.
pub(crate) fn finish_abandoned(mut session: WindowSession, by: &str) -> Vec<Problem> {
    let (mut problems, _) = end_pause(&mut session);
    problems.extend(session.close(Exit::Failed, Some(by)).1);
    problems
}

/// Closes a window in which only a pause was tried.
pub(crate) fn abandon(session: WindowSession) -> Vec<Problem> {
    // While the unit does not run, the window stays open for the next process.
    if session.window().is_paused() || !session.is_saved() {
        session.leave();
        return Vec::new();
    }
    session.close(Exit::Refused, None).1
}
