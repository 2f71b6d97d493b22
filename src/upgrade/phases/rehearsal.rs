//! The rehearsal: every pod at risk is built a second time from the checkpoint that the snapshot is about to write.

use std::path::Path;

use crate::clock;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::model::net::nic;
use crate::model::window::PhaseName;
use crate::model::{Problem, Rehearsal};
use crate::plan::DaemonState;
use crate::progress::{Progress, Stage};
use crate::records::contest::{self, CNI_CACHE};
use crate::records::fallback::FallbackRequest;
use crate::records::survey::{Records, SourceContents, survey_from};
use crate::refusal::Refusal;
use crate::rehearsal::{self, Rehearsed, Weights};
use crate::restore::answering;
use crate::situation::{Depth, Situation};
use crate::snapshot::Captured;
use crate::store::Store;
use crate::upgrade::baseline::LeftOut;
use crate::upgrade::request::UpgradeRequest;

/// Rehearses the restore that follows COMMAND. Where that cannot be done, the window continues without figures, and a warning has the
/// reason.
pub(crate) fn run(
    captured: &Captured,
    left_out: &LeftOut,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> (Option<Rehearsal>, Vec<Problem>) {
    let mut rehearsed = rehearse(captured, left_out, request, context);
    let differs = |one: &Rehearsed| one.problems.iter().any(Problem::is_error);
    if rehearsed.as_ref().is_ok_and(differs) {
        // A pod that has changed in this moment is known to have changed in the next one.
        rehearsed = rehearse(captured, left_out, request, context);
    }
    match rehearsed {
        Ok(rehearsed) => {
            let (mode, rate) = (request.conflict_probe, request.probe_rate);
            let probe = answering::expected_wait(captured.whole(), captured.node(), mode, rate);
            let figures = Rehearsal {
                probe_ms: clock::milliseconds(probe),
                reload_ms: known_reload(request.command, &context.store),
                ..rehearsed.figures()
            };
            (Some(figures), rehearsed.problems)
        }
        Err(Refusal { problems, .. }) => {
            let problems = problems.into_iter().map(Problem::demoted);
            (None, problems.collect())
        }
    }
}

fn rehearse(
    captured: &Captured,
    left_out: &LeftOut,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Rehearsed, Refusal> {
    let selection = &request.selection;
    let inventory = Inventory::open(selection)?;
    let (stored, node) = captured.records();
    let contents = SourceContents {
        records: Records::Stored(stored),
        node,
        problems: Vec::new(),
    };
    let sources = contest::Sources {
        store: &context.store,
        cni_cache: Path::new(CNI_CACHE),
    };
    let fallback = FallbackRequest::NONE;
    let mut surveyed = survey_from(inventory, contents, None, selection, sources, fallback)?;
    // As the restore of the window does.
    surveyed.baseline.daemons = DaemonState::Restore;
    for one in &mut surveyed.matched {
        one.daemons = DaemonState::Restore;
    }
    let stage = Progress::Phase(Stage::Rehearsing, surveyed.matched.len());
    context.progress.notice(stage);
    let Situation {
        mut surveyed,
        compared,
    } = Situation::of(surveyed, Depth::Creation)?;
    let mut weights = Weights::new(&compared.host, &surveyed.matched, &compared.pods);
    weights.leave_out(|id| left_out.has(id));
    surveyed
        .unmatched
        .retain(|one| !left_out.has(&one.pod.info.id));
    Ok(rehearsal::rehearse(&mut surveyed, &weights)?)
}

/// How long the network was away in the newest window with this command in which that is known: from the first loss of a pod until
/// COMMAND had ended.
fn known_reload(command: &[String], store: &Store) -> Option<u64> {
    /// So many windows are read.
    const MOST: usize = 20;
    let ids = store.windows().ok()?;
    ids.iter().rev().take(MOST).find_map(|id| {
        let window = store.load_window(id).ok()??;
        window.run.as_ref().filter(|run| run.argv == command)?;
        let is_back = nic::absent(window.nics.as_deref()).is_empty();
        is_back.then_some(())?;
        let mut phases = window.phases.iter();
        let ended = phases.find(|phase| phase.name == PhaseName::Command)?.to?;
        let lost = window.pods.iter().filter_map(|pod| pod.lost).min()?;
        ended.checked_sub(lost)
    })
}
