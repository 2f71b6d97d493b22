//! `netfix diff` and `netfix plan`: what is missing, and the steps that would restore it. Changes nothing.

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::progress::{Progress, Stage};
use crate::records::fallback::Fallback;
use crate::records::prepare::{RecordSource, SurveyRequest, prepare};
use crate::refusal::Refusal;
use crate::report::{self, Document};
use crate::situation::{Comparison, Depth, Situation};

pub(super) fn diff(args: &DiffArgs, context: &mut Context) -> Result<Document, Refusal> {
    let generation = args.pods.generation;
    let selection = args.pods.selectors.selection()?;
    let request = SurveyRequest {
        source: RecordSource::Checkpoints { generation },
        fallback: match generation {
            Some(_) => Fallback::Nothing,
            None => Fallback::GenerationsAndCache,
        },
        nic: args.nic.nic_settings,
        ..SurveyRequest::new(selection, args.runtimes.config())
    };
    plan(&request, true, context)
}

/// With `exit_code`, drift has its own exit code, unless there is an error.
pub(super) fn plan(
    request: &SurveyRequest,
    exit_code: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let surveyed = prepare(request, &context.store)?;
    let mut seen = if surveyed.has_work() {
        let stage = Progress::Phase(Stage::Comparing, surveyed.matched.len());
        context.progress.notice(stage);
        Situation::of(surveyed, Depth::Complete)?
    } else {
        let compared = Comparison::default();
        Situation { surveyed, compared }
    };
    let notes = seen.surveyed.learn_from_runtimes(&[], &request.runtimes);
    Ok(report::drift(seen, notes, exit_code))
}
