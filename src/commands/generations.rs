//! `netfix list --generations`: the kept generations; and the choice of one of them.

use super::common::answer;
use crate::context::Context;
use crate::model::{PodId, Problem};
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, GenerationView};
use crate::store::{Contents, Generation, GenerationReader, StoreError};

pub(super) fn list(context: &mut Context) -> Result<Document, Refusal> {
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
    let of_node = node
        .into_iter()
        .flat_map(|node| node.seen.values().chain([&node.created]));
    let of_pods = contents
        .checkpoints
        .values()
        .filter_map(|written| written.as_ref().ok()?.as_ref());
    of_node.chain(of_pods).max().cloned()
}
