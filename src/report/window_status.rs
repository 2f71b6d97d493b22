//! The open maintenance window, and kubelet's unit in it.

use std::io::{self, Write};

use super::text::{escape, or_dash, seconds};
use super::view::HoldView;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};

/// A few lines, one fact each.
pub(super) fn lines(view: &HoldView, out: &mut dyn Write) -> io::Result<()> {
    let HoldView {
        id,
        command,
        started,
        pid,
        ..
    } = view;
    writeln!(out, "window     {}, {}", escape(id), progress(view))?;
    writeln!(
        out,
        "           opened {} by netfix {} (pid {pid})",
        escape(started),
        escape(command)
    )?;
    match &view.unit {
        None => writeln!(out, "kubelet    not paused: no unit found"),
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
        return writeln!(
            out,
            "kubelet    {unit} runs again{}",
            paused.unwrap_or_default()
        );
    }
    let held = match view.held {
        Some(true) => ", masked",
        Some(false) => ", not masked",
        None => "",
    };
    let now = escape(&or_dash(view.unit_state.as_ref()));
    writeln!(out, "kubelet    {unit} is {now}{held}")?;
    match view.paused_for {
        None => writeln!(out, "           not paused")?,
        Some(time) => writeln!(
            out,
            "           paused for {} (NotReady after {}, eviction after {})",
            seconds(time),
            seconds(NOT_READY_AFTER),
            seconds(EVICTION_AFTER)
        )?,
    }
    match view.deadline_in {
        Some(0) => writeln!(out, "           the deadline has passed"),
        Some(left) => writeln!(
            out,
            "           systemd starts it again in {} (deadline)",
            seconds(left)
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
