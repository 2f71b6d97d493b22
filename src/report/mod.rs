//! What commands answer: one document, rendered as JSON or for people, and progress as events. Sentences and tables are
//! made here and nowhere else.

mod answered;
mod docs;
mod document;
mod fleet;
mod folded;
mod messages;
mod metrics;
mod page;
mod problems;
mod progress;
mod screen;
mod style;
mod table;
mod text;
mod verb;
mod window;

use std::collections::BTreeSet;
use std::io::{self, Write};

pub use crate::model::{Exit, State};
use crate::model::{Problem, Severity};
pub use docs::explain::{codes, explain, list as list_codes};
#[cfg(test)]
pub(crate) use docs::listed_part;
pub use docs::schema::schema;
pub use document::{
    CheckStatus, CheckView, ConfigView, Document, Extra, GenerationView, KeptView, LostView,
    NodeView, PodView, RuntimeView, SettingView, ShowView, StatusView, UnreadView, Verb,
};
pub use fleet::age::AgeLimit;
pub use fleet::page::page as fleet_page;
pub use fleet::{FleetView, NodeDocument, NodeResult};
pub(crate) use metrics::{PartRead, Surroundings, metrics};
pub use progress::{
    cannot_enter_host, cannot_start, config_unused, line, listener, waits_for_lock,
};
pub use style::{Detail, Form, Style, is_utf8, terminal_width, width};
pub(crate) use verb::check::check;
pub(crate) use verb::plan::drift;
pub(crate) use verb::restore::restore;
pub(crate) use verb::show::setting;
pub(crate) use verb::snapshot::snapshot;
pub(crate) use verb::upgrade::{no_preview, preview, question, unplanned, upgrade};
pub(crate) use verb::verify::verify;
pub use window::hold::HoldView;
pub use window::outcome::{Ending, PodCounts, PodOutcome};
pub use window::page::page;
pub use window::view::{ReportView, Standing, WindowView};

pub use crate::model::LinkFault;
pub use crate::situation::guard_now::{GivenUpLink, GuardNow, GuardState, IncompleteNow};
pub use crate::window::network::{FaultyLink, PodNetworks};
pub use crate::window::status::StatusPart;

/// Writes the answer to `out` and the problems to `messages`: tables first, then problems, the verdict last.
///
/// # Errors
/// The answer could not be written. What the other stream can take is written nevertheless.
pub fn render(
    document: &Document,
    style: Style,
    out: &mut dyn Write,
    messages: &mut dyn Write,
) -> io::Result<()> {
    if style.form.is_json() {
        match style.form {
            Form::Jsonl => serde_json::to_writer(&mut *out, document)?,
            _ => serde_json::to_writer_pretty(&mut *out, document)?,
        }
        return writeln!(out);
    }
    let screen::Screen { body, listed, last } = verb::screen(document, style);
    let has_last = matches!(style.form, Form::Human | Form::Wide) && style.headers;
    let body = print(style, out, &body);
    let problems = text::wrapped(&problems(document, listed, style), style.messages);
    // A failure of stderr has no place to be reported.
    let _ = print(style, messages, &problems);
    let last = last.filter(|_| has_last);
    let last = last.map(|last| last.line(document, style));
    let last = print(style, out, &text::wrapped(&text::lines(last), style.lines));
    body.and(last)
}

/// Writes the part of a text that the terminal can show, at once: the next part may go to another stream.
fn print(style: Style, out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(style.encode(text).as_bytes())?;
    out.flush()
}

/// The problems that are not listed on the screen.
fn problems(document: &Document, listed: &[Problem], style: Style) -> String {
    let least = if style.is_quiet() {
        Severity::Error
    } else {
        Severity::Info
    };
    let key = |problem: &Problem| (problem.severity, problem.line(None));
    let listed: BTreeSet<_> = listed.iter().map(key).collect();
    let problems = document
        .problems
        .iter()
        .filter(|problem| problem.severity >= least && !listed.contains(&key(problem)));
    let pods = document.pods.iter().map(|pod| &pod.info);
    problems::text(problems, pods, problems::word, style)
}
