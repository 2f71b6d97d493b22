//! How a difference counts, by what is known of the host and of each pod without a rehearsal.

use std::collections::BTreeMap;

use crate::model::{Code, PodId, Problem, Severity};
use crate::plan::{Plan, PodVerdict};
use crate::records::matched::Matched;
use crate::situation::Compared;

/// What becomes of a pod in a rehearsal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// It is rehearsed; a difference counts so much.
    Rehearsed(Severity),
    /// It has lost a part of its network: what comes back is not what it has.
    Lost,
    /// It could not be read, which is reported.
    Unread,
}

/// How the differences of the host and of the pods count.
#[derive(Debug)]
pub(crate) struct Weights {
    pub(super) host: Severity,
    pods: BTreeMap<PodId, Part>,
}

impl Weights {
    /// The weights for the host and for pods beside what they were compared with.
    pub(crate) fn new(host: &Plan, matched: &[Matched], compared: &[Compared]) -> Self {
        let ids = matched.iter().map(|one| one.info.id.clone());
        Self {
            host: of_recorded(host.lines().is_empty()),
            pods: ids.zip(compared.iter().map(part)).collect(),
        }
    }

    /// Leaves these pods out.
    pub(crate) fn leave_out(&mut self, is_left_out: impl Fn(&PodId) -> bool) {
        self.pods.retain(|id, _| !is_left_out(id));
    }

    pub(super) fn of(&self, id: &PodId) -> Option<Part> {
        self.pods.get(id).copied()
    }
}

fn part(pod: &Compared) -> Part {
    let mut of_plan = pod.plan.problems.iter();
    let is_unsupported = |problem: &Problem| problem.code() == Code::Unsupported;
    match pod.verdict {
        PodVerdict::Lost(_) => Part::Lost,
        PodVerdict::Unknown(_) => Part::Unread,
        // What no restore could bring back is reported already.
        _ if !pod.unsupported.is_empty() || of_plan.any(is_unsupported) => {
            Part::Rehearsed(Severity::Info)
        }
        PodVerdict::InSync
        | PodVerdict::CutOff {
            is_drifted: false, ..
        } => Part::Rehearsed(of_recorded(pod.plan.unrecorded.is_empty())),
        PodVerdict::Drifted | PodVerdict::CutOff { .. } => Part::Rehearsed(of_recorded(false)),
    }
}

/// What has changed since the snapshot differs for that reason, which is known.
fn of_recorded(is_as_recorded: bool) -> Severity {
    if is_as_recorded {
        Severity::Error
    } else {
        Severity::Warning
    }
}
