//! Pauses kubelet outside of an upgrade, with a deadline that starts it again.

use std::time::Duration;

use crate::context::Context;
use crate::kubelet::kubelet_pause;
use crate::model::{Problem, Window};
use crate::refusal::Refusal;
use crate::store::Guard;
use crate::systemd::{self, Bus};
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::session::{WindowSession, is_of_other_boot, is_owner_alive, still_open};
use crate::window::window_status::WindowStatus;

const COMMAND: &str = "pause";

/// What came of the pause.
pub(crate) struct Paused {
    /// The window; `None` where no kubelet runs, or the pause failed.
    pub status: Option<WindowStatus>,
    /// Whether the pause failed, and was undone.
    pub failed: bool,
    pub problems: Vec<Problem>,
}

pub(crate) fn run(
    unit: Option<&str>,
    deadline: Duration,
    context: &mut Context,
) -> Result<Paused, Refusal> {
    let guard = context.store.lock(COMMAND)?;
    let bus = kubelet_pause::systemd()?;
    let (guard, mut problems) = close_old_window(guard, bus.as_ref(), context)?;
    let (unit, note) = kubelet_pause::find(bus.as_ref(), unit)?;
    problems.extend(note);
    let mut paused = Paused {
        status: None,
        failed: false,
        problems,
    };
    let (Some(bus), Some(unit)) = (&bus, unit) else {
        return Ok(paused);
    };
    let mut session = WindowSession::open(&context.store, guard, COMMAND, false, DEFAULT_LIMIT)?;
    match session.pause(bus, &unit, deadline) {
        Ok(()) => paused.status = Some(WindowStatus::new(session.leave(), Some(bus))),
        Err(problem) => {
            paused.failed = true;
            paused.problems.push(problem);
            paused.problems.extend(session.abandon());
        }
    }
    Ok(paused)
}

/// Closes a window whose process is gone and that keeps nothing paused. Any other stops the command.
fn close_old_window(
    guard: Guard,
    bus: Option<&Bus>,
    context: &Context,
) -> Result<(Guard, Vec<Problem>), Refusal> {
    let Some(window) = context.store.open_window()? else {
        return Ok((guard, Vec::new()));
    };
    if is_in_force(&window, bus) {
        return Err(still_open(&window).into());
    }
    let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
    let problems = session.finish_abandoned(COMMAND);
    Ok((context.store.lock(COMMAND)?, problems))
}

/// Whether a window still keeps a unit from running, or its process still runs.
fn is_in_force(window: &Window, bus: Option<&Bus>) -> bool {
    if is_of_other_boot(window) {
        return false;
    }
    let is_held = |unit: &str| bus.is_none_or(|bus| systemd::is_held(bus, unit).unwrap_or(true));
    let holds = window.is_paused()
        && window
            .pause
            .as_ref()
            .is_some_and(|pause| is_held(&pause.unit));
    holds || is_owner_alive(window)
}
