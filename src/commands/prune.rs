//! `netfix prune`: removes generations that are too many.

use std::num::NonZeroUsize;

use crate::context::Context;
use crate::inventory::observe;
use crate::report::outcome::{Early, Exit, Outcome};
use crate::report::{Extra, KeptView, NodeView};
use crate::store::Prune;

pub(super) fn run(keep: NonZeroUsize, context: &mut Context) -> Result<Outcome, Early> {
    let mut removed = Vec::new();
    let mut problems = Vec::new();
    // Without a state folder there is nothing to remove, and none is made for it.
    if context.store.exists() {
        let locked = context.store.lock("prune");
        let guard = locked.map_err(|error| Box::new(Outcome::refused(error.problem())))?;
        let (gone, result) = guard.prune(keep, None, Prune::Any);
        removed = gone;
        problems.extend(result.err().map(|error| error.problem()));
    }
    let exit = match (problems.is_empty(), removed.is_empty()) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Partly,
    };
    let extra = Some(Extra::Kept(KeptView {
        removed,
        ..KeptView::default()
    }));
    Ok(Outcome {
        exit,
        node: NodeView::of(&observe::node_identity()),
        problems,
        extra,
        ..Outcome::default()
    })
}
