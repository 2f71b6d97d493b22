use super::causes;

causes! {
    /// Causes found around a maintenance window: before it starts, in its unit, in its record.
    WindowCause {
        Open { started: String, command: String, pid: u32, unit: Option<String> } => WindowOpen,
        CommandStillRuns { pid: u32 } => WindowOpen,
        NoneOpen => NotFound,
        NothingPaused => NotFound,
        NoTerminal => Interrupted,
        NotConfirmed => Interrupted,
        Signals { error: String } => Failed,
        NotRestorable { problems: usize } => Unsupported,
        NamespaceUnreadable { error: String } => Unreadable,
        Panicked => Failed,
        SilentBefore => GatewayUnreachable,
    }
}

causes! {
    /// Causes found in the unit that a window runs as.
    DetachedCause {
        NotDetached { error: String } => SystemdUnreachable,
        NotQueried { error: String } => SystemdUnreachable,
        EndUnknown => Failed,
        Killed { signal: u32 } => Failed,
        SharedFile { error: String } => Failed,
    }
}

causes! {
    /// Causes found in the records of windows.
    RecordCause {
        Nothing => NotFound,
        NoSuch { windows: Vec<String> } => NotFound,
        Ambiguous { windows: Vec<String> } => NotFound,
        Gone => NotFound,
    }
}
