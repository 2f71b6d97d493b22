//! `netfix diff` and `netfix plan`: what is missing, and the steps that would restore it. Changes nothing.

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::progress::{Progress, Stage};
use crate::records::contest::CNI_CACHE;
use crate::records::fallback::Fallback;
use crate::records::prepare::{RecordSource, SurveyRequest, prepare};
use crate::refusal::Refusal;
use crate::report::{self, Document};
use crate::restore::compare::{Comparison, Depth, compare};

pub(super) fn diff(args: &DiffArgs, context: &mut Context) -> Result<Document, Refusal> {
    let generation = args.pods.generation;
    let request = SurveyRequest {
        selection: args.pods.selectors.selection()?,
        source: RecordSource::Checkpoints { generation },
        fallback: match generation {
            Some(_) => Fallback::Nothing,
            None => Fallback::GenerationsAndCache,
        },
        with_daemons: false,
        nic: args.nic.nic_settings,
        parent: None,
        runtimes: args.runtimes.config(),
        cni_cache: CNI_CACHE.into(),
    };
    plan(&request, true, context)
}

/// With `exit_code`, drift has its own exit code, unless there is an error.
pub(super) fn plan(
    request: &SurveyRequest,
    exit_code: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let mut surveyed = prepare(request, &context.store)?;
    let count = surveyed.matched.len();
    let comparison = if surveyed.has_work() {
        context
            .progress
            .notice(Progress::Phase(Stage::Comparing, count));
        compare(&mut surveyed, Depth::Complete)?
    } else {
        Comparison::default()
    };
    let notes = surveyed.learn_from_runtimes(&[], &request.runtimes);
    Ok(report::drift(&surveyed, comparison, notes, exit_code))
}
