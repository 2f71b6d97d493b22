//! `netfix snapshot`: writes a checkpoint of every pod, and the host's state.

use std::num::NonZeroUsize;

use crate::cli::{Runtimes, Selectors};
use crate::context::Context;
use crate::report::outcome::{Early, Outcome};
use crate::{report, snapshot};

pub(super) fn snapshot(
    selectors: &Selectors,
    runtimes: &Runtimes,
    keep: NonZeroUsize,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let request = snapshot::Request {
        selection: &selectors.selection()?,
        runtimes: &runtimes.config(),
        keep,
    };
    let taken = snapshot::run(&request, &context.store, context.progress.as_mut())?;
    let answer = report::snapshot(taken);
    let exit = Outcome::judge(&answer.pods, &answer.problems);
    Ok(Outcome { exit, ..answer })
}
