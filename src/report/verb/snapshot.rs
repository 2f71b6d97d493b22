//! `snapshot` and `import`: what was saved, and as which generation.

use super::pods::{self, count_in, listed, stored};
use crate::model::State;
use crate::report::document::{Document, Extra, KeptView, NodeView, PodView, Verb};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::Style;
use crate::report::text::{count, others, part_of, pod_noun};
use crate::snapshot::{PodSnapshot, Snapshot};

/// The document.
pub(crate) fn snapshot(snapshot: Snapshot, is_selection: bool) -> Document {
    let pod = |one: PodSnapshot| PodView {
        seen: one.seen,
        ..PodView::new(one.pod, one.state.into())
    };
    let node = NodeView::recorded(&snapshot.node, snapshot.recorded);
    let document = Document::of(node, snapshot.pods.into_iter().map(pod), snapshot.problems);
    Document {
        is_selection,
        extra: Some(Extra::Kept(snapshot.generations)),
        ..document.judged()
    }
}

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    let words = match document.command {
        Verb::Import => imported(document),
        _ if document.extra.is_none() && document.exit == 0 => {
            LastLine::new("no snapshot was taken", true)
        }
        _ => words(document),
    };
    let table = stored(listed(document, style), style);
    pods::screen(document, &table.bounded(), words, style)
}

fn words(document: &Document) -> LastLine {
    let empty = count_in(document, |state| state == State::Empty);
    let good = count_in(document, State::is_good) - empty;
    let degraded = count_in(document, |state| state == State::Degraded);
    let missed = count_in(document, |state| state == State::NoCheckpoint);
    let total = document.pods.len() - empty;
    let generation = match &document.extra {
        Some(Extra::Kept(KeptView {
            generation: Some(number),
            ..
        })) => format!(
            "{} as generation {number}",
            if empty > 0 { "," } else { "" }
        ),
        Some(Extra::Kept(KeptView {
            same_as: Some(number),
            ..
        })) => format!("; nothing changed since generation {number}"),
        _ => String::new(),
    };
    let saved = part_of(good, total, pod_noun(document.is_selection));
    let empty = others([(empty, "without interfaces")]);
    let others = others([
        (degraded, "degraded"),
        (missed, "without interfaces and checkpoint"),
        (total - good - degraded - missed, "not saved"),
    ]);
    let next = if degraded > 0 {
        ". Run `netfix restore`"
    } else {
        ""
    };
    LastLine::new(
        format!("{saved} saved{empty}{generation}{others}{next}"),
        good == total,
    )
}

/// Which checkpoints were taken over.
fn imported(document: &Document) -> LastLine {
    let total = document.pods.len();
    let taken = count_in(document, |state| {
        matches!(state, State::Imported | State::Unchanged)
    });
    let unusable = total - count_in(document, State::is_good);
    let others = others([
        (
            count_in(document, |state| state == State::Kept),
            "already stored with more detail",
        ),
        (
            count_in(document, |state| state == State::Gone),
            "of pods that are gone",
        ),
        (unusable, "not usable"),
    ]);
    let of = count(total, "checkpoint");
    LastLine::new(format!("{taken} of {of} imported{others}"), unusable == 0)
}
