//! One look at the machine: the host and the running pods, the records about them, and what each of them lacks.

mod compare;
mod cut_off;
pub(crate) mod guard_now;
mod host;
pub(crate) mod inspect;

pub(crate) use compare::{Compared, Comparison, Depth};
pub(crate) use host::{
    host_loss, host_losses, lost_of_host, not_selected, plan_of, refused_of_host,
};

use crate::records::prepare::{SurveyRequest, prepare};
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::store::Store;

/// What a look found. Nothing is changed yet.
pub(crate) struct Situation {
    /// The pods beside their records.
    pub surveyed: Surveyed,
    /// What they and the host lack.
    pub compared: Comparison,
}

impl Situation {
    /// Looks at what a request selects.
    pub(crate) fn look(
        request: &SurveyRequest,
        store: &Store,
        depth: Depth,
    ) -> Result<Self, Refusal> {
        Self::of(prepare(request, store)?, depth)
    }

    /// Looks again at the pods that were found to be cut off.
    pub(crate) fn confirmed(mut self) -> Self {
        self.surveyed.confirm_cut_off();
        self
    }

    /// Compares what was surveyed.
    pub(crate) fn of(mut surveyed: Surveyed, depth: Depth) -> Result<Self, Refusal> {
        surveyed.find_cut_off();
        let compared = compare::compare(&mut surveyed, depth)?;
        Ok(Self { surveyed, compared })
    }
}
