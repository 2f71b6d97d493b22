//! `import`: which checkpoints were taken over.

use super::pods::{self, count_in, listed, stored};
use crate::model::State;
use crate::report::document::Document;
use crate::report::screen::Screen;
use crate::report::style::Style;
use crate::report::text::{count, others};

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let table = stored(listed(document, style), style);
    pods::screen(document, &table, &words(document), style)
}

fn words(document: &Document) -> String {
    let total = document.pods.len();
    let taken = count_in(document, |state| {
        matches!(state, State::Imported | State::Unchanged)
    });
    let others = others([
        (
            count_in(document, |state| state == State::Kept),
            "already stored with more detail",
        ),
        (
            count_in(document, |state| state == State::Gone),
            "of pods that are gone",
        ),
        (total - count_in(document, State::is_good), "not usable"),
    ]);
    format!("{taken} of {} imported{others}", count(total, "checkpoint"))
}
