//! What a restore did, and how it left the host and the pods.

use std::mem;
use std::time::Duration;

use crate::context::Pending;
use crate::model::problem::RestoreCause;
use crate::model::{ConflictProbe, IfName, NodeIdentity, PodSummary, Problem};
use crate::plan::Step;

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

    pub(super) fn of(changed: bool, is_complete: bool) -> Self {
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

impl Restored {
    /// What was lost between the restores before and this one; `is_known` where a loss was seen. Else, where those left
    /// something, this one does their work, unless that was a loss too: a NIC that was just missing.
    pub(crate) fn lost_again_after(&self, before: &Self, is_known: bool) -> Option<Problem> {
        let host = self.host.as_ref().map_or(0, |(steps, _)| steps.len());
        let worked_on = |pod: &&RestoredPod| !pod.done.is_empty();
        let pods = self.pods.iter().filter(worked_on).count();
        let is_loss = is_known || before.was_complete || before.is_complete();
        (is_loss && host + pods > 0).then(|| RestoreCause::LostAgain { pods }.warning("host"))
    }

    /// Whether it could not even begin: only its problems are known.
    pub(crate) fn is_unknown(&self) -> bool {
        self.host.is_none() && self.pods.is_empty()
    }

    /// What this restore and the one after it did: the steps of both, and how the last one that could begin left everything.
    pub(crate) fn then(mut self, second: Self) -> Self {
        if second.is_unknown() {
            self.problems.extend(second.problems);
            return self;
        }
        let mut both = second;
        both.pending.add(mem::take(&mut self.pending));
        both.was_complete |= self.was_complete || self.is_complete();
        for pod in &mut both.pods {
            let mut first = self.pods.iter();
            let first = first.find(|first| first.pod.info.id == pod.pod.info.id);
            let Some(first) = first else { continue };
            pod.done.splice(..0, first.done.iter().cloned());
            pod.before.clone_from(&first.before);
            pod.state = pod.state.after(!pod.done.is_empty());
        }
        match (self.host, &mut both.host) {
            (Some((first, _)), Some((done, state))) => {
                done.splice(..0, first);
                *state = state.after(!done.is_empty());
            }
            (first, None) => both.host = first,
            (None, Some(_)) => {}
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Rule;
    use crate::plan::Step;

    #[test]
    fn a_loss_that_is_seen_while_the_nic_is_missing_is_reported_once_it_is_restored() {
        let step = || Step::AddRule(Rule::default());
        let of = |steps: Vec<Step>, state| Restored {
            host: Some((steps, state)),
            ..Restored::default()
        };
        let failed = || Restored {
            problems: vec![RestoreCause::NoCarrier.error("eth0")],
            ..of(Vec::new(), RestoreState::Failed)
        };
        let complete = of(vec![step()], RestoreState::Restored);
        let missing = failed();
        assert!(missing.lost_again_after(&complete, false).is_none());
        let before = complete.then(missing);
        let again = of(vec![step()], RestoreState::Restored);
        assert!(again.lost_again_after(&before, false).is_some());
        assert!(again.lost_again_after(&failed(), false).is_none());
        assert!(again.lost_again_after(&failed(), true).is_some());
    }

    #[test]
    fn a_second_restore_that_cannot_begin_hides_nothing_of_the_first() {
        let problem = || RestoreCause::NoCarrier.error("eth0");
        let first = Restored {
            host: Some((Vec::new(), RestoreState::Failed)),
            problems: vec![problem()],
            ..Restored::default()
        };
        let second = Restored {
            problems: vec![problem()],
            ..Restored::default()
        };
        let both = first.then(second);
        assert_eq!(both.host, Some((Vec::new(), RestoreState::Failed)));
        assert_eq!(both.problems.len(), 2);
    }
}
