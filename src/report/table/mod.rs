//! Tables, each described once: its columns and rows. `terminal` and `html` render them.

mod html;
mod terminal;

use maud::{Markup, html};

use crate::report::style::Tone;
use crate::report::text::escape;

pub(super) use terminal::cut;

/// The rank of a column that is never left out.
pub(super) const KEPT: u8 = 0;
/// The rank of a column that only `-o wide` shows.
pub(super) const WIDE: u8 = u8::MAX;

/// On a page: the class of numbers, whose title is at the right too.
pub(super) const NUMBER: &str = "number";

/// Rows in columns, for the terminal and for an HTML page.
pub(super) struct Table<'a, R> {
    columns: Vec<Column<'a, R>>,
    rows: Vec<R>,
    tone: Box<dyn Fn(&R) -> Option<Tone> + 'a>,
}

/// One column: of the others, that with the highest rank is left out first on a terminal.
pub(super) struct Column<'a, R> {
    title: &'static str,
    rank: u8,
    is_right: bool,
    cell: Box<dyn Fn(&R) -> Cell + 'a>,
    on_terminal: bool,
    on_page: Option<OnPage<'a, R>>,
}

/// What is different on a page.
struct OnPage<'a, R> {
    title: &'static str,
    class: Option<&'static str>,
    heads_rows: bool,
    content: Box<dyn Fn(&R, &Cell) -> Markup + 'a>,
}

impl<'a, R> Column<'a, R> {
    pub(super) fn new<C: Into<Cell>>(
        title: &'static str,
        rank: u8,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        let on_page = OnPage {
            title,
            class: None,
            heads_rows: false,
            content: Box::new(|_, cell| html! { (cell.text) }),
        };
        Self {
            title,
            rank,
            is_right: false,
            cell: Box::new(move |row| cell(row).into()),
            on_terminal: true,
            // What only a wide terminal shows is not on the page.
            on_page: (rank != WIDE).then_some(on_page),
        }
    }

    /// A column of numbers.
    pub(super) fn right<C: Into<Cell>>(
        title: &'static str,
        rank: u8,
        cell: impl Fn(&R) -> C + 'a,
    ) -> Self {
        Self {
            is_right: true,
            ..Self::new(title, rank, cell)
        }
    }

    fn with(mut self, change: impl FnOnce(&mut OnPage<'a, R>)) -> Self {
        if let Some(page) = &mut self.on_page {
            change(page);
        }
        self
    }

    /// The page has another column instead.
    pub(super) fn only_on_terminal(self) -> Self {
        Self {
            on_page: None,
            ..self
        }
    }

    /// The terminal has another column instead.
    pub(super) fn only_on_page(self) -> Self {
        Self {
            on_terminal: false,
            ..self
        }
    }

    /// On a page: another title.
    pub(super) fn page_title(self, title: &'static str) -> Self {
        self.with(|page| page.title = title)
    }

    /// On a page: the class of its cells.
    pub(super) fn class(self, class: &'static str) -> Self {
        self.with(|page| page.class = Some(class))
    }

    /// On a page: its cell is the heading of the row.
    pub(super) fn heads_rows(self) -> Self {
        self.with(|page| page.heads_rows = true)
    }

    /// On a page: this instead of the text.
    pub(super) fn content(self, content: impl Fn(&R) -> Markup + 'a) -> Self {
        self.with(|page| page.content = Box::new(move |row, _| content(row)))
    }

    /// On a page: a word with a tone is a badge.
    pub(super) fn badges(self) -> Self {
        self.with(|page| page.content = Box::new(|_, cell| html::badge(cell)))
    }
}

/// A word of a table.
pub(super) struct Cell {
    text: String,
    tone: Option<Tone>,
}

impl<T: ToString> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: escape(&text.to_string()),
            tone: None,
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
}

impl<'a, R> Table<'a, R> {
    pub(super) fn new(
        columns: impl Into<Vec<Column<'a, R>>>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        Self {
            columns: columns.into(),
            rows: rows.into_iter().collect(),
            tone: Box::new(|_| None),
        }
    }

    /// On a page: rows that are marked.
    pub(super) fn marked(self, tone: impl Fn(&R) -> Option<Tone> + 'a) -> Self {
        Self {
            tone: Box::new(tone),
            ..self
        }
    }
}
