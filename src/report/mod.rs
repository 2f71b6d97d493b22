//! What commands answer: one document, rendered as JSON or for people, and progress as events.

mod check;
mod generations;
mod hold;
mod human;
mod progress;
mod prospect;
mod screen;
mod view;
mod window;

use std::io::{self, Write};

use crate::cli::{Color, Global, Output};

pub use crate::model::summary::{GatewayView, InterfaceView, State, interfaces};
pub use check::metrics;
pub use progress::{Listener, Progress, listener};
pub use prospect::prospect;
pub use view::{
    CheckView, Document, Extra, GenerationView, HoldView, KeptView, NodeView, PodView, RuntimeView, ShowView,
    StatusView, Verdict,
};
pub use window::{Ending, Fate, ReportView, Standing, Tally, WindowView, page};

/// How an answer is to look.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// For whom.
    pub form: Form,
    /// Colours in human output.
    pub color: bool,
    /// Only errors.
    pub quiet: bool,
    /// Steps as well.
    pub verbose: bool,
}

/// For whom an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// People: tables and sentences.
    Human,
    /// Programs: one JSON document.
    Json,
    /// Monitoring: one status line, as plugins print it; from the command that has one.
    Plugin,
}

impl Style {
    /// The style that the user asked for; `plugin` asks for a status line, `terminal` says whether the output goes to
    /// one.
    #[must_use]
    pub fn new(global: &Global, plugin: bool, terminal: bool) -> Self {
        let Global { output, color, quiet, verbose, .. } = *global;
        let wanted = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
        };
        let form = match output {
            Output::Json => Form::Json,
            Output::Human if plugin => Form::Plugin,
            Output::Human => Form::Human,
        };
        Self { form, color: wanted, quiet, verbose }
    }
}

/// A word in bold and in a colour (an SGR number), where colours are wanted.
fn paint(word: &str, color: &str, style: Style) -> String {
    if style.color { format!("\x1b[1;{color}m{word}\x1b[0m") } else { word.to_owned() }
}

/// Writes the answer to `out` and, for people, the problems to `talk`.
///
/// # Errors
/// When writing fails; a broken pipe is the caller's to forgive.
pub fn render(
    document: &Document,
    style: Style,
    out: &mut dyn Write,
    talk: &mut dyn Write,
) -> io::Result<()> {
    match style.form {
        Form::Json => {
            serde_json::to_writer_pretty(&mut *out, document)?;
            writeln!(out)
        }
        Form::Human | Form::Plugin => match &document.extra {
            // Its findings are the answer.
            Some(Extra::Check(check)) if style.form == Form::Plugin => {
                check::plugin_line(document, check, out)
            }
            Some(Extra::Check(check)) => check::lines(document, check, style, out),
            _ => {
                human::answer(document, style, out)?;
                human::problems(document, style, talk)
            }
        },
    }
}
