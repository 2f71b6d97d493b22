//! How a command ended.

use super::{Document, PodView};
use crate::model::{Code, Problem};
use crate::refusal::Refusal;

/// How a command ended; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Drift was found.
    Drift = 3,
    /// Refused before anything was changed.
    Refused = 4,
    /// Some pods were handled, some not.
    Partly = 5,
}

impl Exit {
    /// What several pods' fates add up to: something that netfix cannot do is never more than part of the work.
    pub(crate) fn judge(pods: &[PodView], problems: &[Problem]) -> Self {
        let errors = || problems.iter().filter(|problem| problem.is_error());
        let good = pods.iter().filter(|pod| pod.state.is_good()).count();
        match (errors().count(), good) {
            (0, all) if all == pods.len() => Self::Done,
            (_, 0) if !errors().any(|problem| problem.code() == Code::Unsupported) => Self::Failed,
            _ => Self::Partly,
        }
    }

    /// `self`, if there is an error among the problems.
    pub(crate) fn if_errors(self, problems: &[Problem]) -> Self {
        if problems.iter().any(Problem::is_error) {
            self
        } else {
            Self::Done
        }
    }
}

impl Document {
    /// The same, judged by what became of the pods.
    pub(crate) fn judged(self) -> Self {
        Self {
            exit: Exit::judge(&self.pods, &self.problems) as u8,
            ..self
        }
    }
}

impl From<Refusal> for Document {
    fn from(Refusal { failed, problems }: Refusal) -> Self {
        let exit = if failed { Exit::Failed } else { Exit::Refused };
        Self {
            exit: exit as u8,
            problems,
            ..Self::default()
        }
    }
}
