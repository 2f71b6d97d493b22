//! The pods that a window leaves out of its verdict and counts. The restore still repairs one that loses its network.

use std::collections::BTreeSet;

use crate::model::{PodId, Problem, Window};
use crate::records::stored::Stored;
use crate::restore::{RestoreState, Restored};

/// The pods that are left out of a window.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    pods: BTreeSet<PodId>,
    /// Those that lost their network: the window includes them again.
    lost: BTreeSet<PodId>,
}

impl LeftOut {
    pub(crate) fn new(pods: BTreeSet<PodId>) -> Self {
        Self {
            pods,
            ..Self::default()
        }
    }

    /// Those of an interrupted window: pods that had a checkpoint and are not in its record.
    pub(crate) fn of_window(window: &Window, stored: &Stored) -> Self {
        let ids = stored.checkpoints.iter().map(|(info, _)| &info.id);
        Self::new(ids.filter(|id| !window.has_pod(id)).cloned().collect())
    }

    pub(crate) fn has(&self, id: &PodId) -> bool {
        self.pods.contains(id)
    }

    /// Whether it was left out until it was lost.
    pub(crate) fn had(&self, id: &PodId) -> bool {
        self.lost.contains(id)
    }

    /// Removes them from what a restore did, but those that it found lost.
    pub(crate) fn leave(&mut self, restored: &mut Restored) {
        for pod in &restored.pods {
            if pod.state != RestoreState::InSync
                && let Some(id) = self.pods.take(&pod.pod.info.id)
            {
                self.lost.insert(id);
            }
        }
        restored.pods.retain(|pod| !self.has(&pod.pod.info.id));
        restored.problems.retain(|problem| !self.is_about(problem));
    }

    /// Whether a problem is about one of them.
    pub(crate) fn is_about(&self, problem: &Problem) -> bool {
        problem.pod.as_ref().is_some_and(|id| self.has(id))
    }
}
