//! Answers about generations, for people.

use super::style::{Style, Tone};
use super::table::{self, Cell, KEPT};
use super::text::{ago, join, or_dash};
use super::{GenerationView, KeptView};

type Column = table::Column<GenerationView>;

/// What `list --generations` has found.
pub(super) fn list(all: &[GenerationView], style: Style) -> String {
    let age = move |generation: &GenerationView| {
        let time = generation.time.as_deref()?.parse().ok()?;
        Some(ago(time, style.now))
    };
    let columns = [
        Column::right("GENERATION", KEPT, |row| row.number),
        Column::new("TIME", 2, |row| or_dash(row.time.as_ref())),
        Column::new("AGE", 3, move |row| or_dash(age(row))),
        Column::right("PODS", 1, |row| row.pods),
        Column::right("ADDED", 4, |row| number(row.added.as_ref())),
        Column::right("CHANGED", 4, |row| number(row.changed.as_ref())),
        Column::right("REMOVED", 4, |row| number(row.removed.as_ref())),
        Column::right("DAMAGED", 1, |row| {
            let is_bad = !row.damaged.is_empty();
            Cell::toned(row.damaged.len(), is_bad.then_some(Tone::Bad))
        }),
        Column::new("STATE", KEPT, state),
    ];
    table::text(&columns, all, style)
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

/// What `prune` has removed.
pub(super) fn removed(kept: &KeptView) -> String {
    if kept.removed.is_empty() {
        return "nothing to remove".to_owned();
    }
    format!("removed: {}", join(&kept.removed, ", "))
}
