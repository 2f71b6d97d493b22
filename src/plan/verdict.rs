//! When a pod is in sync with its checkpoint, when it has drifted, and when it is lost: the one rule for all commands.

use crate::model::{Loss, Problem, State};
use crate::plan::Plan;

/// A running pod beside its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodVerdict {
    /// The pod has everything that the checkpoint describes.
    InSync,
    /// A restore would change the pod now or once a link has carrier, or there is a difference that it cannot remove.
    Drifted,
    /// The pod has not all that carried its network.
    Lost(Loss),
    /// The pod could not be observed, for this reason.
    Unknown(Problem),
}

impl PodVerdict {
    /// The verdict on a pod that has lost this, if anything, and that this plan would change. A surplus object, which a restore keeps,
    /// is no drift.
    #[must_use]
    pub fn new(lost: Option<Loss>, plan: &Plan) -> Self {
        if let Some(loss) = lost {
            return Self::Lost(loss);
        }
        let has_steps = !plan.steps.is_empty() || !plan.later.is_empty();
        if has_steps || plan.findings().next().is_some() {
            Self::Drifted
        } else {
            Self::InSync
        }
    }

    /// Whether something is missing or differs.
    pub(crate) fn is_drift(&self) -> bool {
        match self {
            Self::Drifted | Self::Lost(_) => true,
            Self::InSync | Self::Unknown(_) => false,
        }
    }
}

/// The word for it in documents and records.
impl From<&PodVerdict> for State {
    fn from(verdict: &PodVerdict) -> Self {
        match verdict {
            PodVerdict::InSync => Self::InSync,
            PodVerdict::Drifted => Self::Drifted,
            PodVerdict::Lost(_) => Self::Degraded,
            PodVerdict::Unknown(_) => Self::Failed,
        }
    }
}
