//! The exit code of an answer.

use super::Document;
use crate::model::{Code, Exit};
use crate::refusal::Refusal;

impl Document {
    /// The same, judged by what became of the pods: something that netfix cannot do is never more than part of the work.
    pub(crate) fn judged(self) -> Self {
        let errors = || self.problems.iter().filter(|problem| problem.is_error());
        let good = self.pods.iter().filter(|pod| pod.state.is_good()).count();
        let exit = match (errors().count(), good) {
            (0, all) if all == self.pods.len() => Exit::Done,
            (_, 0) if !errors().any(|problem| problem.code() == Code::Unsupported) => Exit::Failed,
            _ => Exit::Partly,
        };
        self.exits(exit)
    }

    /// The same with this exit code.
    pub(crate) fn exits(self, exit: Exit) -> Self {
        Self {
            exit: exit as u8,
            ..self
        }
    }
}

impl From<Refusal> for Document {
    fn from(Refusal { failed, problems }: Refusal) -> Self {
        let answer = Self {
            problems,
            ..Self::default()
        };
        answer.exits(if failed { Exit::Failed } else { Exit::Refused })
    }
}
