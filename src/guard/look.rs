//! One look: observes the machine, decides, and restores. It runs in a process of its own, which gives all memory back.

use crate::context::Context;
use crate::guard::act;
use crate::guard::decide::{self, Decided, GuardDecision};
use crate::guard::observation::{close_deserted, empty_sight, observe};
use crate::guard::request::{GuardRequest, LookResult, keep};
use crate::guard::watched;
use crate::model::Problem;
use crate::model::window::GuardRecord;
use crate::refusal::Refusal;
use crate::store::Store;
use crate::window::rebuild_check::query::RuntimeQuery;

/// Looks once, and restores where that is decided; `tell` receives each decision before anything is done.
pub(crate) fn look(
    mut request: GuardRequest,
    context: &mut Context,
    tell: &mut dyn FnMut(&mut Decided),
) -> Result<LookResult, Refusal> {
    let store = context.store.clone();
    let mut problems = Vec::new();
    let known = request.known.take();
    let is_first = known.is_none();
    let mut known = known.unwrap_or_else(|| GuardRecord {
        // Each start says what it finds.
        said: String::new(),
        ..load(&store, &mut problems)
    });
    known.watcher = request.watcher.or(known.watcher);
    if !store.exists() {
        let mut decided = decide::decide(&known, &empty_sight(), request.choice);
        tell(&mut decided);
        return Ok(decided.left());
    }
    if !request.choice.reports_only {
        problems.extend(close_deserted(&store)?);
    }
    let mut first = observe(&request, &store)?;
    let mut decided = decide::decide(&known, &first.sight, request.choice);
    if !matches!(decided.decision, GuardDecision::Restore(_)) {
        tell(&mut decided);
        let is_reported = matches!(decided.decision, GuardDecision::WouldRestore(_));
        let is_new = decided.record.said != known.said;
        decided.record.reported += u64::from(is_reported && is_new);
        problems.append(&mut first.unknown);
        // A watch names them once: no restore helps them.
        problems.extend(first.cut_off.into_iter().filter(|_| is_first));
        // Of a guard that is gone.
        let end = if is_first {
            watched::end
        } else {
            watched::end_if_over
        };
        let watched = end(&mut decided.record, &request.upgrade, &store);
        keep(&store, &known, &mut decided.record);
        return Ok(LookResult {
            problems,
            watched: Vec::from_iter(watched),
            ..decided.left()
        });
    }
    // Beside the wait for the lock and the look under it.
    let asked = RuntimeQuery::ask(&request.upgrade.runtimes);
    let mut looked = act::restore(request, &known, asked, context, tell)?;
    looked.problems.extend(problems);
    Ok(looked)
}

/// The record on disk. A damaged one is replaced.
fn load(store: &Store, problems: &mut Vec<Problem>) -> GuardRecord {
    store.load_guard().unwrap_or_else(|error| {
        problems.push(error.problem().demoted());
        GuardRecord::default()
    })
}
