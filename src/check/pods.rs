//! What a check finds of each running pod.

use std::time::Duration;

use super::{CheckState, CheckedPod};
use crate::model::problem::{CheckCause, Object};
use crate::model::{Loss, NodeState, PodId, PodSummary, Problem, Severity};
use crate::plan::{PodVerdict, snapshot_quality};
use crate::records::matched::Matched;
use crate::records::rejected::Rejected;
use crate::records::stored::age;
use crate::records::survey::{Finding, Surveyed, Unmatched};
use crate::restore::compare::Compared;

/// Collects the findings, one for each running pod that has or needs a checkpoint.
#[derive(Default)]
pub(super) struct PodChecks<'a> {
    pub max_age: Duration,
    /// Knows when a snapshot last found each checkpoint true.
    pub recorded: Option<&'a NodeState>,
    /// Whether neither the host nor a pod with a checkpoint has lost anything.
    pub is_calm: bool,
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
            self.unmatched(one);
        }
        for info in &surveyed.damaged {
            let runs = surveyed
                .unmatched
                .iter()
                .any(|one| one.pod.info.id == info.id);
            if runs && !self.has(&info.id) {
                // The problem is reported where the checkpoint was read.
                let pod = PodSummary::bare(info, None);
                self.add(pod, CheckState::Failed, Vec::new(), Vec::new());
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

    fn add(
        &mut self,
        pod: PodSummary,
        state: CheckState,
        steps: Vec<String>,
        problems: Vec<Problem>,
    ) {
        self.report(&pod.info.id, problems);
        self.pods.push(CheckedPod { pod, state, steps });
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
    fn unmatched(&mut self, unmatched: &Unmatched) {
        if unmatched.finding == Finding::Private {
            return;
        }
        let pod = &unmatched.pod;
        let mut problems = snapshot_quality::unsupported_in_pod(&unmatched.state);
        problems.extend(match unmatched.finding {
            Finding::Private | Finding::Nothing => return self.report(&pod.info.id, problems),
            Finding::Bare if self.is_new() => {
                self.has_new = true;
                unmatched.problem().map(Problem::demoted)
            }
            Finding::Bare => unmatched.problem(),
            Finding::HasInterfaces => {
                let path = pod.netns.shown();
                Some(CheckCause::NoCheckpoint.warning(path))
            }
        });
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        self.add(summary, CheckState::NoCheckpoint, Vec::new(), problems);
    }

    /// Whether a namespace that no snapshot knows is a new one, which has no interface yet: the last snapshot was of all pods,
    /// and nothing has been lost since.
    fn is_new(&self) -> bool {
        let complete = self
            .recorded
            .and_then(|recorded| recorded.complete.as_ref());
        self.is_calm && complete.is_some()
    }

    /// A running pod with a checkpoint: is it fresh, and does the pod have what it describes?
    fn matched(&mut self, matched: &Matched, compared: Compared) {
        let mut problems = Vec::new();
        let mut state = CheckState::InSync;
        let age = self.age(matched);
        self.oldest_age = self.oldest_age.max(age);
        let age = age.map(Duration::from_secs);
        if let Some(age) = age.filter(|age| *age > self.max_age) {
            state = CheckState::Stale;
            problems.push(CheckCause::Stale { age }.warning("checkpoint"));
        }
        if matched.partial.is_some() {
            problems.push(CheckCause::OriginFormat.warning("checkpoint"));
        }
        let Compared {
            verdict,
            plan,
            unsupported,
            drivers: _,
        } = compared;
        let lines = plan.lines();
        problems.extend(unsupported);
        match verdict {
            PodVerdict::Unknown(problem) => {
                state = CheckState::Failed;
                problems.push(problem);
            }
            PodVerdict::Lost(Loss { link, what }) => {
                state = CheckState::Degraded;
                let generation = None;
                problems.push(CheckCause::Lost { what, generation }.error(link));
            }
            PodVerdict::Drifted => {
                state = CheckState::Drifted;
                let steps = plan.steps.iter().chain(&plan.later);
                let drift = drift(steps, Some(&matched.info.id));
                problems.extend(plan.problems.into_iter().chain(drift));
            }
            PodVerdict::InSync => problems.extend(plan.problems),
        }
        self.add(matched.summary(), state, lines, problems);
    }

    /// Seconds since a snapshot last found the checkpoint true; `None` for a file without a time.
    fn age(&self, matched: &Matched) -> Option<u64> {
        let written = matched.checkpoint.netfix.as_ref()?.stamp();
        let seen = self.recorded.and_then(|node| node.seen(&matched.info.id));
        let times = seen.iter().chain([&written]);
        times.map(age).min().map(u64::from)
    }
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
