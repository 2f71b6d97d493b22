//! Tables, each described once: its columns and rows. `terminal` and `html` render them.

mod html;
pub(super) mod terminal;

use maud::{Markup, html};

use crate::report::style::Tone;
use crate::report::text::escape;

/// The rank of a column that is never left out.
pub(super) const KEPT: u8 = 0;
/// The rank of a column that only `-o wide` shows.
pub(super) const WIDE: u8 = u8::MAX;

/// On a page: the class of numbers, whose title is at the right too.
pub(super) const NUMBER: &str = "number";

type Of<'a, R, T> = Box<dyn Fn(&R) -> T + 'a>;

/// Rows in columns, for the terminal and for an HTML page.
pub(super) struct Table<'a, R> {
    columns: Vec<Column<'a, R>>,
    rows: Vec<R>,
    /// Whether a terminal shows only the first of many rows.
    is_bounded: bool,
    /// On a page: how a row is marked.
    mark: Of<'a, R, Option<Tone>>,
}

impl<'a, R> Table<'a, R> {
    /// Without a column.
    pub(super) fn new(rows: impl IntoIterator<Item = R>) -> Self {
        Self {
            columns: Vec::new(),
            rows: rows.into_iter().collect(),
            is_bounded: false,
            mark: Box::new(|_| None),
        }
    }

    /// With the first of many rows on a terminal, unless all are wanted.
    pub(super) fn bounded(mut self) -> Self {
        self.is_bounded = true;
        self
    }

    /// With one more column: of those that are not kept, that with the highest rank is left out first on a terminal.
    pub(super) fn column<C: Into<Cell>>(
        mut self,
        title: &'static str,
        rank: u8,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.columns.push(Column {
            title,
            rank,
            cell: Box::new(move |row| cell(row).into()),
            is_right: false,
            medium: match rank {
                WIDE => Medium::Terminal,
                _ => Medium::Both,
            },
            page_title: title,
            class: None,
            heads_rows: false,
        });
        self
    }

    /// With one more column, of numbers.
    pub(super) fn right<C: Into<Cell>>(
        self,
        title: &'static str,
        rank: u8,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        self.column(title, rank, cell)
            .last(|column| column.is_right = true)
    }

    fn last(mut self, change: impl FnOnce(&mut Column<'a, R>)) -> Self {
        self.columns.last_mut().map(change);
        self
    }

    /// The last column only there: the other has another column instead.
    pub(super) fn only_on(self, medium: Medium) -> Self {
        self.last(|column| column.medium = medium)
    }

    /// On a page: another title of the last column.
    pub(super) fn page_title(self, title: &'static str) -> Self {
        self.last(|column| column.page_title = title)
    }

    /// On a page: the class of the last column's cells.
    pub(super) fn class(self, class: &'static str) -> Self {
        self.last(|column| column.class = Some(class))
    }

    /// On a page: the last column's cell is the heading of the row.
    pub(super) fn heads_rows(self) -> Self {
        self.last(|column| column.heads_rows = true)
    }

    /// On a page: with marked rows.
    pub(super) fn marked(mut self, mark: impl Fn(&R) -> Option<Tone> + 'a) -> Self {
        self.mark = Box::new(mark);
        self
    }
}

/// Where a column is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Medium {
    Both,
    Terminal,
    Page,
}

struct Column<'a, R> {
    title: &'static str,
    rank: u8,
    cell: Of<'a, R, Cell>,
    is_right: bool,
    medium: Medium,
    page_title: &'static str,
    class: Option<&'static str>,
    heads_rows: bool,
}

/// The content of a table's cell.
pub(super) struct Cell {
    text: String,
    tone: Option<Tone>,
    /// What a page has instead of the text.
    markup: Option<Markup>,
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: escape(&text.to_string()),
            tone: None,
            markup: None,
        }
    }
}

impl Cell {
    pub(super) fn toned(text: impl ToString, tone: Option<Tone>) -> Self {
        Self {
            tone,
            ..Self::from(text)
        }
    }

    /// A word that is a badge on a page.
    pub(super) fn badge(text: impl ToString, tone: Tone) -> Self {
        let cell = Self::toned(text, Some(tone));
        let badge = html! { span class={ "badge " (tone.class()) } { (cell.text) } };
        cell.on_page(badge)
    }

    /// On a page: this instead of the text.
    pub(super) fn on_page(self, markup: Markup) -> Self {
        Self {
            markup: Some(markup),
            ..self
        }
    }
}
