//! Restores: observes, plans, applies, and observes again until nothing is missing or nothing more can be done.

mod announce;
mod apply;
pub(crate) mod compare;
mod conflict;
mod create_links;
mod detour;
mod devices;
#[cfg(feature = "engine")]
pub mod engine;
mod holders;
mod host;
pub(crate) mod inspect;
mod job;
mod look;
mod managed;
mod pods;
mod probe_targets;
pub(crate) mod request;
pub(crate) mod settle;
mod turns;
pub(crate) mod wait_nic;

use std::collections::BTreeSet;
use std::time::Duration;

use self::host::HostJob;
use self::job::Job;
use self::managed::Managed;
use self::turns::{Ground, Turns};
use self::wait_nic::WaitLimit;
use crate::context::Pending;
use crate::kernel::Error;
use crate::matching::host_baseline::HostBaseline;
use crate::model::problem::RestoreCause;
use crate::model::{ConflictProbe, IfName, NodeIdentity, PodSummary, Problem};
use crate::plan::Step;
use crate::progress::{Listener, Phase, Progress, Wait};
use crate::records::matched::Matched;
use crate::records::prepare::{SurveyRequest, prepare};
use crate::records::survey::{Surveyed, Unrestorable};
use crate::refusal::Refusal;
use crate::runtime;
use crate::side_by_side;
use crate::store::Store;

/// What a restore did, and what is left.
#[derive(Debug, Default)]
pub(crate) struct Restored {
    pub node: NodeIdentity,
    /// When the host's state was recorded (RFC 3339), where it was.
    pub recorded: Option<String>,
    /// Steps on the host, and its state after them. `None` where no pod has a usable record: then nothing was changed.
    pub host: Option<(Vec<Step>, RestoreState)>,
    /// Sorted by id.
    pub pods: Vec<RestoredPod>,
    pub problems: Vec<Problem>,
    /// Whether nothing was changed because no record may be used here.
    pub is_refused: bool,
    /// Whether nothing was missing after a restore before this one.
    pub was_complete: bool,
    /// Announcements that are still to be sent.
    pub pending: Pending,
}

/// What a restore did in one pod, and what is left.
#[derive(Debug)]
pub(crate) struct RestoredPod {
    pub pod: PodSummary,
    pub state: RestoreState,
    /// The links that it had. `None` for a pod that was not worked on.
    pub before: Option<Vec<IfName>>,
    /// The links that it has. `None` where they could not be read.
    pub after: Option<Vec<IfName>>,
    /// Steps that were carried out.
    pub done: Vec<Step>,
}

/// How a restore left a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoreState {
    /// Nothing was missing.
    InSync,
    /// Something was missing, and nothing is.
    Restored,
    /// Something was restored, and something is still missing.
    Partial,
    /// Nothing could be restored.
    Failed,
    /// It may have lost something, and no checkpoint describes it.
    NoCheckpoint,
}

impl RestoreState {
    /// Whether nothing is missing.
    pub(crate) fn is_good(self) -> bool {
        matches!(self, Self::InSync | Self::Restored)
    }

    /// The state where something was changed before.
    pub(crate) fn after(self, changed: bool) -> Self {
        match self {
            Self::InSync => Self::of(changed, true),
            other => other,
        }
    }

    fn of(changed: bool, is_complete: bool) -> Self {
        match (changed, is_complete) {
            (false, true) => Self::InSync,
            (true, true) => Self::Restored,
            (true, false) => Self::Partial,
            (false, false) => Self::Failed,
        }
    }
}

/// How long a restore may take for what it does not do itself, and how it probes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// For the NIC and its carrier.
    pub wait: Duration,
    /// For a network manager that owns a link.
    pub manager_grace: Duration,
    /// To watch whether anything is lost again.
    pub settle: Duration,
    /// For one pod, before the rest of its work waits for all others.
    pub pod_budget: Duration,
    /// How to probe an address before it is added.
    pub conflict_probe: ConflictProbe,
}

/// Restores under the lock: a snapshot must not record a network that is half restored.
pub(crate) fn run(
    request: &SurveyRequest,
    limits: Limits,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let _guard = store.exists().then(|| store.lock("restore")).transpose()?;
    let limit = WaitLimit::new(limits, None);
    let restored = restore(request, limit, store, progress)?;
    if limits.settle.is_zero() || restored.host.is_none() {
        return Ok(restored);
    }
    settle::settle(restored, (request, limits), store, progress)
}

/// So many losses let a restore, or the watch after it, begin anew: not those of a driver that resets without end.
const AGAIN: usize = 3;

/// Restores under a lock that is held already. Where the parents of the pods' links were lost again meanwhile, it begins
/// anew: a driver may reset twice.
pub(crate) fn restore(
    request: &SurveyRequest,
    limit: WaitLimit<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let (mut restored, mut parents) = once(request, limit, store, progress)?;
    let mut times = 0;
    while parents != Parents::Same && times < AGAIN {
        times += 1;
        let (again, now) = once(request, limit, store, progress)?;
        let problem = again.lost_again_after(&restored, parents == Parents::Lost);
        parents = now;
        restored = restored.then(again);
        restored.problems.extend(problem);
    }
    if parents != Parents::Same {
        let times = times + 1;
        let problem = RestoreCause::Unsettled { times }.error("host");
        restored.problems.push(problem);
    }
    Ok(restored)
}

/// The parents of the pods' links after a restore, compared with those that the pods were restored on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parents {
    Same,
    /// One more is there.
    More,
    /// One is gone, or another one of its name is in its place.
    Lost,
}

impl Parents {
    /// By their ifindexes.
    fn compare(before: &BTreeSet<u32>, now: &BTreeSet<u32>) -> Self {
        if !before.is_subset(now) {
            Self::Lost
        } else if before == now {
            Self::Same
        } else {
            Self::More
        }
    }
}

/// The same, once; and the parents of the pods' links after it.
fn once(
    request: &SurveyRequest,
    limit: WaitLimit<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<(Restored, Parents), Refusal> {
    let mut surveyed = prepare(request, store)?;
    let matched = std::mem::take(&mut surveyed.matched);
    let (mut host, mut pods, mut problems) = (None, Vec::new(), Vec::new());
    let (mut parents, mut pending) = (Parents::Same, Pending::default());
    if !matched.is_empty() {
        let work = carry_out(&mut surveyed, matched, limit, progress).map_err(|error| {
            let error = error.to_string();
            Refusal::failed(RestoreCause::HostFailed { error }.error("host"))
        })?;
        parents = work.parents;
        problems.extend(work.host.problems());
        problems.extend(work.notes);
        pending = work.pending;
        host = Some((work.host.done.clone(), work.host.state()));
        for (pod, left) in side_by_side::map(work.jobs, Job::finish) {
            pods.push(pod);
            problems.extend(left);
        }
    }
    let restored = Restored {
        pending,
        ..sum_up(surveyed, host, pods, problems, &request.runtimes)
    };
    Ok((restored, parents))
}

/// Adds the pods that were not worked on.
fn sum_up(
    mut surveyed: Surveyed,
    host: Option<(Vec<Step>, RestoreState)>,
    mut pods: Vec<RestoredPod>,
    problems: Vec<Problem>,
    runtimes: &runtime::RuntimeConfig,
) -> Restored {
    let is_refused = host.is_none() && surveyed.is_refused();
    let restored: Vec<_> = pods.iter().map(|one| &one.pod.info).collect();
    let notes = surveyed.learn_from_runtimes(&restored, runtimes);
    let mut all = surveyed.all_problems();
    all.extend(problems);
    all.extend(notes);
    pods.extend(
        surveyed
            .lost_pods()
            .into_iter()
            .map(|(pod, lost)| RestoredPod {
                pod,
                state: match lost {
                    Unrestorable::Unusable => RestoreState::Failed,
                    Unrestorable::NoCheckpoint => RestoreState::NoCheckpoint,
                },
                before: None,
                after: None,
                done: Vec::new(),
            }),
    );
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
    let recorded = surveyed.node_state.map(|recorded| recorded.created);
    Restored {
        node: surveyed.node,
        recorded,
        host,
        pods,
        problems: all,
        is_refused,
        was_complete: false,
        pending: Pending::default(),
    }
}

/// The work on the host and in the pods.
struct Work {
    host: HostJob,
    jobs: Vec<Job>,
    notes: Vec<Problem>,
    pending: Pending,
    parents: Parents,
}

/// The order of a restore.
fn carry_out(
    surveyed: &mut Surveyed,
    matched: Vec<Matched>,
    limit: WaitLimit<'_>,
    progress: &mut dyn Listener,
) -> Result<Work, Error> {
    let Surveyed { host, baseline, .. } = surveyed;
    let mut host_job = HostJob::default();
    host_job.keep_bond_macs(host, baseline)?;
    progress.notice(waiting(Wait::Device, limit, baseline));
    let mut managed = Managed::begin(limit);
    let mut jobs: Vec<Job> = matched.into_iter().map(Job::new).collect();
    let inside = devices::lost(&mut jobs, host);
    let mut notes = wait_nic::for_devices(host, baseline, &inside, limit)?;
    progress.notice(Progress::Phase(Phase::RestoringHost, 1));
    let links = host_job.restore(host, baseline, &mut managed, progress)?;
    let parents = host::parents(host, baseline);
    let mut ground = Ground {
        job: &mut host_job,
        host,
        baseline,
        managed: &mut managed,
        links: &links,
    };
    let Turns {
        mut jobs,
        notes: found,
        pending,
    } = turns::restore(jobs, &mut ground, limit, progress)?;
    notes.extend(found);
    host_job.restore_again(host, baseline, &mut managed, progress)?;
    notes.extend(managed.findings(&host_job.done));
    pods::find_mac_owners(&mut jobs, host);
    Ok(Work {
        parents: Parents::compare(&parents, &host::parents(host, baseline)),
        host: host_job,
        jobs,
        notes,
        pending,
    })
}

/// What it waits for on the devices under the pods.
fn waiting(wait: Wait, limit: WaitLimit<'_>, baseline: &HostBaseline) -> Progress {
    let devices = baseline.devices.iter().cloned().collect();
    Progress::Waiting(wait, devices, limit.limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_of_another_index_was_lost_and_one_that_came_was_not() {
        let [none, old, new, both] = [&[][..], &[5], &[7], &[5, 7]]
            .map(|indexes: &[u32]| indexes.iter().copied().collect::<BTreeSet<_>>());
        assert_eq!(Parents::compare(&old, &old), Parents::Same);
        assert_eq!(Parents::compare(&none, &new), Parents::More);
        assert_eq!(Parents::compare(&old, &both), Parents::More);
        assert_eq!(Parents::compare(&old, &new), Parents::Lost);
        assert_eq!(Parents::compare(&both, &new), Parents::Lost);
    }
}
