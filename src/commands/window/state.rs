//! How a window stands, as answers tell of it.

use super::{clock, is_kept};
use crate::kubelet::Bus;
use crate::model::Window;
use crate::report::{Extra, HoldView};
use crate::runtime;

/// The same as the part of an answer that only commands about windows have.
pub(in crate::commands) fn view(window: &Window, bus: Option<&Bus>) -> Extra {
    Extra::Window(Box::new(short(window, bus)))
}

/// How a window stands; systemd is asked how the unit is, where there is one to ask.
pub(in crate::commands) fn short(window: &Window, bus: Option<&Bus>) -> HoldView {
    let hold = window.hold.as_ref();
    let now = clock::boottime().saturating_sub(window.started_boottime);
    let state = hold.zip(bus).and_then(|(hold, bus)| bus.unit(&hold.unit).ok());
    let paused = hold.and_then(|hold| Some(hold.resumed.unwrap_or(now).saturating_sub(hold.paused?) / 1000));
    let until = hold.filter(|hold| hold.resumed.is_none()).and_then(|hold| {
        let at = hold.armed? / 1000 + hold.deadline;
        Some(at.saturating_sub(now / 1000))
    });
    HoldView {
        id: window.id.clone(),
        command: window.command.clone(),
        started: window.started.clone(),
        kept: is_kept(window) || window.owner == runtime::own(),
        pid: window.owner.pid,
        phase: window.phase(),
        unit: hold.map(|hold| hold.unit.clone()),
        unit_state: state.as_ref().map(|state| format!("{} ({})", state.active, state.sub)),
        held: state.map(|state| state.is_stopped() && state.is_masked()),
        paused_for: paused,
        deadline_in: until,
        run: window.run.clone(),
        exit: window.exit,
        log: window.log.clone(),
    }
}
