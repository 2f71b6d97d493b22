//! How a command ended.

use super::Problem;

/// How a command ended; the number is the process's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    Done = 0,
    /// Failed.
    Failed = 1,
    /// Drift was found.
    Drift = 3,
    /// Refused before anything was changed, or every change was undone.
    Refused = 4,
    /// Some pods were handled, some not; or kubelet is not as it was.
    Partly = 5,
    /// `wait`: the window is still open after `--timeout`, as with timeout(1).
    TimedOut = 124,
}

impl Exit {
    /// `self`, if there is an error among the problems.
    pub(crate) fn if_errors(self, problems: &[Problem]) -> Self {
        if problems.iter().any(Problem::is_error) {
            self
        } else {
            Self::Done
        }
    }
}
