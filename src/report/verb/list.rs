//! `list` and `prune`: what is stored, and in which generations.

use super::pods::{self, count_in, sorted, stored};
use crate::model::State;
use crate::report::document::{Document, Extra, GenerationView, KeptView};
use crate::report::screen::{LastLine, Screen};
use crate::report::style::{Style, Tone};
use crate::report::table::{Cell, KEPT, Table};
use crate::report::text::{ago, count, join, or_dash, others};

pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Generations(_)) if style.is_quiet() => Screen::default(),
        Some(Extra::Generations(all)) => {
            let last = LastLine::well(count(all.len(), "generation"));
            Screen::new(generations(all, style), last)
        }
        _ => {
            let mut table = stored(sorted(&document.pods), style);
            if style.lines.is_some() && style.headers {
                // What is piped into another program has every pod.
                table = table.bounded();
            }
            pods::screen(document, &table, words(document), style)
        }
    }
}

fn words(document: &Document) -> LastLine {
    let bad = document.pods.len() - count_in(document, State::is_good);
    let unreadable = others([(bad, "cannot be read")]);
    let stored = count(document.pods.len(), "checkpoint");
    LastLine::new(format!("{stored}{unreadable}"), bad == 0)
}

/// What `list --generations` has found.
fn generations(all: &[GenerationView], style: Style) -> String {
    let age = |generation: &GenerationView| {
        let time = generation.time.as_deref()?.parse().ok()?;
        Some(ago(time, style.now))
    };
    Table::new(all)
        .right("Generation", KEPT, |row| row.number)
        .column("Time", 2, |row| or_dash(row.time.as_ref()))
        .column("Age", 3, |row| or_dash(age(row)))
        .right("Pods", 1, |row| row.pods)
        .right("Added", 4, |row| number(row.added.as_ref()))
        .right("Changed", 4, |row| number(row.changed.as_ref()))
        .right("Removed", 4, |row| number(row.removed.as_ref()))
        .right("Damaged", 1, |row| {
            let is_bad = !row.damaged.is_empty();
            Cell::toned(row.damaged.len(), is_bad.then_some(Tone::Bad))
        })
        .column("State", KEPT, |row| state(row))
        .text(style)
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

/// `prune`: which generations were removed.
pub(super) fn of_prune(document: &Document, style: Style) -> Screen<'_> {
    match &document.extra {
        Some(Extra::Kept(kept)) if !document.is_refused() && !style.is_quiet() => {
            Screen::new(String::new(), LastLine::well(removed(kept)))
        }
        _ => Screen::default(),
    }
}

fn removed(kept: &KeptView) -> String {
    if kept.removed.is_empty() {
        return "nothing to remove".to_owned();
    }
    format!("removed generations {}", join(&kept.removed, ", "))
}
