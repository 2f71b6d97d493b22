//! What a check found.

use crate::model::{LossCause, NodeIdentity, PodInfo, PodSummary, Problem};
use crate::rehearsal::Rehearsed;

/// What a check found.
#[derive(Debug)]
pub(crate) struct Readiness {
    pub node: NodeIdentity,
    /// When the host's state was recorded (RFC 3339).
    pub recorded: Option<String>,
    /// What a restore would do on the host.
    pub host: Vec<String>,
    /// Running pods that have or need a checkpoint, sorted by id.
    pub pods: Vec<CheckedPod>,
    /// The number of running pods that need none.
    pub empty: usize,
    /// Running pods that the loss of these devices would not affect.
    pub left_out: Vec<PodInfo>,
    /// Age in seconds of the oldest checkpoint of a running pod, since a snapshot last found it true.
    pub oldest_age: Option<u64>,
    /// When the last snapshot of all pods was completed in this boot (RFC 3339).
    pub last_success: Option<String>,
    /// What the rehearsal found, where there was one.
    pub rehearsed: Option<Rehearsed>,
    pub problems: Vec<Problem>,
}

impl Readiness {
    /// Removes the findings of what a window takes from pods and host and brings back, and returns the number of lost pods. The
    /// pods keep their state.
    pub(crate) fn excuse_window(&mut self) -> usize {
        self.problems
            .retain(|problem| !problem.code().is_of_a_window());
        self.pods.iter().filter(|one| one.lost.is_some()).count()
    }

    pub(super) fn has_degraded(&self) -> bool {
        let mut pods = self.pods.iter();
        pods.any(|one| one.state == CheckState::Degraded)
    }
}

/// What a check found of one pod.
#[derive(Debug)]
pub(crate) struct CheckedPod {
    pub pod: PodSummary,
    pub state: CheckState,
    /// The word for what it has lost, one of [`lost_words`].
    pub lost: Option<&'static str>,
    /// What a restore would do in it.
    pub steps: Vec<String>,
}

impl CheckedPod {
    pub(super) fn new(pod: PodSummary, state: CheckState) -> Self {
        Self {
            pod,
            state,
            lost: None,
            steps: Vec::new(),
        }
    }
}

/// A pod without an interface and without a record that can be used has lost what is not known.
pub(crate) const NO_CHECKPOINT: &str = "no-checkpoint";

/// The words for what a pod may have lost.
pub(crate) fn lost_words() -> impl Iterator<Item = &'static str> {
    LossCause::WORDS.iter().copied().chain([NO_CHECKPOINT])
}

/// Whether a running pod could be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckState {
    /// Its checkpoint is fresh, and the pod has what it describes.
    InSync,
    /// No snapshot found its checkpoint true lately.
    Stale,
    /// Something differs from the checkpoint.
    Drifted,
    /// It has lost a link.
    Degraded,
    /// It has interfaces, and was created after the last snapshot, which is not old.
    New,
    /// It reaches nothing, and no good checkpoint shows that it ever did more.
    CutOff,
    NoCheckpoint,
    /// It could not be read, or its checkpoint cannot be used.
    Failed,
}
