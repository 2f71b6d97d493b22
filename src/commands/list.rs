//! `netfix list` and `netfix prune`: the stored checkpoints, and the kept generations.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::common::answer;
use crate::cli::PodArgs;
use crate::context::Context;
use crate::model::problem::{MatchingCause, StoreEffect};
use crate::model::{NodeState, PodId, PodSummary, Problem};
use crate::records::stored::{Stored, load, shown, summary_of};
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, GenerationView, KeptView, PodView, State};
use crate::store::{Contents, Generation, GenerationReader, Prune, Store, StoreError};

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
    if pods.is_empty() && !selection.is_everything() {
        return Err(MatchingCause::NoCheckpoints
            .error(selection.to_string())
            .into());
    }
    problems.extend(selection.unmatched());
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

/// `list --generations`.
pub(super) fn generations(context: &mut Context) -> Result<Document, Refusal> {
    let store = &context.store;
    let mut reader = GenerationReader::default();
    let mut problems = Vec::new();
    let mut views: Vec<GenerationView> = Vec::new();
    let mut before: Option<Contents> = None;
    for generation in store.generations()? {
        let Some(contents) = reader.read(store, generation.number)? else {
            continue;
        };
        problems.extend(damage(&contents));
        views.push(view(generation, &contents, before.as_ref()));
        before = Some(contents);
    }
    if let (Some(newest), Some(view)) = (before, views.last_mut()) {
        view.current = newest.is_whole_of(store)?;
    }
    Ok(answer(
        Exit::Done,
        problems,
        Some(Extra::Generations(views)),
    ))
}

/// What cannot be read is a warning: it may have been kept as it was found.
fn damage(contents: &Contents) -> Vec<Problem> {
    let of_node = contents.node.as_ref().err().map(StoreError::problem);
    contents
        .checkpoints
        .iter()
        .filter_map(|(id, written)| Some(written.as_ref().err()?.problem().of(id)))
        .chain(of_node)
        .map(Problem::demoted)
        .collect()
}

fn view(generation: Generation, contents: &Contents, before: Option<&Contents>) -> GenerationView {
    let has = |contents: &Contents, id: &PodId| contents.checkpoints.contains_key(id);
    GenerationView {
        number: generation.number,
        time: time(contents),
        current: false,
        aside: generation.aside,
        pods: contents.checkpoints.len(),
        added: before.map(|before| ids(contents, |id| !has(before, id))),
        changed: before.map(|before| {
            ids(contents, |id| {
                has(before, id) && !contents.has_same(before, id)
            })
        }),
        removed: before.map(|before| ids(before, |id| !has(contents, id))),
        damaged: ids(contents, |id| contents.checkpoints[id].is_err()),
    }
}

/// The pods of a generation that are wanted.
fn ids(contents: &Contents, is_wanted: impl Fn(&PodId) -> bool) -> Vec<PodId> {
    let ids = contents.checkpoints.keys();
    ids.filter(|id| is_wanted(id)).cloned().collect()
}

/// When the newest part of its content was written or verified: all times have one form, so the last is the greatest.
fn time(contents: &Contents) -> Option<String> {
    let node = contents.node.as_ref().ok().and_then(Option::as_ref);
    let of_node = node.into_iter().flat_map(|node| {
        let seen = node.seen.keys().filter_map(|id| node.seen(id));
        seen.chain([node.stamp()])
    });
    let of_pods = contents
        .checkpoints
        .values()
        .filter_map(|written| written.as_ref().ok()?.clone());
    of_node.chain(of_pods).map(|at| shown(&at)).max()
}

/// `prune`: removes generations that are too many.
pub(super) fn prune(keep: NonZeroUsize, context: &mut Context) -> Result<Document, Refusal> {
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
