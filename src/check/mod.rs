//! Could every running pod be restored now? Changes nothing.

mod facts;
mod node;
mod pods;

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

pub(crate) use self::facts::{CheckState, CheckedPod, NO_CHECKPOINT, Readiness, lost_words};
pub(crate) use self::pods::drift;
use crate::inventory::sockets::connections::Translated;
use crate::inventory::sockets::named::IndexLook;
use crate::inventory::sockets::{self, Suspects};
use crate::inventory::{Inventory, functions, nics, no_match};
use crate::kernel::events::LATE_LINKWATCH;
use crate::matching::Selection;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::{IfName, LinkGraph, PodId, PodInfo, Problem};
use crate::plan::{IndexMode, Plan, PodVerdict};
use crate::progress::{Listener, Progress, Stage};
use crate::records::fallback::FallbackRequest;
use crate::records::prepare::kept_indexes;
use crate::records::stored::{last_success, load_in_part, shown};
use crate::records::survey::{Surveyed, survey};
use crate::refusal::Refusal;
use crate::rehearsal::{self, Weights};
use crate::runtime;
use crate::situation::{Compared, Depth, Situation, host_loss};
use crate::snapshot::SECOND_LOOK;
use crate::store::Store;

/// What to check.
pub(crate) struct Check<'a> {
    pub selection: &'a Selection,
    pub runtimes: &'a runtime::RuntimeConfig,
    /// How old a checkpoint may be.
    pub max_age: Duration,
    /// How long after the last snapshot of all pods a pod, or a part of one, may have no checkpoint.
    pub max_new: Duration,
    /// The devices of the host that may be lost; none: those under the pods.
    pub devices: &'a [IfName],
    /// Whether the restore is rehearsed.
    pub rehearse: bool,
    /// What a restore will do with the ifindexes of NICs.
    pub index: IndexMode,
}

/// Checks, and once more where a finding may be gone a moment later: a pod that is being deleted loses its interfaces
/// first, one that is being created gets them later, and the kernel declares a link operational up to a second after it
/// got carrier.
pub(crate) fn run(
    check: &Check<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Readiness, Refusal> {
    // A silent runtime is a finding: the kernel knows the running pods without it.
    let open = |_: &mut dyn Listener| {
        let mut inventory = Inventory::open(check.selection)?;
        if let Err(refusal) = inventory.attribute(check.runtimes, check.selection) {
            inventory.problems.extend(refusal.problems);
        }
        Ok(inventory)
    };
    run_with(check, store, progress, open)
}

/// Checks what `look` finds, and once more where a finding may be gone a moment later: each time it observes the machine anew.
pub(crate) fn run_with(
    check: &Check<'_>,
    store: &Store,
    progress: &mut dyn Listener,
    mut look: impl FnMut(&mut dyn Listener) -> Result<Inventory, Refusal>,
) -> Result<Readiness, Refusal> {
    let begin = Instant::now();
    let mut is_second = false;
    loop {
        let inventory = look(progress)?;
        let Examined {
            mut checked,
            passing,
            mut surveyed,
            weights,
        } = examine(check, inventory, store, progress)?;
        let may_pass = match passing {
            Passing::Surely => begin.elapsed() < LATE_LINKWATCH,
            Passing::Perhaps => !is_second,
            Passing::No => !is_second && checked.has_degraded(),
        };
        if !may_pass {
            if check.rehearse {
                checked.problems.extend(translated(&surveyed).problems());
                let count = surveyed.matched.len();
                progress.notice(Progress::Phase(Stage::Rehearsing, count));
                match rehearsal::rehearse(&mut surveyed, &weights) {
                    Ok(mut rehearsed) => {
                        checked.problems.append(&mut rehearsed.problems);
                        checked.rehearsed = Some(rehearsed);
                    }
                    Err(problem) => checked.problems.push(problem),
                }
            }
            return Ok(checked);
        }
        is_second = passing != Passing::Surely;
        thread::sleep(SECOND_LOOK);
    }
}

/// Whether what a check found may be gone a moment later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passing {
    No,
    /// A link lacks carrier, or a pod may be being created.
    Perhaps,
    /// The kernel has not declared a link operational yet that has carrier.
    Surely,
}

impl Passing {
    fn of(is_coming: bool, may_come: bool) -> Self {
        match (is_coming, may_come) {
            (true, _) => Self::Surely,
            (false, true) => Self::Perhaps,
            (false, false) => Self::No,
        }
    }
}

/// What one check found, and what a rehearsal starts from.
struct Examined {
    checked: Readiness,
    passing: Passing,
    surveyed: Surveyed,
    weights: Weights,
}

/// One check.
fn examine(
    check: &Check<'_>,
    inventory: Inventory,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Examined, Refusal> {
    let (surveyed, mut problems) = survey_all(check, inventory, store)?;
    progress.notice(Progress::Phase(Stage::Comparing, surveyed.matched.len()));
    let seen = Situation::of(surveyed, Depth::Creation)?.confirmed();
    let (mut surveyed, compared) = (seen.surveyed, seen.compared);
    let (host, links, mut pods) = (compared.host, compared.links, compared.pods);
    let left_out = leave_out(&mut surveyed, &mut pods, check.devices, &mut problems);
    problems.extend(compared.unsupported);
    let weights = Weights::new(&host, &surveyed.matched, &pods);
    let host_lines = host.lines();
    let is_lost = |one: &Compared| matches!(one.verdict, PodVerdict::Lost(_));
    let has_lost_pod = pods.iter().any(is_lost);
    let is_calm = host_lines.is_empty() && !has_lost_pod;
    problems.extend(node::guard(store, is_calm));
    let (past, host_loss) = node::held(host_loss(&surveyed), has_lost_pod, &surveyed, store);
    problems.extend(of_host(host, host_loss));
    let (without_carrier, is_coming) = node::carrier(&mut surveyed, &links);
    let lacks_carrier = !without_carrier.is_empty();
    problems.extend(without_carrier);
    problems.extend(of_sockets(&surveyed, &mut pods, check.index));
    let mut found = pods::PodChecks {
        max_age: check.max_age,
        max_new: check.max_new,
        recorded: surveyed.node_state.as_ref(),
        is_calm,
        past: &past,
        ..pods::PodChecks::default()
    };
    problems.append(&mut surveyed.contested);
    let empty = found.survey(&surveyed, pods);
    if found.pods.is_empty() && surveyed.unmatched.is_empty() {
        found.problems.extend(no_match(check.selection));
    }
    problems.append(&mut found.problems);
    let passing = Passing::of(is_coming, lacks_carrier || found.has_new);
    let (pods, oldest_age) = (found.pods, found.oldest_age);
    let checked = Readiness {
        node: surveyed.node.clone(),
        recorded: found.recorded.map(|recorded| shown(&recorded.stamp())),
        host: host_lines,
        pods,
        empty,
        left_out,
        oldest_age,
        last_success: last_success(found.recorded),
        rehearsed: None,
        problems,
    };
    Ok(Examined {
        checked,
        passing,
        surveyed,
        weights,
    })
}

/// The pods beside their records, and the problems of that and of the node.
fn survey_all(
    check: &Check<'_>,
    inventory: Inventory,
    store: &Store,
) -> Result<(Surveyed, Vec<Problem>), Refusal> {
    let stored = load_in_part(store, check.selection)?;
    let mut problems = node::folder(store);
    let fallback = FallbackRequest::ALL;
    let mut surveyed = survey(inventory, stored, check.selection, store, fallback)?;
    surveyed.baseline.kept_indexes = kept_indexes(check.index, &mut surveyed);
    surveyed.read_unmatched();
    if check.rehearse {
        surveyed.keep_matched();
    }
    problems.append(&mut surveyed.problems);
    problems.extend(of_node(check, &surveyed));
    Ok((surveyed, problems))
}

/// Removes the running pods that the loss of these devices would not affect, and returns them; their problems, too. One
/// that cannot be read or has lost a link stays in.
fn leave_out(
    surveyed: &mut Surveyed,
    compared: &mut Vec<Compared>,
    devices: &[IfName],
    problems: &mut Vec<Problem>,
) -> Vec<PodInfo> {
    let host = &LinkGraph::new(&surveyed.host.state.links);
    let mut pods = Vec::new();
    for (matched, compared) in surveyed.matched.iter().zip(compared.iter_mut()) {
        match compared.verdict {
            PodVerdict::Lost(_) | PodVerdict::Unknown(_) => {}
            PodVerdict::InSync | PodVerdict::Drifted | PodVerdict::CutOff { .. } => {
                pods.push((&matched.info.id, std::mem::take(&mut compared.drivers)));
            }
        }
    }
    for one in &surveyed.unmatched {
        pods.push((&one.pod.info.id, PodDrivers::of(&one.state, host)));
    }
    let left_out = at_risk::left_out(&pods, devices, host).unwrap_or_else(|problem| {
        problems.push(problem);
        BTreeSet::new()
    });
    let of_records = surveyed.matched.iter().map(|one| &one.info);
    let others = surveyed.unmatched.iter().map(|one| &one.pod.info);
    let all = of_records.chain(others);
    let named = all.filter(|info| left_out.contains(&info.id)).cloned();
    let named = named.collect();
    let stays = |id: &PodId| !left_out.contains(id);
    let both = surveyed.matched.drain(..).zip(compared.drain(..));
    (surveyed.matched, *compared) = both.filter(|(one, _)| stays(&one.info.id)).unzip();
    surveyed.unmatched.retain(|one| stays(&one.pod.info.id));
    problems.retain(|problem| problem.pod.as_ref().is_none_or(stays));
    named
}

/// What programs of the host and of the pods have on links that can be lost, and what they lost and still count on.
fn of_sockets(surveyed: &Surveyed, compared: &mut [Compared], mode: IndexMode) -> Vec<Problem> {
    let (host, recorded) = (&surveyed.host, surveyed.node_state.as_ref());
    let at_risk = host.state.host_sockets_at_risk(&surveyed.baseline.devices);
    let gone = recorded.map(|recorded| recorded.state.sockets_gone(&host.state));
    let of_host = Suspects::of_host(host, at_risk, gone.unwrap_or_default());
    let of_pods = compared.iter_mut().filter_map(|one| one.sockets.take());
    let all: Vec<_> = of_pods.chain([of_host]).collect();
    let found = sockets::find(&all).into_iter();
    let found = found.flat_map(|one| one.problems);
    let indexes = IndexLook::with_risk(&host.state, recorded, &surveyed.baseline.devices);
    found
        .chain(indexes.named(mode))
        .chain(indexes.dead())
        .chain(nics::at_risk(&host.state))
        .chain(functions::operator(&host.state))
        .collect()
}

/// The connections that end with links.
fn translated(surveyed: &Surveyed) -> Translated {
    let matched = surveyed.matched.iter().map(|one| &one.pod);
    let matched = matched.filter_map(|pod| Some((pod, pod.kept()?)));
    let others = surveyed.unmatched.iter().map(|one| (&one.pod, &one.state));
    let devices = &surveyed.baseline.devices;
    Translated::read(&surveyed.host.state, devices, matched.chain(others))
}

/// What a restore needs besides the pods' checkpoints.
fn of_node(check: &Check<'_>, surveyed: &Surveyed) -> Vec<Problem> {
    let mut problems = node::abilities(surveyed);
    // A part of the pods is judged by their own checkpoints alone.
    if check.selection.is_everything() {
        let recorded = surveyed.node_state.as_ref();
        problems.extend(node::last_snapshot(recorded, check.max_age));
    }
    problems
}

/// What the host has lost, or else what a restore would change on it, and what it could not.
fn of_host(plan: Plan, lost: Option<Problem>) -> Vec<Problem> {
    let Plan {
        steps,
        later,
        left: _,
        mut problems,
        awaits_router: _,
        is_unsettled: _,
        missing: _,
        unrecorded: _,
    } = plan;
    problems.extend(lost.or_else(|| drift(steps.iter().chain(&later), None)));
    problems
}
