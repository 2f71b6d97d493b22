//! `pause` and `resume`: the window, and the next command.

use super::plan;
use crate::report::document::{Document, Extra, Verb};
use crate::report::screen::Screen;
use crate::report::style::{Style, Tone};
use crate::report::text::{self, escape, or_dash};
use crate::report::window::hold::{self, HoldView};

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
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
