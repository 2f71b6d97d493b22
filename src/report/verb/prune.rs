//! `prune`: which generations were removed.

use crate::report::document::{Document, Extra, KeptView};
use crate::report::screen::Screen;
use crate::report::style::{Style, Tone};
use crate::report::text::join;

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Kept(kept)) if !document.is_refused() && !style.is_quiet() => {
            Screen::new(String::new(), style.paint(&words(kept), Tone::Good))
        }
        _ => Screen::default(),
    }
}

fn words(kept: &KeptView) -> String {
    if kept.removed.is_empty() {
        return "nothing to remove".to_owned();
    }
    format!("removed: {}", join(&kept.removed, ", "))
}
