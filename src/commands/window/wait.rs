//! `netfix wait`: the end of a window, for the engine that started it.

use crate::cli::WaitArgs;
use crate::commands::common::answer;
use crate::context::Context;
use crate::model::problem::WindowCause;
use crate::model::window::Standing;
use crate::refusal::Refusal;
use crate::report::{self, Document, Exit, Extra, ReportView};
use crate::window::records::still_open;
use crate::window::wait;
use crate::window::wait::Waited;

pub(crate) fn run(args: &WaitArgs, context: &mut Context) -> Result<Document, Refusal> {
    let limit = args.timeout;
    let quiet = context.quiet;
    let Waited { window, standing } = wait::run(
        args.window.as_deref(),
        limit,
        &context.store,
        &mut |window| {
            if !quiet {
                report::line(&format!("warning: {}", still_open(window)));
            }
        },
    )?;
    if standing != Standing::Closed {
        let limit = limit.unwrap_or_default();
        let cause = WindowCause::StillOpen { limit };
        let problem = cause.error(window.id.clone());
        let view = ReportView::new(window, standing);
        let extra = Some(Extra::Report(Box::new(view)));
        return Ok(answer(Exit::TimedOut, vec![problem], extra));
    }
    let exit = window.exit.unwrap_or(Exit::Failed as u8);
    let problems = window.problems.clone();
    let view = ReportView::new(window, standing);
    Ok(Document {
        exit,
        ..answer(Exit::Done, problems, Some(Extra::Report(Box::new(view))))
    })
}
