//! `status`: the snapshots, the pods, the runtimes, the lock and the open window on one screen; `pause` and `resume`: the window.

use super::plan;
use crate::report::document::{Document, Extra, RuntimeView, StatusView, Verb};
use crate::report::screen::Screen;
use crate::report::style::{Style, Tone};
use crate::report::text::{self, Facts, count, escape, or_dash, seconds};
use crate::report::window::hold::{self, HoldView};

/// Printed with `--quiet` too; with `--follow`, the window that was closed.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Status(view)) => Screen::new(text::facts(facts(document, view)), None),
        _ => of_hold(document, style),
    }
}

/// One fact a line.
fn facts(document: &Document, status: &StatusView) -> Facts {
    let StatusView {
        state_dir,
        checkpoints,
        damaged,
        generations,
        last_success,
        last_success_age,
        running,
        covered,
        private_namespaces,
        runtimes,
        lock,
        window,
    } = status;
    let node = document.node.hostname.as_deref().map(escape);
    let last = match (last_success, last_success_age) {
        (Some(time), Some(age)) => {
            format!("last complete one {} ago ({})", seconds(*age), escape(time))
        }
        _ => "no complete one in this boot".to_owned(),
    };
    let damaged = match damaged {
        0 => String::new(),
        damaged => format!(", {damaged} cannot be read"),
    };
    let checkpoints = count(*checkpoints, "checkpoint");
    let generations = count(*generations, "generation");
    let stored = format!("{checkpoints}{damaged}; {generations} kept");
    let pods = match (running, running.saturating_sub(*covered)) {
        (0, _) => "none running".to_owned(),
        (_, 0) => format!("{running} running, each with a checkpoint"),
        (_, missing) => {
            format!("{running} running, {missing} without a checkpoint. Run `netfix snapshot`")
        }
    };
    let mut facts = vec![
        ("node", or_dash(node)),
        ("snapshot", last),
        ("stored", stored),
        ("", format!("in {}", escape(state_dir))),
        ("pods", pods),
    ];
    if *private_namespaces > 0 {
        let namespaces = count(*private_namespaces, "namespace");
        facts.push((
            "",
            format!("{namespaces} of services and sandboxed programs: no pods"),
        ));
    }
    facts.extend(answered(runtimes));
    let lock = lock.as_deref().map(|by| format!("held by {}", escape(by)));
    facts.push(("lock", lock.unwrap_or_else(|| "free".to_owned())));
    match window {
        Some(window) => facts.extend(hold::facts(window)),
        None => facts.push(("window", "none open".to_owned())),
    }
    facts
}

/// The runtimes that answered.
fn answered(runtimes: &[RuntimeView]) -> Facts {
    if runtimes.is_empty() {
        return vec![("runtime", "none answered".to_owned())];
    }
    let facts = runtimes.iter().map(|runtime| {
        let version = or_dash(runtime.version.as_deref().map(escape));
        let pods = count(runtime.pods, "pod");
        let endpoint = escape(&runtime.endpoint);
        ("runtime", format!("{version}, {pods}, at {endpoint}"))
    });
    facts.collect()
}

/// `pause` and `resume`: the window, and the next command.
pub(super) fn of_hold(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        _ if style.is_quiet() => Screen::default(),
        Some(Extra::Window(view)) => {
            let next = next(document.command, view);
            Screen::new(text::facts(hold::facts(view)) + &next, None)
        }
        // No window was open.
        None if document.exit == 0 => {
            let last = style.paint(&plan::words(document), Tone::Good);
            Screen::new(String::new(), last)
        }
        _ => Screen::default(),
    }
}

/// The next command after `pause`.
fn next(command: Verb, view: &HoldView) -> String {
    if command != Verb::Pause || view.held != Some(true) {
        return String::new();
    }
    let unit = or_dash(view.unit.as_deref().map(escape));
    format!("Run `netfix resume` to start {unit}.\n")
}
