use super::causes;

causes! {
    /// Causes found in COMMAND of a window, and interruptions.
    CommandCause {
        Exited { code: i32 } => CommandFailed,
        Killed { signal: i32 } => CommandFailed,
        NotStarted { error: String } => CommandFailed,
        EndUnknown => CommandFailed,
        InterruptedUnchanged => Interrupted,
        InterruptedBefore => Interrupted,
        Interrupted => Interrupted,
        InterruptedRestore => Interrupted,
        InterruptedRepair => Interrupted,
        InterruptedRebuildCheck => Interrupted,
    }
}
