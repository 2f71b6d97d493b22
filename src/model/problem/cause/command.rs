use super::causes;

causes! {
    /// Causes found in COMMAND of a window, and interruptions.
    CommandCause {
        /// COMMAND failed.
        Exited { code: i32 } => CommandFailed,
        /// COMMAND was killed.
        Killed { signal: i32 } => CommandFailed,
        /// COMMAND could not be started.
        NotStarted { error: String } => CommandFailed,
        /// COMMAND ended, and its status is not known.
        EndUnknown => CommandFailed,
        /// Interrupted before the first change.
        InterruptedUnchanged => Interrupted,
        /// Interrupted after the pause.
        InterruptedBefore => Interrupted,
        /// Interrupted in COMMAND.
        Interrupted => Interrupted,
        /// Interrupted in the restore.
        InterruptedRestore => Interrupted,
        /// Interrupted while kubelet stayed paused for a repair.
        InterruptedRepair => Interrupted,
        /// Interrupted in the rebuild check.
        InterruptedRebuildCheck => Interrupted,
    }
}
