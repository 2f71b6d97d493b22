//! What is known only at the end of a window.

use std::mem;

use crate::model::problem::CommandCause;
use crate::model::window::{PhaseName, WindowPod};
use crate::model::{Problem, State};
use crate::upgrade::baseline::Baseline;
use crate::upgrade::ledger::{Area, Ledger, WindowProblems};
use crate::upgrade::phases::rollback::{self, NetworkAfter};
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals;
use crate::window::event::UserCommand;
use crate::window::kernel_log::explain::explain;

impl Ledger {
    /// Adds how many pods an interruption left restored, whether the rollback has helped, and the causes that the kernel's log names. A
    /// rollback that has not helped leaves its own failure and what is missing, and no other problem with the same cause.
    pub(crate) fn conclude(
        &mut self,
        request: &UpgradeRequest<'_>,
        baseline: &Baseline,
        after: &NetworkAfter,
    ) {
        self.session.end_kernel_watch();
        let window = self.session.window();
        let pods = window.pods.len();
        let is_restored = |pod: &&WindowPod| pod.state.is_some_and(State::is_good);
        let restored = window.pods.iter().filter(is_restored).count();
        let interruptions = mem::take(&mut self.interruptions).into_iter();
        let interruptions = interruptions.map(|(program, signal)| {
            let cause = CommandCause::Interrupted {
                signal,
                is_rollback: program == UserCommand::Rollback,
                restored,
                pods,
            };
            cause.error(signals::OBJECT)
        });
        self.problems.add(Area::Command, interruptions);
        if let Some(useless) = rollback::useless(request, window, after) {
            self.problems.replace_rollback(useless);
        }
        // A driver that was rolled back is gone with its causes.
        let mut phases = window.phases.iter();
        let rollback = phases.rfind(|phase| phase.name == PhaseName::Rollback);
        let since = rollback.map_or(0, |phase| phase.from);
        let log = window.kernel.iter();
        let problems = self.problems.0.iter_mut().map(|(_, problem)| problem);
        let causes = log.flat_map(|log| log.causes(since));
        let causes = explain(problems, causes, |pod, device| baseline.is_on(pod, device));
        self.problems.add(Area::Network, causes);
    }
}

impl WindowProblems {
    /// Puts this problem in the place of those about the rollback that ran, if one did.
    fn replace_rollback(&mut self, useless: Problem) {
        let is_of_rollback = |one: &(Area, Problem)| one.0 == Area::Rollback;
        if let Some(first) = self.0.iter().position(is_of_rollback) {
            self.0.retain(|one| !is_of_rollback(one));
            self.0.insert(first, (Area::Rollback, useless));
        }
    }
}
