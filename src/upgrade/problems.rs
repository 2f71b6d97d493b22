//! The problems of a window, by their effect on its exit code.

use crate::model::{Exit, Problem};

/// What a problem of a window is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Area {
    /// What the check found and --force accepted.
    Preflight,
    /// COMMAND, and interruptions: the pods may all be well.
    Command,
    Kubelet,
    /// The pods' network: another restore may put it right.
    Network,
    /// Rebuilt pods, and failures of netfix.
    Rebuild,
}

/// Every problem of a window, in the order in which they were found.
#[derive(Debug, Default)]
pub(crate) struct WindowProblems(Vec<(Area, Problem)>);

impl WindowProblems {
    pub(crate) fn add(&mut self, area: Area, problems: impl IntoIterator<Item = Problem>) {
        self.0
            .extend(problems.into_iter().map(|problem| (area, problem)));
    }

    /// Removes the problems that another observation of the pods' network reports again if they still exist.
    pub(crate) fn forget_network(&mut self) {
        self.0.retain(|(area, _)| *area != Area::Network);
    }

    /// Those of one area.
    pub(crate) fn of(&self, area: Area) -> impl Iterator<Item = &Problem> {
        let own = self.0.iter().filter(move |(one, _)| *one == area);
        own.map(|(_, problem)| problem)
    }

    /// How the window ends: the pods and kubelet decide, then COMMAND.
    pub(crate) fn end(&self) -> Exit {
        let errors = || self.0.iter().filter(|(_, problem)| problem.is_error());
        if errors().next().is_none() {
            Exit::Done
        } else if errors().all(|(area, _)| *area == Area::Command) {
            Exit::Failed
        } else {
            Exit::Partly
        }
    }

    pub(crate) fn into_problems(self) -> Vec<Problem> {
        self.0.into_iter().map(|(_, problem)| problem).collect()
    }
}
