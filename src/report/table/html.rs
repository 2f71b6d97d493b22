//! A table on an HTML page.

use maud::{Markup, html};

use super::{Cell, Column, Medium, NUMBER, Table};
use crate::report::style::Tone;

impl<R> Table<'_, R> {
    /// For a page.
    pub(in crate::report) fn sheet(&self, class: Option<&str>, caption: &str) -> Markup {
        let columns = || {
            self.columns
                .iter()
                .filter(|column| column.medium != Medium::Terminal)
        };
        html! {
            div.sheet {
                table class=[class] {
                    caption { (caption) }
                    thead { tr { @for column in columns() { (head(column)) } } }
                    tbody {
                        @for row in &self.rows {
                            tr class=[(self.mark)(row).map(Tone::class)] {
                                @for column in columns() { (column.on_row(row)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn head<R>(column: &Column<'_, R>) -> Markup {
    let class = column.class.filter(|class| *class == NUMBER);
    html! { th class=[class] scope="col" { (column.page_title) } }
}

impl<R> Column<'_, R> {
    fn on_row(&self, row: &R) -> Markup {
        let Cell { text, markup, .. } = (self.cell)(row);
        let content = markup.unwrap_or_else(|| html! { (text) });
        html! {
            @if self.heads_rows { th class=[self.class] scope="row" { (content) } }
            @else { td class=[self.class] { (content) } }
        }
    }
}
