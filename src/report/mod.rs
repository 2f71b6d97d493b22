//! What commands answer: one document, rendered as JSON or for people, and progress as events. Sentences and tables are
//! made here and nowhere else.

mod answers;
mod check;
mod exit;
mod explain;
#[cfg(test)]
mod fidelity;
mod fleet;
mod generations;
mod layout;
#[cfg(test)]
mod listed_part;
mod messages;
mod metrics;
mod pods;
mod problems;
mod processes;
mod progress;
mod prospect;
mod schema;
mod show;
mod status;
mod steps;
mod style;
mod table;
mod text;
mod verdict;
mod view;
mod window;
mod window_status;

use std::collections::BTreeSet;
use std::io::{self, Write};

pub use crate::model::{Exit, State};
use crate::model::{Problem, Severity};
pub(crate) use answers::{check, drift, restore, snapshot, upgrade, verify};
pub use explain::{codes, explain, list as list_codes};
pub use fleet::{FleetView, NodeDocument, NodeResult, page as fleet_page};
pub(crate) use metrics::{OpenWindow, Surroundings, metrics};
pub use processes::{cannot_enter_host, cannot_start, waits_for_lock};
pub use progress::{line, listener};
pub(crate) use prospect::{preview, prospect};
pub use schema::{DOCUMENTED, schema};
pub(crate) use show::setting;
use style::Tone;
pub use style::{Detail, Form, Style, is_utf8, width};
pub use view::{
    CheckView, Document, Extra, GenerationView, HoldView, KeptView, NodeView, PodView, RuntimeView,
    ShowView, StatusView, Verdict,
};
pub use window::{Ending, PodCounts, PodOutcome, ReportView, Standing, WindowView, page};

/// Writes the answer to `out` and the problems to `messages`: tables first, then problems, the verdict last.
///
/// # Errors
/// The first failure; what the other stream can take is written nevertheless.
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
    let body = print(style, out, &body(document, style));
    let problems = print(style, messages, &problems(document, style));
    let last = print(style, out, &text::lines(last_line(document, style)));
    body.and(problems).and(last)
}

/// Writes the part of a text that the terminal can show, at once: the next part may go to another stream.
fn print(style: Style, out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(style.encode(text).as_bytes())?;
    out.flush()
}

/// Whether a command could not start and has no result, not even an empty one.
fn is_refused(document: &Document) -> bool {
    document.exit != 0 && document.pods.is_empty()
}

fn body(document: &Document, style: Style) -> String {
    if style.form == Form::Name {
        return pods::names(document);
    }
    match (&document.extra, document.command) {
        (Some(Extra::Check(check)), _) if style.form == Form::Plugin => {
            check::plugin_line(document, check)
        }
        (Some(Extra::Check(_)), _) if style.lists_all() => {
            pods::table(document, style) + &check::findings(document, style)
        }
        (Some(Extra::Check(_)), _) => check::findings(document, style),
        (Some(Extra::Status(view)), _) => text::facts(status::facts(document, view)),
        (Some(Extra::Show(view)), _) => {
            let pods = document.pods.iter();
            text::facts(pods.flat_map(|pod| show::facts(pod, view)).collect())
        }
        (Some(Extra::Window(view)), "upgrade") => format!("{}\n", view.id),
        (Some(Extra::Fleet(view)), _) => fleet::text(view, style),
        (Some(Extra::Report(view)), "report") => window::report(view, style),
        (_, "report" | "status") if document.extra.is_none() => String::new(),
        (_, "plan" | "diff") if !is_refused(document) => steps::plan(document, style),
        _ if style.is_quiet() => String::new(),
        (Some(Extra::Report(view)), _) => window::report(view, style),
        (Some(Extra::Window(view)), command) => {
            text::facts(window_status::facts(view)) + &window_status::next(command, view)
        }
        (Some(Extra::Windows(all)), _) => window::list(all, style),
        (Some(Extra::Generations(all)), _) => generations::list(all, style),
        // The course of a window that is not begun.
        (Some(Extra::DryRun(_)), _) if document.exit == 0 => {
            prospect(&document.node.steps, &document.pods)
        }
        (Some(Extra::DryRun(_)), _) | (None, "upgrade") | (_, "prune") => String::new(),
        _ if is_refused(document) => String::new(),
        _ if style.is_verbose() => steps::all(document, style) + &pods::table(document, style),
        _ => pods::table(document, style),
    }
}

/// The problems that are not part of the answer.
fn problems(document: &Document, style: Style) -> String {
    let listed: &[Problem] = match &document.extra {
        Some(Extra::Check(_)) if style.form != Form::Name => return String::new(),
        Some(Extra::Report(view)) if !style.is_quiet() => &view.window.problems,
        _ => &[],
    };
    let least = if style.is_quiet() {
        Severity::Error
    } else {
        Severity::Info
    };
    let key = |problem: &Problem| (problem.severity, problem.line(None));
    let listed: BTreeSet<_> = listed.iter().map(key).collect();
    let is_listed = |problem: &&Problem| problem.severity < least || listed.contains(&key(problem));
    let problems = document
        .problems
        .iter()
        .filter(|problem| !is_listed(problem));
    let pods = document.pods.iter().map(|pod| &pod.info);
    problems::text(problems, pods, problems::word, style)
}

/// The overall result of the answer.
fn last_line(document: &Document, style: Style) -> Option<String> {
    if !matches!(style.form, Form::Human | Form::Wide) || !style.headers {
        return None;
    }
    let is_asked_for =
        |commands: &[&str]| !style.is_quiet() || commands.contains(&document.command);
    match &document.extra {
        Some(Extra::Check(check)) => return check::verdict(check, style),
        Some(Extra::Fleet(view)) => return Some(fleet::verdict(view, style)),
        Some(Extra::Report(view)) if is_asked_for(&["report"]) => {
            return Some(window::verdict(view, style));
        }
        _ => {}
    }
    if is_refused(document) || !is_asked_for(&["plan", "diff"]) {
        return None;
    }
    let (words, tone) = match (&document.extra, document.command) {
        (Some(Extra::Kept(kept)), "prune") => (generations::removed(kept), Tone::Good),
        (Some(Extra::Generations(all)), _) => (text::count(all.len(), "generation"), Tone::Good),
        (Some(Extra::Windows(all)), _) => (text::count(all.len(), "window"), Tone::Good),
        (None | Some(Extra::Kept(_)), _) if document.command != "upgrade" => {
            verdict::of_pods(document)
        }
        _ => return None,
    };
    Some(style.paint(&words, tone))
}
