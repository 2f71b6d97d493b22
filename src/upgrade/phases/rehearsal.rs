//! The rehearsal: every pod at risk is built a second time from the checkpoint that was just written.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::inventory::Inventory;
use crate::model::problem::RehearsalCause;
use crate::model::{PodId, Severity};
use crate::plan::PodVerdict;
use crate::progress::{Progress, Stage};
use crate::records::fallback::FallbackRequest;
use crate::records::stored::load;
use crate::records::survey::survey;
use crate::refusal::Refusal;
use crate::rehearsal::{self, Rehearsed};
use crate::restore::compare::{Depth, compare};
use crate::upgrade::baseline::LeftOut;
use crate::upgrade::request::UpgradeRequest;

/// Rehearses what a restore after COMMAND will do. Pods that have lost their network already are left out: they come back otherwise
/// than they are.
pub(crate) fn run(
    left_out: &LeftOut,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Rehearsed, Refusal> {
    let (selection, store) = (&request.selection, &context.store);
    let inventory = Inventory::open(selection)?;
    let stored = load(store, selection)?;
    let mut surveyed = survey(inventory, stored, selection, store, FallbackRequest::NONE)?;
    let stage = Progress::Phase(Stage::Rehearsing, surveyed.matched.len());
    context.progress.notice(stage);
    let compared = compare(&mut surveyed, Depth::Creation)?.pods;
    let weights: BTreeMap<PodId, Severity> = surveyed
        .matched
        .iter()
        .zip(&compared)
        .filter(|(_, one)| !matches!(one.verdict, PodVerdict::Lost(_) | PodVerdict::Unknown(_)))
        .filter(|(matched, _)| !left_out.has(&matched.info.id))
        .map(|(matched, one)| {
            // What no restore could bring back is told already.
            let is_whole = one.unsupported.is_empty();
            let severity = if is_whole {
                Severity::Error
            } else {
                Severity::Info
            };
            (matched.info.id.clone(), severity)
        })
        .collect();
    let weight = |id: &PodId| weights.get(id).copied();
    rehearsal::rehearse(&mut surveyed, &weight).map_err(|error| {
        let error = error.to_string();
        RehearsalCause::Failed { error }.error("host").into()
    })
}
