use super::causes;

causes! {
    /// Causes found in the command line and the machine.
    UsageCause {
        /// The process does not run as root.
        NotRoot => PermissionDenied,
        /// The command only prints a text about netfix.
        TextOnly => Failed,
    }
}
