//! `netfix diff` and `netfix plan`: what is missing, and the steps that would restore it. Changes nothing.

use crate::cli::DiffArgs;
use crate::context::Context;
use crate::progress::{Phase, Progress};
use crate::records::contest::CNI_CACHE;
use crate::records::prepare::{Request, Source, prepare};
use crate::records::rejected::name_successors;
use crate::records::survey::settle_bare;
use crate::refusal::Refusal;
use crate::report::{self, Document};
use crate::restore::compare::{Comparison, Depth, compare};

pub(super) fn diff(args: &DiffArgs, context: &mut Context) -> Result<Document, Refusal> {
    let generation = args.pods.generation;
    let request = Request {
        selection: args.pods.selectors.selection()?,
        source: Source::Checkpoints { generation },
        parent: None,
        runtimes: args.runtimes.config(),
        cni_cache: CNI_CACHE.into(),
    };
    plan(request, true, context)
}

/// With `exit_code`, drift has its own exit code, unless there is an error.
pub(super) fn plan(
    request: Request,
    exit_code: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let runtimes = request.runtimes.clone();
    let mut surveyed = prepare(request, &context.store)?;
    let count = surveyed.matched.len();
    let comparison = if count == 0 {
        Comparison::default()
    } else {
        context
            .progress
            .notice(Progress::Phase(Phase::Comparing, count));
        compare(&mut surveyed, Depth::Complete)?
    };
    let notes = name_successors(&mut surveyed.rejected, &runtimes);
    let matched = surveyed.matched.iter();
    let known: Vec<_> = matched.map(|matched| &matched.info).collect();
    settle_bare(&mut surveyed.unmatched, &known, &runtimes);
    Ok(report::drift(&surveyed, comparison, notes, exit_code))
}
