//! A table on an HTML page.

use maud::{Markup, html};

use super::{Cell, NUMBER, OnPage, Table};
use crate::report::style::Tone;

impl<R> Table<'_, R> {
    /// For a page.
    pub(in crate::report) fn sheet(&self, class: Option<&str>, caption: &str) -> Markup {
        let columns = self.columns.iter();
        let shown: Vec<_> = columns
            .filter_map(|column| Some((column, column.on_page.as_ref()?)))
            .collect();
        html! {
            div.sheet {
                table class=[class] {
                    caption { (caption) }
                    thead {
                        tr {
                            @for (_, page) in &shown {
                                th class=[page.class.filter(|class| *class == NUMBER)] scope="col" { (page.title) }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr class=[(self.tone)(row).map(Tone::class)] {
                                @for (column, page) in &shown { (page.cell(row, &(column.cell)(row))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

impl<R> OnPage<'_, R> {
    fn cell(&self, row: &R, cell: &Cell) -> Markup {
        let content = (self.content)(row, cell);
        html! {
            @if self.heads_rows { th class=[self.class] scope="row" { (content) } }
            @else { td class=[self.class] { (content) } }
        }
    }
}

/// A word, marked if it has a tone.
pub(super) fn badge(cell: &Cell) -> Markup {
    let Cell { text, tone } = cell;
    html! {
        @if let Some(tone) = tone { span class={ "badge " (tone.class()) } { (text) } } @else { (text) }
    }
}
