use super::causes;

causes! {
    /// Causes found in the command line and the machine.
    UsageCause {
        NotRoot => PermissionDenied,
        TextOnly => Failed,
    }
}
