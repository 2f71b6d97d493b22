use super::causes;

causes! {
    /// Causes found around a maintenance window: before it starts, in its unit, in its record.
    WindowCause {
        /// A window is open already.
        Open { started: String, command: String, pid: u32, unit: Option<String> } => WindowOpen,
        /// COMMAND of the interrupted window still runs.
        CommandStillRuns { pid: u32 } => WindowOpen,
        /// There is no open window to follow.
        NoneOpen => NotFound,
        /// There is no open window to close.
        NothingPaused => NotFound,
        /// No terminal to ask for confirmation.
        NoTerminal => Interrupted,
        /// The answer was not yes.
        NotConfirmed => Interrupted,
        /// Signals cannot be caught.
        Signals { error: String } => Failed,
        /// The check found what a restore could not put back.
        NotRestorable { problems: usize } => Unsupported,
        /// A pod's namespace could not be read for the preview.
        NamespaceUnreadable { error: String } => Unreadable,
        /// netfix panicked.
        Panicked => Failed,
        /// A gateway that did not answer before the window either.
        SilentBefore => GatewayUnreachable,
    }
}

causes! {
    /// Causes found in the unit that a window runs as.
    DetachedCause {
        /// The window could not start as a unit of its own.
        NotDetached { error: String } => SystemdUnreachable,
        /// systemd does not say how the unit of the window is.
        NotQueried { error: String } => SystemdUnreachable,
        /// The unit of the window ended, and neither systemd nor the record says how.
        EndUnknown => Failed,
        /// A signal ended the unit of the window.
        Killed { signal: u32 } => Failed,
        /// The files between the terminal and the unit of the window.
        SharedFile { error: String } => Failed,
    }
}

causes! {
    /// Causes found in the records of windows.
    RecordCause {
        /// No window was ever recorded.
        Nothing => NotFound,
        /// No record has this id.
        NoSuch { windows: Vec<String> } => NotFound,
        /// Several ids start like this.
        Ambiguous { windows: Vec<String> } => NotFound,
        /// The record was removed while netfix looked for it.
        Gone => NotFound,
    }
}
