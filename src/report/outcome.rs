//! How a command ended.

use crate::model::{Code, Problem};
use crate::refusal::Refusal;
use crate::report::{Extra, NodeView, PodView, Verdict};
use crate::store;

/// What a command has to say.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The exit code.
    pub exit: Exit,
    /// The host.
    pub node: NodeView,
    /// The pods.
    pub pods: Vec<PodView>,
    /// What went wrong or is worth knowing.
    pub problems: Vec<Problem>,
    /// What only this command answers.
    pub extra: Option<Extra>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    #[default]
    Done,
    /// Failed.
    Failed,
    /// Drift was found.
    Drift,
    /// Refused before anything was changed.
    Refused,
    /// Some pods were handled, some not.
    Partly,
    /// What `check` found, in the convention of monitoring plugins.
    Check(Verdict),
    /// The answer was given by another process, which ended with this code.
    Printed(u8),
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Drift => 3,
            Self::Refused => 4,
            Self::Partly => 5,
            Self::Check(verdict) => verdict as u8,
            Self::Printed(code) => code,
        }
    }
}

impl Outcome {
    /// Refused before anything was changed.
    #[must_use]
    pub fn refused(problem: Problem) -> Self {
        Self {
            exit: Exit::Refused,
            problems: vec![problem],
            ..Self::default()
        }
    }

    /// Another process has given the answer.
    #[must_use]
    pub fn printed(code: u8) -> Self {
        Self {
            exit: Exit::Printed(code),
            ..Self::default()
        }
    }

    /// Failed as a whole.
    #[must_use]
    pub fn failed(problem: Problem) -> Self {
        Self {
            exit: Exit::Failed,
            ..Self::refused(problem)
        }
    }

    /// What several pods' fates add up to: something that netfix cannot do is never more than part of the work.
    pub(crate) fn judge(pods: &[PodView], problems: &[Problem]) -> Exit {
        let errors = || problems.iter().filter(|problem| problem.is_error());
        let good = pods.iter().filter(|pod| pod.state.is_good()).count();
        match (errors().count(), good) {
            (0, all) if all == pods.len() => Exit::Done,
            (_, 0) if !errors().any(|problem| problem.code() == Code::Unsupported) => Exit::Failed,
            _ => Exit::Partly,
        }
    }
}

/// What ends a command early.
pub(crate) type Early = Box<Outcome>;

/// A store that cannot be read ends the command.
impl From<store::Error> for Early {
    fn from(error: store::Error) -> Self {
        Self::new(Outcome::refused(error.problem()))
    }
}

impl From<Refusal> for Outcome {
    fn from(Refusal { failed, problems }: Refusal) -> Self {
        Self {
            exit: if failed { Exit::Failed } else { Exit::Refused },
            problems,
            ..Self::default()
        }
    }
}

impl From<Refusal> for Early {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.into())
    }
}

impl From<Early> for Refusal {
    fn from(early: Early) -> Self {
        Self {
            failed: early.exit == Exit::Failed,
            problems: early.problems,
        }
    }
}
