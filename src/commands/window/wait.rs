//! `netfix wait`: the end of a window, for the engine that started it.

use crate::cli::WaitArgs;
use crate::commands::common::answer;
use crate::context::Context;
use crate::model::problem::WindowCause;
use crate::model::window::Standing;
use crate::refusal::Refusal;
use crate::report::{self, Document, Exit, Extra, ReportView};
use crate::window::observed::{self, still_open};
use crate::window::records::{self, WindowRecord};

pub(crate) fn run(args: &WaitArgs, context: &mut Context) -> Result<Document, Refusal> {
    let limit = args.timeout;
    let (quiet, store) = (context.quiet, &context.store);
    let WindowRecord {
        window, standing, ..
    } = records::wait(args.window.as_deref(), limit, store, &mut |window| {
        if !quiet {
            report::line(&format!("warning: {}", still_open(window, store)));
        }
    })?;
    let (exit, problems) = if standing == Standing::Closed {
        let exit = window.exit.unwrap_or(Exit::Failed as u8);
        (exit, window.problems.clone())
    } else {
        let limit = limit.unwrap_or_default();
        let problem = WindowCause::StillOpen { limit }.error(window.id.clone());
        (Exit::TimedOut as u8, vec![problem])
    };
    let now = observed::of_open(&window, standing, store);
    let view = ReportView::observed(window, standing, now.as_ref());
    let extra = Some(Extra::Report(Box::new(view)));
    Ok(Document {
        exit,
        ..answer(Exit::Done, problems, extra)
    })
}
