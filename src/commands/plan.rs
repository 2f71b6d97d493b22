//! `netfix plan` and `netfix diff`: what is missing, and the steps that would restore it. Changes nothing.

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::progress::{Progress, Stage};
use crate::records::prepare::{SurveyRequest, prepare};
use crate::refusal::Refusal;
use crate::report::{self, Document};
use crate::situation::{Comparison, Depth, Situation};

/// With `exit_code`, drift has its own exit code, unless there is an error.
pub(super) fn plan(
    args: &DiffArgs,
    exit_code: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    of(&args.target.request(&args.source)?, exit_code, context)
}

/// The plan of a request.
pub(super) fn of(
    request: &SurveyRequest,
    exit_code: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let surveyed = prepare(request, &context.store)?;
    let mut seen = if surveyed.has_work() {
        let stage = Progress::Phase(Stage::Comparing, surveyed.matched.len());
        context.progress.notice(stage);
        Situation::of(surveyed, Depth::Complete)?.confirmed()
    } else {
        let compared = Comparison::default();
        Situation { surveyed, compared }
    };
    let notes = seen.surveyed.learn_from_runtimes(&[], &request.runtimes);
    Ok(report::drift(seen, notes, exit_code))
}
