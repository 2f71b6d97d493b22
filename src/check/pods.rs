//! What a check finds of each running pod.

use std::time::Duration;

use super::facts::{CheckState, CheckedPod, NO_CHECKPOINT};
use crate::model::pod::past::PastFiles;
use crate::model::problem::{CheckCause, Object};
use crate::model::{Loss, NodeState, PodId, PodSummary, Problem, Severity};
use crate::plan::{Plan, PodVerdict, snapshot_quality};
use crate::records::matched::{Matched, RecordOrigin};
use crate::records::rejected::{Reason, Rejected};
use crate::records::stored::age;
use crate::records::survey::{Finding, Surveyed, Unmatched};
use crate::situation::Compared;

/// Collects the findings, one for each running pod that has or needs a checkpoint.
#[derive(Default)]
pub(super) struct PodChecks<'a> {
    pub max_age: Duration,
    pub max_new: Duration,
    /// Knows when a snapshot last found each checkpoint true.
    pub recorded: Option<&'a NodeState>,
    /// Whether neither the host nor a pod with a checkpoint has lost anything.
    pub is_calm: bool,
    /// The generations, newest first, where a pod has lost something.
    pub past: &'a [PastFiles],
    /// Whether a pod may be being created.
    pub has_new: bool,
    pub pods: Vec<CheckedPod>,
    pub problems: Vec<Problem>,
    pub oldest_age: Option<u64>,
}

impl PodChecks<'_> {
    /// Checks all pods, and sorts them by id; returns the number of those that need no checkpoint.
    pub(super) fn survey(&mut self, surveyed: &Surveyed, compared: Vec<Compared>) -> usize {
        for one in &surveyed.rejected {
            self.rejected(one);
        }
        for one in &surveyed.unmatched {
            self.unmatched(one, surveyed);
        }
        for info in &surveyed.damaged {
            let mut running = surveyed.unmatched.iter();
            let running = running.find(|one| one.pod.info.id == info.id);
            if let Some(running) = running.filter(|_| !self.has(&info.id)) {
                // The problem is reported where the checkpoint was read.
                self.pods.push(CheckedPod {
                    lost: running.is_bare().then_some(NO_CHECKPOINT),
                    ..CheckedPod::new(PodSummary::bare(info, None), CheckState::Failed)
                });
            }
        }
        for (matched, compared) in surveyed.matched.iter().zip(compared) {
            self.matched(matched, compared);
        }
        self.pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
        let unmatched = surveyed.unmatched.iter();
        unmatched
            .filter(|one| one.finding != Finding::Private && !self.has(&one.pod.info.id))
            .count()
    }

    fn has(&self, id: &PodId) -> bool {
        self.pods.iter().any(|one| one.pod.info.id == *id)
    }

    fn report(&mut self, pod: &PodId, problems: Vec<Problem>) {
        let problems = problems.into_iter();
        self.problems
            .extend(problems.map(|problem| problem.of(pod)));
    }

    /// A checkpoint without a pod is normal between two snapshots.
    fn rejected(&mut self, rejected: &Rejected) {
        let mut problems = rejected.problems();
        for problem in &mut problems {
            problem.severity = Severity::Info;
        }
        self.problems.extend(problems);
    }

    /// A running pod without a checkpoint.
    fn unmatched(&mut self, unmatched: &Unmatched, surveyed: &Surveyed) {
        if unmatched.finding == Finding::Private {
            return;
        }
        let pod = &unmatched.pod;
        let mut problems = snapshot_quality::unsupported_in_pod(&unmatched.state);
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        let mut checked = CheckedPod::new(summary, CheckState::NoCheckpoint);
        problems.extend(match &unmatched.finding {
            Finding::Private | Finding::Nothing => return self.report(&pod.info.id, problems),
            Finding::Bare if self.may_be_unfinished() && unmatched.evidence.is_none() => {
                self.has_new = true;
                unmatched.problem().map(Problem::demoted)
            }
            Finding::Bare => {
                checked.lost = Some(NO_CHECKPOINT);
                unmatched.problem()
            }
            Finding::CutOff(_) => {
                checked.state = CheckState::CutOff;
                unmatched.problem()
            }
            Finding::HasInterfaces if self.is_new(unmatched, surveyed) => {
                checked.state = CheckState::New;
                None
            }
            Finding::HasInterfaces => {
                let path = pod.netns.shown();
                Some(CheckCause::NoCheckpoint.warning(path))
            }
        });
        self.report(&pod.info.id, problems);
        self.pods.push(checked);
    }

    /// Whether the last snapshot of all pods is so young that what it does not have may be newer.
    fn is_snapshot_young(&self) -> bool {
        let complete = self.recorded.and_then(NodeState::completed);
        let age = complete.map(|complete| Duration::from_secs(age(&complete).into()));
        age.is_some_and(|age| age < self.max_new)
    }

    /// Whether a pod with interfaces was created after the last snapshot, and will be in the next one: no snapshot had it, but
    /// perhaps a former pod of its name.
    fn is_new(&self, unmatched: &Unmatched, surveyed: &Surveyed) -> bool {
        let id = &unmatched.pod.info.id;
        let was_seen = self.recorded.is_some_and(|node| node.seen(id).is_some());
        let was_another = surveyed.rejected.iter().any(|one| {
            let is_of_another =
                matches!(one.reason, Reason::PodReplaced(_) | Reason::NetnsReplaced);
            one.pod.info.id == *id && is_of_another
        });
        self.is_snapshot_young() && unmatched.has_interfaces() && (!was_seen || was_another)
    }

    /// Whether a namespace that no snapshot knows is a new one, which has no interface yet: the last snapshot was of all pods,
    /// and nothing has been lost since.
    fn may_be_unfinished(&self) -> bool {
        let complete = self
            .recorded
            .and_then(|recorded| recorded.complete.as_ref());
        self.is_calm && complete.is_some()
    }

    /// A running pod with a checkpoint: is it fresh, and does the pod have what it describes?
    fn matched(&mut self, matched: &Matched, compared: Compared) {
        let mut problems = Vec::new();
        let mut checked = CheckedPod::new(matched.summary(), CheckState::InSync);
        let age = self.age(matched);
        self.oldest_age = self.oldest_age.max(age);
        let age = age.map(Duration::from_secs);
        let is_young = age.map_or_else(|| self.is_snapshot_young(), |age| age < self.max_new);
        if let Some(age) = age.filter(|age| *age > self.max_age) {
            checked.state = CheckState::Stale;
            problems.push(CheckCause::Stale { age }.warning("checkpoint"));
        }
        if matched.partial.is_some() && matched.origin != RecordOrigin::CniCache {
            problems.push(CheckCause::OriginFormat.warning("checkpoint"));
        }
        let Compared {
            verdict,
            plan,
            unsupported,
            drivers: _,
            sockets: _,
        } = compared;
        checked.steps = plan.lines();
        problems.extend(unsupported);
        match verdict {
            PodVerdict::Unknown(problem) => {
                checked.state = CheckState::Failed;
                problems.push(problem);
            }
            PodVerdict::Lost(Loss { link, what }) => {
                checked.state = CheckState::Degraded;
                checked.lost = Some(what.word());
                let generation = self.generation(matched);
                problems.push(CheckCause::Lost { what, generation }.error(link));
            }
            PodVerdict::Drifted => {
                checked.state = CheckState::Drifted;
                problems.extend(of_drift(plan, is_young, &matched.info.id));
            }
            PodVerdict::CutOff { what, .. } => {
                checked.state = CheckState::CutOff;
                problems.push(what.problem());
                problems.extend(of_drift(plan, is_young, &matched.info.id));
            }
            PodVerdict::InSync => problems.extend(of_plan(plan, is_young)),
        }
        self.report(&matched.info.id, problems);
        self.pods.push(checked);
    }

    /// The newest generation that has the pod's checkpoint.
    fn generation(&self, matched: &Matched) -> Option<u64> {
        let created = &matched.checkpoint.netfix.as_ref()?.created;
        PastFiles::newest_with(self.past, &matched.info.id, created)
    }

    /// Seconds since a snapshot last found the checkpoint true; `None` for a file without a time.
    fn age(&self, matched: &Matched) -> Option<u64> {
        let written = matched.checkpoint.netfix.as_ref()?.stamp();
        let seen = self.recorded.and_then(|node| node.seen(&matched.info.id));
        let times = seen.iter().chain([&written]);
        times.map(age).min().map(u64::from)
    }
}

/// The problems of a plan, and what a restore would change.
fn of_drift(plan: Plan, is_young: bool, pod: &PodId) -> Vec<Problem> {
    let drift = drift(plan.steps.iter().chain(&plan.later), Some(pod));
    let mut problems = of_plan(plan, is_young);
    problems.extend(drift);
    problems
}

/// The problems of a plan, with one for all objects that are in no checkpoint and are lost with a NIC: a note while the checkpoint
/// is young, and a warning where a snapshot is overdue.
fn of_plan(plan: Plan, is_young: bool) -> Vec<Problem> {
    let (mut problems, unrecorded) = (plan.problems, plan.unrecorded);
    let mut counted = unrecorded.iter().peekable();
    problems.retain(|problem| counted.next_if_eq(&problem).is_none());
    problems.extend(unrecorded.first().map(|first| {
        let more = unrecorded.len() - 1;
        let cause = CheckCause::Unrecorded { more };
        let object = first.object.to_string();
        if is_young {
            cause.info(object)
        } else {
            cause.warning(object)
        }
    }));
    problems
}

/// One problem for all steps that a restore would take in a pod, or on the host.
pub(crate) fn drift<T: Into<Object>>(
    mut steps: impl Iterator<Item = T>,
    pod: Option<&PodId>,
) -> Option<Problem> {
    let first = steps.next()?;
    let cause = CheckCause::Drift {
        more: steps.count(),
        pod: pod.cloned(),
    };
    Some(cause.warning(first))
}
