//! Why the engine ends a command: typed problems, no views.

use crate::model::{Code, Problem};
use crate::store;

/// What ends a command before its work is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Whether the command failed. Otherwise it refused before its first change.
    pub failed: bool,
    /// Why.
    pub problems: Vec<Problem>,
}

impl Refusal {
    /// The command failed while it worked.
    #[must_use]
    pub fn failed(problem: Problem) -> Self {
        Self {
            failed: true,
            ..problem.into()
        }
    }
}

impl Refusal {
    /// Whether one of its problems has this code.
    pub(crate) fn has(&self, code: Code) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.code() == code)
    }

    /// Its problems as warnings, if the command continues without what it refused.
    pub(crate) fn demoted(self) -> Vec<Problem> {
        self.problems.into_iter().map(Problem::demoted).collect()
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        vec![problem].into()
    }
}

impl From<Vec<Problem>> for Refusal {
    fn from(problems: Vec<Problem>) -> Self {
        Self {
            failed: false,
            problems,
        }
    }
}

impl From<store::StoreError> for Refusal {
    fn from(error: store::StoreError) -> Self {
        error.problem().into()
    }
}
