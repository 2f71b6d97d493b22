//! The style of an answer: for people or programs, in how many columns, with or without colours.

use std::borrow::Cow;
use std::io;
use std::os::fd::AsFd;

use clap::ValueEnum;
use jiff::Timestamp;
use terminal_size::{Width, terminal_size_of};

use crate::model::State;

/// The style of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// For people or for programs.
    pub form: Form,
    /// How much is printed.
    pub detail: Detail,
    /// Colours in human output.
    pub color: bool,
    /// Header and summary line around tables.
    pub headers: bool,
    /// ASCII only: the locale is not UTF-8.
    pub ascii: bool,
    /// The columns of the terminal; `None`: lines of any length.
    pub width: Option<usize>,
    /// The columns of the terminal that stdout is: longer lines are wrapped between words. `None`: it is none.
    pub lines: Option<usize>,
    /// Those of the terminal that stderr is.
    pub messages: Option<usize>,
    /// The moment from which ages are counted.
    pub now: Timestamp,
}

/// For people or for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables of what needs attention, and a summary.
    Human,
    /// Tables of all pods with all columns.
    Wide,
    /// Pod names, one a line.
    Name,
    /// One JSON document.
    Json,
    /// The same on one line.
    Jsonl,
    /// The status line of a monitoring plugin.
    #[value(skip)]
    Plugin,
}

impl Form {
    /// Whether it is a JSON document.
    #[must_use]
    pub fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Jsonl)
    }
}

/// How much is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Errors (`-q`).
    Errors,
    /// What needs attention, and how many pods are well.
    Normal,
    /// Every step and every pod (`-v`).
    Steps,
}

/// How good or bad a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tone {
    Good,
    Calm,
    Warning,
    Bad,
}

impl Tone {
    /// How good or bad a pod's state is.
    pub(super) fn of(state: State) -> Self {
        match state {
            State::Unknown | State::Stale | State::CutOff => Self::Warning,
            state if state.is_good() => Self::Good,
            _ => Self::Bad,
        }
    }

    /// Its class on the HTML page.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Calm => "calm",
            Self::Warning => "warning",
            Self::Bad => "bad",
        }
    }
}

impl Style {
    /// Whether only errors are printed.
    pub(super) fn is_quiet(&self) -> bool {
        self.detail == Detail::Errors
    }

    /// Whether steps are printed, and equal problems singly.
    pub(super) fn is_verbose(&self) -> bool {
        self.detail >= Detail::Steps
    }

    /// Whether pods that are well are listed too.
    pub(super) fn lists_all(&self) -> bool {
        self.form == Form::Wide || self.is_verbose()
    }

    /// A word in bold and in its colour, where colours are wanted.
    pub(super) fn paint(&self, word: &str, tone: Tone) -> String {
        if !self.color {
            return word.to_owned();
        }
        let sgr = match tone {
            Tone::Good => "32",
            Tone::Calm => "36",
            Tone::Warning => "33",
            Tone::Bad => "31",
        };
        format!("\x1b[1;{sgr}m{word}\x1b[0m")
    }

    /// The text in the characters that the terminal can show.
    pub(super) fn encode<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.ascii || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let ascii = text.chars().map(|c| match c {
            '…' => "~".to_owned(),
            c if c.is_ascii() => c.to_string(),
            c => c.escape_unicode().to_string(),
        });
        Cow::Owned(ascii.collect())
    }
}

#[cfg(test)]
impl Style {
    /// What most people see.
    pub(super) fn plain() -> Self {
        Self {
            form: Form::Human,
            detail: Detail::Normal,
            color: false,
            headers: true,
            ascii: false,
            width: None,
            lines: None,
            messages: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }
}

/// Whether the locale's character set is UTF-8, by the first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set (locale(7)).
#[must_use]
pub fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let locale = variables
        .into_iter()
        .flatten()
        .find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_uppercase();
    locale.contains("UTF-8") || locale.contains("UTF8")
}

/// The columns for a line: `COLUMNS`, or the terminal's that stdout is; `None` where it is none.
#[must_use]
pub fn width(columns: Option<&str>) -> Option<usize> {
    set(columns).or_else(|| width_of(io::stdout()))
}

/// The columns for lines on a terminal: `COLUMNS`, or its own; `None` where the stream is none.
#[must_use]
pub fn terminal_width(stream: impl AsFd, columns: Option<&str>) -> Option<usize> {
    let own = width_of(stream)?;
    Some(set(columns).unwrap_or(own))
}

fn width_of(stream: impl AsFd) -> Option<usize> {
    terminal_size_of(stream).map(|(Width(columns), _)| columns.into())
}

fn set(columns: Option<&str>) -> Option<usize> {
    let columns = columns.and_then(|text| text.parse().ok());
    columns.filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let utf8 = |all: &str, ctype: &str, lang: &str| {
            is_utf8([all, ctype, lang].map(|text| Some(text.to_owned())))
        };
        assert!(utf8("", "", "de_DE.UTF-8"));
        assert!(utf8("C.utf8", "C", "C"));
        assert!(!utf8("C", "", "en_US.UTF-8"));
        assert!(!utf8("", "POSIX", "en_US.UTF-8"));
        assert!(!is_utf8([None, None, None]));
    }
}
