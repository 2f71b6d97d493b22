//! Answers about generations, for people.

use std::io::{self, Write};

use comfy_table::{Cell, Color};

use super::human::{new_table, or_dash};
use super::{GenerationView, KeptView, Style};

/// What `list --generations` has found.
pub(super) fn list(all: &[GenerationView], style: Style, out: &mut dyn Write) -> io::Result<()> {
    if !all.is_empty() {
        let mut table =
            new_table(style, &["NUMBER", "TIME", "PODS", "ADDED", "CHANGED", "REMOVED", "DAMAGED", "STATE"]);
        table.add_rows(all.iter().map(row));
        writeln!(out, "{table}")?;
    }
    writeln!(out, "{} generations", all.len())
}

fn row(generation: &GenerationView) -> Vec<Cell> {
    let count = |ids: &Option<Vec<_>>| Cell::new(or_dash(ids.as_ref().map(Vec::len)));
    let mut state = Vec::new();
    if generation.current {
        state.push("current");
    }
    if generation.aside {
        state.push("put aside");
    }
    let damaged = Cell::new(generation.damaged.len());
    vec![
        Cell::new(generation.number),
        Cell::new(or_dash(generation.time.as_ref())),
        Cell::new(generation.pods),
        count(&generation.added),
        count(&generation.changed),
        count(&generation.removed),
        if generation.damaged.is_empty() { damaged } else { damaged.fg(Color::Red) },
        Cell::new(or_dash(Some(state.join(", ")).filter(|state| !state.is_empty()))),
    ]
}

/// What `prune` has removed.
pub(super) fn removed(kept: &KeptView, out: &mut dyn Write) -> io::Result<()> {
    let texts: Vec<String> = kept.removed.iter().map(u64::to_string).collect();
    match texts.as_slice() {
        [] => writeln!(out, "nothing to remove"),
        texts => writeln!(out, "removed: {}", texts.join(", ")),
    }
}
