//! `netfix list`: what is stored.

use std::path::PathBuf;

use super::common::answer;
use crate::cli::PodArgs;
use crate::context::Context;
use crate::model::problem::StoreEffect;
use crate::model::{NodeState, PodSummary, Problem};
use crate::records::stored::{Stored, load, summary_of};
use crate::refusal::Refusal;
use crate::report::{Document, Exit, PodView, State};
use crate::store::Store;

pub(super) fn list(pods: &PodArgs, context: &mut Context) -> Result<Document, Refusal> {
    let selection = pods.selectors.selection()?;
    let store = context.store.at(pods.generation)?;
    let Stored {
        checkpoints,
        damaged,
        mut problems,
        whole: _,
    } = load(&store, &selection)?;
    let node = node_state(&store, &mut problems);
    let mut pods: Vec<PodView> = Vec::new();
    for (info, checkpoint) in &checkpoints {
        let extension = checkpoint.netfix.as_ref();
        let inode = extension.map_or(0, |extension| extension.identity.inode);
        let path = PathBuf::from(&checkpoint.netns);
        if selection.wants_pod(info) && selection.wants_netns(&[path], inode) {
            let view = PodView::new(summary_of(info, checkpoint), State::Stored);
            pods.push(view.verified_in(node.as_ref()));
        }
    }
    for info in &damaged {
        let view = PodView::new(PodSummary::bare(info, None), State::Failed);
        pods.push(view.verified_in(node.as_ref()));
    }
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let document = Document {
        pods,
        ..answer(Exit::Done, problems, None)
    };
    Ok(document.judged())
}

/// The node's state, which has the times at which snapshots last verified the pods.
pub(super) fn node_state(store: &Store, problems: &mut Vec<Problem>) -> Option<NodeState> {
    store
        .load_node()
        .map_err(|error| problems.push(error.problem_with(StoreEffect::TimesUnknown).demoted()))
        .ok()?
}
