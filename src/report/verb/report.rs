//! `report` and `wait`: the record of a window, a list of windows, or the documents of many nodes.

use crate::report::document::{Document, Extra, Verb};
use crate::report::fleet;
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::count;
use crate::report::window::terminal;
use crate::report::window::view::ReportView;

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        // `report` prints it with `--quiet` too.
        _ if document.command == Verb::Wait && style.is_quiet() => Screen::default(),
        Some(Extra::Report(view)) => window(view, style),
        Some(Extra::Fleet(view)) => Screen::new(
            fleet::tables::text(view, style),
            fleet::tables::verdict(view),
        ),
        Some(Extra::Windows(all)) if !style.is_quiet() => {
            let windows = all.iter().filter(|one| one.left.is_none());
            let last = LastLine::well(count(windows.count(), "window"));
            Screen::new(terminal::list(all, style), last)
        }
        _ => Screen::default(),
    }
}

/// One window.
pub(super) fn window(view: &ReportView, style: Style) -> Screen<'_> {
    // With `--quiet`, the errors are on stderr too.
    let listed = if style.is_quiet() {
        &[]
    } else {
        view.window.problems.as_slice()
    };
    Screen {
        body: terminal::report(view, style),
        listed,
        last: Some(terminal::verdict(view)),
    }
}
