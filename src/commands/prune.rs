//! `netfix prune`: removes generations that are too many.

use std::num::NonZeroUsize;

use super::common::answer;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, KeptView};
use crate::store::Prune;

pub(super) fn run(keep: NonZeroUsize, context: &mut Context) -> Result<Document, Refusal> {
    let mut removed = Vec::new();
    let mut problems = Vec::new();
    // Without a state folder there is nothing to remove, and none is made for it.
    if context.store.exists() {
        let (gone, result) = context.store.lock("prune")?.prune(keep, None, Prune::Any);
        removed = gone;
        problems.extend(result.err().map(|error| error.problem()));
    }
    let exit = match (problems.is_empty(), removed.is_empty()) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Partly,
    };
    let kept = KeptView {
        removed,
        ..KeptView::default()
    };
    Ok(answer(exit, problems, Some(Extra::Kept(kept))))
}
