//! Sentences about COMMAND of a window, and interruptions.

use crate::model::problem::CommandCause;

sentences! {
    CommandCause {
        Exited { code } => "failed with exit code {code}",
        Killed { signal } => "killed by signal {signal}",
        NotStarted { error } => "could not be started: {error}",
        EndUnknown => "ended, and its exit status is not known",
        InterruptedUnchanged => "interrupted: nothing was changed",
        InterruptedBefore => "interrupted: COMMAND did not run",
        Interrupted => "interrupted in COMMAND: netfix restored the pods nevertheless",
        InterruptedRestore => "interrupted: netfix stopped waiting for the NIC",
        InterruptedRepair => "interrupted: netfix resumed kubelet without the repair",
        InterruptedRebuildCheck => "interrupted: netfix stopped watching whether a pod is rebuilt",
    }
}
