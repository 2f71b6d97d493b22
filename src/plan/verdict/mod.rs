//! When a pod is in sync with its checkpoint, when it has drifted, and when it is lost: the one rule for all commands.

mod cut_off;
pub(super) mod host_loss;
pub(super) mod loss;
mod names;
mod reach;

use crate::model::{CutOff, Loss, Problem, State};
use crate::plan::Plan;

pub use cut_off::cut_off;

/// A running pod beside its checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodVerdict {
    /// The pod has everything that the checkpoint describes.
    InSync,
    /// A restore would change the pod now or once a link has carrier, or there is a difference that it cannot remove.
    Drifted,
    /// The pod has not all that carried its network.
    Lost(Loss),
    /// The pod has lost nothing of its checkpoint, with which it was cut off already, and is cut off.
    CutOff {
        /// Why it reaches nothing.
        what: CutOff,
        /// Whether it has drifted, too.
        is_drifted: bool,
    },
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

    /// This verdict on a pod that may be cut off.
    pub(crate) fn or_cut_off(self, what: Option<CutOff>) -> Self {
        match (what, &self) {
            (Some(what), Self::InSync | Self::Drifted) => Self::CutOff {
                what,
                is_drifted: self.is_drift(),
            },
            _ => self,
        }
    }

    /// Whether something is missing or differs.
    pub(crate) fn is_drift(&self) -> bool {
        match self {
            Self::Drifted | Self::Lost(_) => true,
            Self::CutOff { is_drifted, .. } => *is_drifted,
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
            PodVerdict::CutOff { .. } => Self::CutOff,
            PodVerdict::Unknown(_) => Self::Failed,
        }
    }
}
