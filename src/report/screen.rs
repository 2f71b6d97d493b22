//! What is printed of a document, and its last line.

use crate::model::{Problem, Severity};
use crate::report::document::Document;
use crate::report::style::{Style, Tone};
use crate::report::text::{bounded, count, join};

/// What is printed of a document.
#[derive(Default)]
pub(super) struct Screen<'a> {
    /// The tables and facts on stdout.
    pub body: String,
    /// The problems in it, which are not repeated on stderr.
    pub listed: &'a [Problem],
    /// The overall result, after the problems.
    pub last: Option<LastLine>,
}

impl Screen<'_> {
    /// A screen without problems.
    pub(super) fn new(body: String, last: impl Into<Option<LastLine>>) -> Self {
        Self {
            body,
            listed: &[],
            last: last.into(),
        }
    }
}

/// The overall result of a command. Its words never contradict the exit code: [`LastLine::line`] is the only way to print them.
pub(super) struct LastLine {
    /// A word in front of the others; else the colour is that of the exit code.
    head: Option<(String, Tone)>,
    words: String,
    /// Whether the words name nothing that is not well.
    is_well: bool,
}

impl LastLine {
    /// Words that are the whole truth only if the command succeeded: where it did not, they are followed by why.
    pub(super) fn well(words: impl Into<String>) -> Self {
        Self::new(words, true)
    }

    /// Words that name what is missing, unless `is_well`.
    pub(super) fn new(words: impl Into<String>, is_well: bool) -> Self {
        Self {
            head: None,
            words: words.into(),
            is_well,
        }
    }

    /// With a word in front of them.
    pub(super) fn headed(self, head: impl Into<String>, tone: Tone) -> Self {
        Self {
            head: Some((head.into(), tone)),
            ..self
        }
    }

    /// The last line of this document.
    pub(super) fn line(self, document: &Document, style: Style) -> String {
        let Self {
            head,
            words,
            is_well,
        } = self;
        let words = if is_well && document.exit != 0 {
            format!("{words}; {}", why(document))
        } else {
            words
        };
        let tone = match document.exit {
            0 => Tone::Good,
            3 => Tone::Warning,
            _ => Tone::Bad,
        };
        match head {
            Some((head, tone)) => format!("{}: {words}", style.paint(&head, tone)),
            None => style.paint(&words, tone),
        }
    }
}

/// Why a command ended with an exit code that is not 0: the codes of its worst problems.
fn why(document: &Document) -> String {
    let of = |severity| {
        let problems = document.problems.iter();
        problems.filter(move |problem| problem.severity == severity)
    };
    let worst = [(Severity::Error, "error"), (Severity::Warning, "warning")];
    let worst = worst.into_iter().find_map(|(severity, word)| {
        let number = of(severity).count();
        (number > 0).then_some((severity, count(number, word)))
    });
    let Some((severity, number)) = worst else {
        return format!("exit code {}", document.exit);
    };
    let mut codes: Vec<String> = of(severity).map(|one| one.code().to_string()).collect();
    codes.sort();
    codes.dedup();
    format!("{number}: {}", join(bounded(codes), ", "))
}
