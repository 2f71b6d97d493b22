//! What a look observes: the host and the pods beside the last snapshot, the open window and a hold.

use std::time::Duration;

use crate::clock;
use crate::guard::facts;
use crate::guard::request::GuardRequest;
use crate::guard::sight::{HoldSight, Sight, WindowSight};
use crate::inventory::node;
use crate::kubelet::resume::finish_abandoned;
use crate::model::problem::{Cause, InventoryCause, StoreCause};
use crate::model::{LinkGraph, Problem, Window};
use crate::plan::PodVerdict;
use crate::records::prepare::SurveyRequest;
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::situation::{Depth, Situation, guard_now, lost_of_host};
use crate::store::{Store, StoreError};
use crate::upgrade::ledger::GUARD;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::observed::is_deserted;
use crate::window::records::is_owner_alive;
use crate::window::session::WindowSession;

/// How long another netfix is waited for: a window of hours has the lock for hours.
pub(super) const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// What was observed.
pub(super) struct GuardObservation {
    /// Why pods could not be observed, or records not be read.
    pub unknown: Vec<Problem>,
    /// The pods that are cut off and have no good record.
    pub cut_off: Vec<Problem>,
    pub sight: Sight,
    pub surveyed: Surveyed,
}

/// A sight of nothing, at this moment: all that there is without a checkpoint.
pub(super) fn empty_sight() -> Sight {
    Sight {
        now: clock::boottime(),
        boot: node::node_identity().boot_id,
        ..Sight::default()
    }
}

pub(super) fn observe(request: &GuardRequest, store: &Store) -> Result<GuardObservation, Refusal> {
    let (selection, runtimes) = (&request.upgrade.selection, &request.upgrade.runtimes);
    let wanted = SurveyRequest {
        nic: request.upgrade.nic,
        index: request.upgrade.index,
        ..SurveyRequest::new(selection.clone(), runtimes.clone())
    };
    let Situation { surveyed, compared } = Situation::look(&wanted, store, Depth::Loss)?;
    let unread = surveyed.problems.iter().filter(|one| is_unread(one));
    let mut unknown: Vec<Problem> = unread.cloned().collect();
    let recorded = surveyed.node_state.as_ref();
    let graph = LinkGraph::new(&surveyed.baseline.state.links);
    let has_pods = !(surveyed.matched.is_empty() && surveyed.unmatched.is_empty());
    let sight = Sight {
        snapshot: recorded.map(|recorded| recorded.created.clone()),
        window: open_window(store)?,
        hold: hold(store),
        is_unread: !unknown.is_empty(),
        links: facts::links(&surveyed, &graph, &compared),
        pods: facts::pods(&surveyed, &graph, &compared),
        damaged: facts::damaged(&surveyed),
        host: lost_of_host(&surveyed).filter(|_| !surveyed.is_selection),
        host_on: facts::host_on(&surveyed, &graph),
        no_match: (!(selection.is_everything() || has_pods)).then(|| selection.to_string()),
        ..empty_sight()
    };
    let mut cut_off: Vec<Problem> = surveyed.cut_off().collect();
    for (matched, pod) in surveyed.matched.iter().zip(&compared.pods) {
        match &pod.verdict {
            PodVerdict::Unknown(problem) => unknown.push(problem.clone()),
            PodVerdict::CutOff { what, .. } => {
                cut_off.push(what.problem().of(&matched.info.id));
            }
            PodVerdict::InSync | PodVerdict::Drifted | PodVerdict::Lost(_) => {}
        }
    }
    Ok(GuardObservation {
        unknown,
        cut_off,
        sight,
        surveyed,
    })
}

/// Whether a record could not be read or a namespace not be entered, which another look may do. A corrupt record stays so: `check`
/// reports it.
fn is_unread(problem: &Problem) -> bool {
    match &*problem.cause {
        Cause::Store(cause) => matches!(cause, StoreCause::CannotRead { .. }),
        Cause::Inventory(cause) => matches!(
            cause,
            InventoryCause::CannotObserve { .. }
                | InventoryCause::CannotOpenNetns { .. }
                | InventoryCause::CannotEnterNetns { .. }
        ),
        _ => false,
    }
}

/// A damaged file keeps nobody still.
fn hold(store: &Store) -> Option<HoldSight> {
    let (hold, left) = guard_now::hold(store).ok().flatten()?;
    Some(HoldSight {
        until: hold.until,
        left: clock::milliseconds(left),
    })
}

/// Closes a window in which nobody is at work any more: what it left is restored like any other loss.
pub(super) fn close_deserted(store: &Store) -> Result<Vec<Problem>, Refusal> {
    let is_left = |window: &Window| !window.is_unplanned() && is_deserted(window);
    let deserted = || Ok::<_, StoreError>(store.open_window()?.filter(is_left));
    if hold(store).is_some() || deserted()?.is_none() {
        return Ok(Vec::new());
    }
    let guard = store.clone().patient(FOREVER, |_| {}).lock("guard")?;
    let closed = deserted()?.map(|window| {
        let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
        finish_abandoned(session, GUARD)
    });
    Ok(closed.unwrap_or_default())
}

fn open_window(store: &Store) -> Result<Option<WindowSight>, Refusal> {
    let open = store.open_window()?;
    Ok(open.map(|window| {
        if window.is_unplanned() && !is_owner_alive(&window) {
            WindowSight::Unfinished
        } else {
            WindowSight::Of(window.command)
        }
    }))
}
