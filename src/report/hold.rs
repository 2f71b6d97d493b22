//! How the open maintenance window stands, and kubelet's unit in it.

use std::io::{self, Write};

use super::human::or_dash;
use super::screen::ago;
use super::view::HoldView;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};

/// One or two lines.
pub(super) fn lines(view: &HoldView, out: &mut dyn Write) -> io::Result<()> {
    let HoldView { id, command, started, kept, pid, phase, exit, .. } = view;
    let doing = match (phase, exit) {
        (_, Some(exit)) => format!("closed, exit {exit}"),
        // A pause is meant to outlive its process.
        (None, None) if command == "pause" => "open".to_owned(),
        (Some(phase), None) if *kept => format!("in phase {phase}"),
        (Some(phase), None) => format!("died in phase {phase}"),
        (None, None) if *kept => "at work".to_owned(),
        (None, None) => "left open".to_owned(),
    };
    writeln!(out, "window     {id} since {started}, by `netfix {command}` (pid {pid}), {doing}")?;
    let Some(unit) = &view.unit else {
        return writeln!(out, "kubelet    none was paused");
    };
    let unit = unit.escape_debug();
    if exit.is_some() {
        let paused = view.paused_for.map(|seconds| format!(", and was paused for {}", ago(seconds)));
        return writeln!(out, "kubelet    {unit}: runs again{}", paused.unwrap_or_default());
    }
    let now = or_dash(view.unit_state.as_ref());
    let held = match view.held {
        Some(true) => ", masked".to_owned(),
        Some(false) => ", not held".to_owned(),
        None => String::new(),
    };
    let paused = view.paused_for.map_or_else(
        || "not paused".to_owned(),
        |seconds| {
            format!(
                "paused for {} (NotReady after {NOT_READY_AFTER}s, eviction after {EVICTION_AFTER}s)",
                ago(seconds)
            )
        },
    );
    let deadline = match view.deadline_in {
        Some(0) => "; the deadline is over".to_owned(),
        Some(seconds) => format!("; the deadline starts it again in {}", ago(seconds)),
        None => String::new(),
    };
    writeln!(out, "kubelet    {unit}: {now}{held}; {paused}{deadline}")
}

/// What `pause` and `resume` answer.
pub(super) fn answer(command: &str, view: &HoldView, out: &mut dyn Write) -> io::Result<()> {
    lines(view, out)?;
    match (command, view.held) {
        ("pause", Some(true)) => writeln!(out, "`netfix resume` lets it run again"),
        _ => Ok(()),
    }
}
