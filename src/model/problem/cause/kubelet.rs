use super::causes;

causes! {
    /// Causes found while kubelet is paused and resumed.
    KubeletCause {
        Systemd { error: String } => SystemdUnreachable,
        NoSystemd => SystemdUnreachable,
        NothingWithoutSystemd => NotFound,
        NotPaused { error: String } => KubeletNotPaused,
        DeadlineTooShort => KubeletNotPaused,
        StartedBeforeCommand => KubeletNotPaused,
        StartedBeforeRestore => KubeletNotPaused,
        NotResumed { unit: String, error: String } => KubeletNotResumed,
        TimerNotStopped { error: String } => Failed,
        NotRunning => NotFound,
        Masked => NotFound,
        NoUnit => NotFound,
    }
}
