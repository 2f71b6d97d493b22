use super::causes;

causes! {
    /// Causes found while kubelet is paused and resumed.
    KubeletCause {
        /// systemd does not answer, or refuses.
        Systemd { error: String } => SystemdUnreachable,
        /// The unit to pause was named, and another init system runs this machine.
        NoSystemd => SystemdUnreachable,
        /// No unit was named, and another init system runs this machine.
        NothingWithoutSystemd => NotFound,
        /// The unit could not be found, stopped or masked.
        NotPaused { error: String } => KubeletNotPaused,
        /// The deadline came while the unit was stopping.
        DeadlineTooShort => KubeletNotPaused,
        /// The unit was started before COMMAND ran.
        StartedBeforeCommand => KubeletNotPaused,
        /// The unit was started before the pods were restored.
        StartedBeforeRestore => KubeletNotPaused,
        /// The unit does not start.
        NotResumed { unit: String, error: String } => KubeletNotResumed,
        /// The timer of a deadline that is no longer needed.
        TimerNotStopped { error: String } => Failed,
        /// The unit was not running.
        NotRunning => NotFound,
        /// The unit was not running, and masked.
        Masked => NotFound,
        /// No unit of a kubelet exists.
        NoUnit => NotFound,
    }
}
