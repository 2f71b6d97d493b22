//! `snapshot`: what was saved, and as which generation.

use super::pods::stored;
use super::pods::{self, count_in, listed};
use crate::model::State;
use crate::report::document::{Document, Extra, KeptView, NodeView, PodView};
use crate::report::screen::Screen;
use crate::report::style::Style;
use crate::report::text::{others, part};
use crate::snapshot::{PodSnapshot, Snapshot};

/// The document.
pub(crate) fn snapshot(snapshot: Snapshot) -> Document {
    let pod = |one: PodSnapshot| PodView {
        seen: one.seen,
        ..PodView::new(one.pod, one.state.into())
    };
    let node = NodeView::recorded(&snapshot.node, snapshot.recorded);
    let document = Document::of(node, snapshot.pods.into_iter().map(pod), snapshot.problems);
    Document {
        extra: Some(Extra::Kept(snapshot.generations)),
        ..document.judged()
    }
}

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let table = stored(listed(document, style), style);
    pods::screen(document, &table, &words(document), style)
}

fn words(document: &Document) -> String {
    let good = count_in(document, State::is_good);
    let degraded = count_in(document, |state| state == State::Degraded);
    let total = document.pods.len();
    let generation = match &document.extra {
        Some(Extra::Kept(KeptView {
            generation: Some(number),
            ..
        })) => format!(" as generation {number}"),
        Some(Extra::Kept(KeptView {
            same_as: Some(number),
            ..
        })) => format!("; nothing changed since generation {number}"),
        _ => String::new(),
    };
    let others = others([
        (degraded, "degraded"),
        (total - good - degraded, "not saved"),
    ]);
    let next = if degraded > 0 {
        ". Run `netfix restore`"
    } else {
        ""
    };
    format!("{} saved{generation}{others}{next}", part(good, total))
}
