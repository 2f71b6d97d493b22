//! A plan.

use crate::model::window::SettingResult;
use crate::model::{Problem, Severity};
use crate::plan::NicStep;
use crate::plan::step::Step;

/// What to do in one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// Steps that must wait until their link is up and has carrier.
    pub later: Vec<Step>,
    /// Settings of devices that were made anew, which no step restores, and why.
    pub left: Vec<(NicStep, SettingResult)>,
    /// Differences for which there is no step.
    pub problems: Vec<Problem>,
    /// Those of them about objects that are not in the checkpoint and are lost with a NIC, in the same order.
    pub unrecorded: Vec<Problem>,
}

impl Plan {
    /// Adds a step.
    pub(super) fn push(&mut self, step: impl Into<Step>) {
        self.steps.push(step.into());
    }

    /// Adds steps, in this order.
    pub(super) fn extend(&mut self, steps: impl IntoIterator<Item: Into<Step>>) {
        self.steps.extend(steps.into_iter().map(Into::into));
    }

    /// All steps as text, including those that must wait.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let later = self
            .later
            .iter()
            .map(|step| format!("{step} (once it has carrier)"));
        self.steps
            .iter()
            .map(ToString::to_string)
            .chain(later)
            .collect()
    }

    /// The differences that matter, for which there is no step.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.problems.iter();
        problems.filter(|problem| problem.severity > Severity::Info)
    }
}
