//! The open maintenance window, and kubelet's unit in it.

use std::io::{self, Write};

use super::text::{escape, fact, or_dash, seconds};
use super::view::HoldView;
use crate::maintenance::window_status::WindowStatus;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};
use crate::systemd::UnitState;

impl HoldView {
    /// How a window stands.
    pub(crate) fn new(status: &WindowStatus) -> Self {
        let WindowStatus {
            window,
            now,
            is_at_work,
            unit,
        } = status;
        let pause = window.pause.as_ref();
        let paused_for = pause.and_then(|pause| {
            let until = pause.resumed.unwrap_or(*now);
            Some(until.saturating_sub(pause.paused?) / 1000)
        });
        let running = pause.filter(|pause| pause.resumed.is_none());
        let deadline_in = running.and_then(|pause| {
            let at = pause.armed? / 1000 + pause.deadline;
            Some(at.saturating_sub(now / 1000))
        });
        Self {
            id: window.id.clone(),
            command: window.command.clone(),
            started: window.started.clone(),
            kept: *is_at_work,
            pid: window.owner.pid,
            phase: window.phase(),
            unit: pause.map(|pause| pause.unit.clone()),
            unit_state: unit
                .as_ref()
                .map(|unit| format!("{} ({})", unit.active, unit.sub)),
            held: unit.as_ref().map(UnitState::is_held),
            paused_for,
            deadline_in,
            run: window.run.clone(),
            exit: window.exit,
            log: window.log.clone(),
        }
    }
}

/// A few lines, one fact each.
pub(super) fn lines(view: &HoldView, out: &mut dyn Write) -> io::Result<()> {
    let HoldView {
        id,
        command,
        started,
        pid,
        ..
    } = view;
    let (id, started, command) = (escape(id), escape(started), escape(command));
    fact(out, "window", &format!("{id}, {}", progress(view)))?;
    fact(
        out,
        "",
        &format!("opened {started} by netfix {command} (pid {pid})"),
    )?;
    match &view.unit {
        None => fact(out, "kubelet", "not paused: no unit found"),
        Some(unit) => kubelet(view, unit, out),
    }
}

/// How far the window has come.
fn progress(view: &HoldView) -> String {
    match (view.phase, view.exit) {
        (_, Some(exit)) => format!("closed with exit code {exit}"),
        // A pause outlives its process.
        (None, None) if view.command == "pause" => "open".to_owned(),
        (Some(phase), None) if view.kept => format!("in phase {phase}"),
        (Some(phase), None) => format!("netfix died in phase {phase}"),
        (None, None) if view.kept => "open, between two phases".to_owned(),
        (None, None) => "open, its netfix is gone".to_owned(),
    }
}

fn kubelet(view: &HoldView, unit: &str, out: &mut dyn Write) -> io::Result<()> {
    let unit = escape(unit);
    if view.exit.is_some() {
        let paused = view
            .paused_for
            .map(|time| format!(" after a pause of {}", seconds(time)));
        let paused = paused.unwrap_or_default();
        return fact(out, "kubelet", &format!("{unit} runs again{paused}"));
    }
    let held = match view.held {
        Some(true) => ", masked",
        Some(false) => ", not masked",
        None => "",
    };
    let now = escape(&or_dash(view.unit_state.as_ref()));
    fact(out, "kubelet", &format!("{unit} is {now}{held}"))?;
    let paused = view.paused_for.map(|time| {
        let [time, not_ready, eviction] = [time, NOT_READY_AFTER, EVICTION_AFTER].map(seconds);
        format!("paused for {time} (NotReady after {not_ready}, eviction after {eviction})")
    });
    fact(out, "", paused.as_deref().unwrap_or("not paused"))?;
    match view.deadline_in {
        Some(0) => fact(out, "", "the deadline has passed"),
        Some(left) => fact(
            out,
            "",
            &format!("systemd starts it again in {} (deadline)", seconds(left)),
        ),
        None => Ok(()),
    }
}

/// What `pause` and `resume` answer.
pub(super) fn answer(command: &str, view: &HoldView, out: &mut dyn Write) -> io::Result<()> {
    lines(view, out)?;
    match (command, view.held) {
        ("pause", Some(true)) => writeln!(
            out,
            "Run `netfix resume` to start {}.",
            or_dash(view.unit.as_deref().map(escape))
        ),
        _ => Ok(()),
    }
}
