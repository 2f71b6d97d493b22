//! `netfix pause`: kubelet stopped, held, and surely started again at the deadline.

use std::time::Duration;

use super::{Keeper, find, is_kept, is_of_other_boot, systemd};
use crate::commands::session::node_view;
use crate::commands::{Context, Early, Exit, Outcome};
use crate::kubelet::{self, Bus};
use crate::model::{Code, Problem, Window};
use crate::observe;
use crate::store::Guard;

pub(in crate::commands) fn run(
    unit: Option<&str>,
    deadline: Duration,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let guard = context.store.lock("pause").map_err(|error| refuse(error.problem()))?;
    let bus = systemd().map_err(refuse)?;
    let (guard, mut problems) = without_old_window(guard, bus.as_ref(), context)?;
    let (unit, note) = find(bus.as_ref(), unit).map_err(refuse)?;
    problems.extend(note);
    let (Some(bus), Some(unit)) = (&bus, unit) else {
        return Ok(Outcome { node: node_view(), problems, ..Outcome::default() });
    };
    let mut keeper = Keeper::open(&context.store, guard, "pause", false)?;
    if let Err(problem) = keeper.pause(bus, &unit, deadline) {
        problems.push(problem);
        problems.extend(keeper.abandon());
        return Ok(Outcome { exit: Exit::Refused, node: node_view(), problems, ..Outcome::default() });
    }
    let extra = super::view(&keeper.window, Some(bus));
    Ok(Outcome { node: node_view(), problems, extra: Some(extra), ..Outcome::default() })
}

/// Closes a window that nobody keeps and that holds nothing any more; one that is still in force stops the command.
fn without_old_window(
    guard: Guard,
    bus: Option<&Bus>,
    context: &Context,
) -> Result<(Guard, Vec<Problem>), Early> {
    let refuse = |problem| Box::new(Outcome::refused(problem));
    let open = context.store.open_window().map_err(|error| refuse(error.problem()))?;
    let Some(window) = open else { return Ok((guard, Vec::new())) };
    if in_force(&window, bus) {
        return Err(refuse(still_open(&window)));
    }
    let keeper = Keeper::take_over(window, &context.store, guard, false);
    let problems = keeper.finish_abandoned("pause");
    let guard = context.store.lock("pause").map_err(|error| refuse(error.problem()))?;
    Ok((guard, problems))
}

/// Whether a window still keeps a unit from running, or a process still works in it.
fn in_force(window: &Window, bus: Option<&Bus>) -> bool {
    if is_of_other_boot(window, &observe::node_identity()) {
        return false;
    }
    let is_held = |unit: &str| bus.is_none_or(|bus| kubelet::is_held(bus, unit).unwrap_or(true));
    let holds = window.is_holding() && window.hold.as_ref().is_some_and(|hold| is_held(&hold.unit));
    holds || is_kept(window)
}

pub(in crate::commands) fn still_open(window: &Window) -> Problem {
    let what =
        window.hold.as_ref().map_or_else(String::new, |hold| format!("; it keeps {} paused", hold.unit));
    let message = format!(
        "a window is open already, since {}, by `netfix {}` (pid {}){what}: `netfix status`, `netfix resume`",
        window.started, window.command, window.owner.pid
    );
    Problem::error(Code::WindowOpen, window.id.clone(), message)
}
