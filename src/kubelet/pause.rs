//! Pauses kubelet with a deadline that starts it again: for `netfix pause`, and in an upgrade.

use std::time::Duration;

use crate::clock;
use crate::context::Context;
use crate::kubelet::deadline;
use crate::kubelet::resume::{Held, abandon, finish_abandoned, resume};
use crate::kubelet::unit;
use crate::kubelet::unit::not_paused;
use crate::model::problem::{GuardCause, KubeletCause};
use crate::model::window::{GUARD_SCHEMA, GuardHold, KubeletPause, PhaseName};
use crate::model::{Exit, ProbeRate, Problem, Window};
use crate::refusal::Refusal;
use crate::store::{Guard, StoreError};
use crate::systemd::{self, Bus};
use crate::window::bus;
use crate::window::event::Event;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::observed::still_open;
use crate::window::records::is_owner_alive;
use crate::window::session::WindowSession;
use crate::window::session::close::require_closed;
use crate::window::session::damaged::mend;
use crate::window::status::WindowStatus;

const COMMAND: &str = "pause";

pub(crate) fn run(
    unit: Option<&str>,
    deadline: Duration,
    rate: Option<ProbeRate>,
    context: &mut Context,
) -> Result<Held, Refusal> {
    let guard = context.store.lock(COMMAND)?;
    let bus = bus::connect()?;
    let (guard, mut problems) = close_old_window(guard, bus.as_ref(), context)?;
    let (unit, note) = unit::find(bus.as_ref(), unit)?;
    problems.extend(note);
    let mut held = Held {
        status: None,
        exit: Exit::Done,
        problems,
    };
    let (Some(bus), Some(unit)) = (&bus, unit) else {
        held.problems.extend(hold(&guard, deadline)?);
        return Ok(held);
    };
    let mut session = WindowSession::open(&context.store, guard, COMMAND, false, DEFAULT_LIMIT)?;
    match pause(&mut session, bus, &unit, deadline, rate) {
        Ok(()) => held.status = Some(WindowStatus::new(session.leave(), Some(bus))),
        Err(problem) => {
            held.exit = Exit::Refused;
            held.problems.push(problem);
            held.problems.extend(abandon(session));
        }
    }
    Ok(held)
}

/// Keeps the guard of this node still, where no window does.
fn hold(guard: &Guard, time: Duration) -> Result<Option<Problem>, StoreError> {
    // A damaged file holds no guard.
    let former = guard.store().load_hold().ok().flatten();
    let is_longer = former.is_some_and(|hold| clock::time_until(&hold.until) >= time);
    let known = guard.store().load_guard();
    let has_guard = known.map_or(true, |record| record.schema > 0);
    if is_longer || !has_guard {
        return Ok(None);
    }
    let hold = GuardHold {
        schema: GUARD_SCHEMA,
        until: clock::wall_in(time),
        is_pause: true,
    };
    guard.save_hold(Some(&hold))?;
    let cause = GuardCause::Paused { until: hold.until };
    Ok(Some(cause.info("guard")))
}

/// Closes a window whose process is gone and that keeps nothing paused. Any other stops the command.
fn close_old_window(
    guard: Guard,
    bus: Option<&Bus>,
    context: &Context,
) -> Result<(Guard, Vec<Problem>), Refusal> {
    let Some(window) = context.store.unclosed_window()? else {
        return Ok((guard, Vec::new()));
    };
    if window.ended.is_some() {
        require_closed(&window, &guard)?;
        return Ok((guard, Vec::new()));
    }
    let damage = mend(&guard);
    if is_in_force(&window, bus) {
        return Err(still_open(&window, &context.store).into());
    }
    let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
    let mut problems = finish_abandoned(session, COMMAND);
    problems.extend(damage);
    Ok((context.store.lock(COMMAND)?, problems))
}

/// Whether a window still keeps a unit from running, or its process still runs.
fn is_in_force(window: &Window, bus: Option<&Bus>) -> bool {
    let is_held = |unit: &str| bus.is_none_or(|bus| systemd::is_held(bus, unit).unwrap_or(true));
    let pause = window.pause.as_ref().filter(|_| window.is_paused());
    pause.is_some_and(|pause| is_held(&pause.unit)) || is_owner_alive(window)
}

/// Pauses the unit. Where that fails, the unit runs again and nothing is left.
pub(crate) fn pause(
    session: &mut WindowSession,
    bus: &Bus,
    unit: &str,
    deadline: Duration,
    probe_rate: Option<ProbeRate>,
) -> Result<(), Problem> {
    let timer = systemd::timer_name();
    session.begin(
        PhaseName::Pause,
        &Event::Pausing {
            unit: unit.to_owned(),
        },
    );
    let recorded = session.note_pausing(KubeletPause {
        unit: unit.to_owned(),
        timer: timer.clone(),
        deadline: deadline.as_secs(),
        probe_rate,
        armed: None,
        paused: None,
        resumed: None,
    });
    recorded.map_err(|error| error.problem())?;
    if let Err(cause) = arm_and_stop(session, bus, unit, &timer, deadline) {
        session.end(false);
        let problem = cause.error(unit);
        session.log(&Event::Failed(problem.clone()));
        return Err(resume(session, bus).err().unwrap_or(problem));
    }
    session.note_paused();
    session.end(true);
    session.log(&Event::Paused {
        unit: unit.to_owned(),
        timer,
        deadline,
    });
    Ok(())
}

fn arm_and_stop(
    session: &mut WindowSession,
    bus: &Bus,
    unit: &str,
    timer: &str,
    deadline: Duration,
) -> Result<(), KubeletCause> {
    deadline::arm(session, bus, unit, timer, deadline)?;
    systemd::pause(bus, unit).map_err(not_paused)?;
    // A deadline that came while the unit was stopping is used up: nothing would start the unit after that.
    match systemd::is_pending(bus, timer) {
        Ok(true) => Ok(()),
        Ok(false) => Err(KubeletCause::DeadlineTooShort),
        Err(cause) => Err(not_paused(cause)),
    }
}
