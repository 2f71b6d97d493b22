//! Answers about generations, for people.

use std::io::{self, Write};

use jiff::Timestamp;

use super::style::{Style, Tone};
use super::table::{self, Cell, Column, KEPT};
use super::text::{ago, or_dash};
use super::{GenerationView, KeptView};

/// What `list --generations` has found.
pub(super) fn list(all: &[GenerationView], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let columns = [
        Column::right("GENERATION", KEPT, |row: &(&GenerationView, Timestamp)| {
            Cell::from(row.0.number)
        }),
        Column::new("TIME", 2, |row| Cell::from(or_dash(row.0.time.as_ref()))),
        Column::new("AGE", 3, |row| Cell::from(or_dash(age(row)))),
        Column::right("PODS", 1, |row| Cell::from(row.0.pods)),
        Column::right("ADDED", 4, |row| number(row.0.added.as_ref())),
        Column::right("CHANGED", 4, |row| number(row.0.changed.as_ref())),
        Column::right("REMOVED", 4, |row| number(row.0.removed.as_ref())),
        Column::right("DAMAGED", 1, |row| {
            let is_bad = !row.0.damaged.is_empty();
            Cell::toned(row.0.damaged.len(), is_bad.then_some(Tone::Bad))
        }),
        Column::new("STATE", KEPT, |row| Cell::from(state(row.0))),
    ];
    let rows: Vec<_> = all.iter().map(|row| (row, style.now)).collect();
    table::write(&columns, &rows, style, out)
}

fn age((generation, now): &(&GenerationView, Timestamp)) -> Option<String> {
    let time = generation.time.as_deref()?.parse().ok()?;
    Some(ago(time, *now))
}

fn number<T>(ids: Option<&Vec<T>>) -> Cell {
    Cell::from(or_dash(ids.map(Vec::len)))
}

fn state(generation: &GenerationView) -> &'static str {
    match (generation.current, generation.aside) {
        (true, true) => "current,aside",
        (true, false) => "current",
        (false, true) => "aside",
        (false, false) => "-",
    }
}

/// What `prune` has removed.
pub(super) fn removed(kept: &KeptView) -> String {
    let texts: Vec<String> = kept.removed.iter().map(u64::to_string).collect();
    match texts.as_slice() {
        [] => "nothing to remove".to_owned(),
        texts => format!("removed: {}", texts.join(", ")),
    }
}
