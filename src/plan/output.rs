//! A plan.

use crate::model::problem::{Cause, PlanCause};
use crate::model::window::SettingResult;
use crate::model::{IfName, Problem, Severity};
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
    /// Devices of the host that are not there.
    pub missing: Vec<IfName>,
    /// Differences for which there is no step.
    pub problems: Vec<Problem>,
    /// A router is to bring what is missing.
    pub awaits_router: bool,
    /// The kernel may still undo what was set, once a link gets carrier.
    pub is_unsettled: bool,
    /// Those of the problems about objects that are not in the checkpoint and are lost with a NIC, in the same order.
    pub unrecorded: Vec<Problem>,
}

/// What a restore waits for once its steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedEvent {
    /// The carrier of links.
    Carrier,
    /// The advertisement of a router.
    Router,
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

    /// Whether there is something that is not recorded.
    #[must_use]
    pub fn has_surplus(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|one| matches!(&*one.cause, Cause::Plan(PlanCause::Surplus)))
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

    /// Whether something is to come with this; a restore that has changed nothing waits for no router.
    pub(crate) fn awaits(&self, event: AwaitedEvent, has_changed: bool) -> bool {
        match event {
            AwaitedEvent::Carrier => !self.later.is_empty() || (self.is_unsettled && has_changed),
            AwaitedEvent::Router => self.awaits_router && has_changed,
        }
    }

    /// Whether nothing is to come with carrier or a router.
    pub(crate) fn is_settled(&self) -> bool {
        self.later.is_empty() && !self.is_unsettled && !self.awaits_router
    }

    /// The differences that matter, for which there is no step.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Problem> {
        let problems = self.problems.iter();
        problems.filter(|problem| problem.severity > Severity::Info)
    }
}
