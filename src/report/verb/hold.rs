//! The window on the screens of `pause`, `resume` and `status --follow`.

use crate::report::document::{Document, Extra, Verb};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{self, escape, or_dash};
use crate::report::window::hold::{self, HoldView};

/// `pause` and `resume`: the window, and the next command.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        _ if style.is_quiet() => Screen::default(),
        Some(Extra::Window(view)) => {
            let next = next(document.command, view);
            let body = text::facts(hold::facts(view), style.lines) + &next;
            Screen {
                // Followed until its netfix was gone: the facts are those of the problem.
                listed: match document.command {
                    Verb::Status => &document.problems,
                    _ => &[],
                },
                ..Screen::new(body, None)
            }
        }
        // No window was open.
        None if document.exit == 0 => {
            let none = match document.command {
                Verb::Pause | Verb::Resume => "kubelet was not paused",
                _ => "no window is open",
            };
            Screen::new(String::new(), LastLine::well(none))
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
