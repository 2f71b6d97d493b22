//! Sentences about COMMAND of a window, and interruptions.

use std::fmt;

use crate::model::problem::CommandCause;

impl fmt::Display for CommandCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exited { code } => return write!(f, "failed with exit code {code}"),
            Self::Killed { signal } => return write!(f, "killed by signal {signal}"),
            Self::NotStarted { error } => return write!(f, "could not be started: {error}"),
            Self::EndUnknown => "ended, and its exit status is not known",
            Self::InterruptedUnchanged => "interrupted: nothing was changed",
            Self::InterruptedBefore => "interrupted: COMMAND did not run",
            Self::Interrupted => "interrupted in COMMAND: netfix restored the pods nevertheless",
            Self::InterruptedRestore => "interrupted: netfix stopped waiting for the NIC",
            Self::InterruptedRepair => "interrupted: netfix resumed kubelet without the repair",
            Self::InterruptedRebuildCheck => {
                "interrupted: netfix stopped watching whether a pod is rebuilt"
            }
        })
    }
}
