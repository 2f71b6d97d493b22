//! The deadline: a timer of systemd that starts a paused unit again, even if netfix is gone.

use std::path;
use std::time::Duration;

use crate::kubelet::unit::not_paused;
use crate::model::problem::KubeletCause;
use crate::model::{Problem, Window};
use crate::store::Guard;
use crate::systemd::{self, Bus};
use crate::window::session::WindowSession;

/// Arms the recorded timer for the unit that is about to be paused.
pub(crate) fn arm(
    session: &mut WindowSession,
    bus: &Bus,
    unit: &str,
    timer: &str,
    deadline: Duration,
) -> Result<(), KubeletCause> {
    let words = words(session);
    systemd::arm(bus, timer, unit, deadline, &words).map_err(not_paused)?;
    session.note_armed();
    Ok(())
}

/// Arms a timer of this process for a unit that an earlier one paused.
pub(crate) fn rearm(
    session: &mut WindowSession,
    bus: &Bus,
    deadline: Duration,
) -> Result<(), Problem> {
    let Some(pause) = &session.window().pause else {
        return Ok(());
    };
    let (unit, timer) = (pause.unit.clone(), systemd::timer_name());
    session
        .note_rearming(&timer, deadline.as_secs())
        .map_err(|error| error.problem())?;
    arm(session, bus, &unit, &timer, deadline).map_err(|cause| cause.error(unit))
}

/// Stops what starts the unit again at the deadline, for a unit that runs.
pub(crate) fn disarm(bus: &Bus, window: &Window) -> Option<Problem> {
    let cause = systemd::disarm(bus).err()?;
    let unit = window.pause.as_ref().map(|pause| pause.unit.clone());
    Some(KubeletCause::TimerNotStopped { cause }.warning(unit.unwrap_or_default()))
}

/// The arguments of netfix at the deadline of a unit that is still paused: a kubelet that starts while pods have no address may
/// rebuild them. While a window's process runs it has the lock, and this does nothing.
fn words(session: &WindowSession) -> Vec<String> {
    let folder = session.guard().map(Guard::state_dir);
    let folder = folder.and_then(|folder| path::absolute(folder).ok());
    let folder = folder.unwrap_or_default().display().to_string();
    ["--state-dir", &folder, "restore", "--wait", "10s"]
        .map(str::to_owned)
        .to_vec()
}
