//! `netfix snapshot`: writes a checkpoint of every pod, and the host's state.

use std::num::NonZeroUsize;

use crate::cli::{Runtimes, Selectors};
use crate::context::Context;
use crate::refusal::Refusal;
use crate::report::Document;
use crate::{report, snapshot};

pub(super) fn run(
    selectors: &Selectors,
    runtimes: &Runtimes,
    keep: NonZeroUsize,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let request = snapshot::Request {
        selection: &selectors.selection()?,
        runtimes: &runtimes.config(),
        keep,
    };
    let taken = snapshot::run(&request, &context.store, context.progress.as_mut())?;
    Ok(report::snapshot(taken).judged())
}
