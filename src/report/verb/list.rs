//! `list`: what is stored, and in which generations.

use super::pods::{self, count_in, sorted, stored};
use crate::model::State;
use crate::report::document::{Document, Extra, GenerationView};
use crate::report::screen::Screen;
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, Column, KEPT, Table};
use crate::report::text::{ago, count, or_dash, others};

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Generations(_)) if style.is_quiet() => Screen::default(),
        Some(Extra::Generations(all)) => {
            let last = style.paint(&count(all.len(), "generation"), Tone::Good);
            Screen::new(generations(all, style), last)
        }
        _ => {
            let table = stored(sorted(&document.pods), style);
            pods::screen(document, &table, &words(document), style)
        }
    }
}

fn words(document: &Document) -> String {
    let bad = document.pods.len() - count_in(document, State::is_good);
    let unreadable = others([(bad, "cannot be read")]);
    format!("{}{unreadable}", count(document.pods.len(), "checkpoint"))
}

type GenerationColumn<'a> = Column<'a, &'a GenerationView>;

/// What `list --generations` has found.
fn generations(all: &[GenerationView], style: Style) -> String {
    let age = |generation: &GenerationView| {
        let time = generation.time.as_deref()?.parse().ok()?;
        Some(ago(time, style.now))
    };
    let columns = [
        GenerationColumn::right("Generation", KEPT, |row| row.number),
        GenerationColumn::new("Time", 2, |row| or_dash(row.time.as_ref())),
        GenerationColumn::new("Age", 3, |row| or_dash(age(row))),
        GenerationColumn::right("Pods", 1, |row| row.pods),
        GenerationColumn::right("Added", 4, |row| number(row.added.as_ref())),
        GenerationColumn::right("Changed", 4, |row| number(row.changed.as_ref())),
        GenerationColumn::right("Removed", 4, |row| number(row.removed.as_ref())),
        GenerationColumn::right("Damaged", 1, |row| {
            let is_bad = !row.damaged.is_empty();
            Cell::toned(row.damaged.len(), is_bad.then_some(Tone::Bad))
        }),
        GenerationColumn::new("State", KEPT, |row| state(row)),
    ];
    Table::new(columns, all).text(style)
}

fn number<T>(ids: Option<&Vec<T>>) -> String {
    or_dash(ids.map(Vec::len))
}

fn state(generation: &GenerationView) -> &'static str {
    match (generation.current, generation.aside) {
        (true, true) => "current,aside",
        (true, false) => "current",
        (false, true) => "aside",
        (false, false) => "-",
    }
}
