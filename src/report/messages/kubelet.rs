//! Sentences about the pause of kubelet.

use crate::model::problem::KubeletCause;

sentences! {
    KubeletCause {
        Systemd { error } => "{error}",
        NotPaused { error } => "{error}",
        NoSystemd => "this machine is not run by systemd: netfix cannot pause the unit",
        NothingWithoutSystemd => "this machine is not run by systemd: there is no kubelet to pause",
        DeadlineTooShort => "the deadline came before the unit was stopped. Use a longer --deadline",
        StartedBeforeCommand => "something else started it: COMMAND did not run",
        StartedBeforeRestore => "was started before the pods were restored, by the deadline or by something else",
        NotResumed { unit, error } => "{error}; the deadline stays armed. Run `systemctl status {unit}`, then `netfix \
            resume`",
        TimerNotStopped { error } => "could not stop the deadline timer (harmless): {error}",
        NotRunning => "not running; left unchanged",
        Masked => "not running and masked; left unchanged",
        NoUnit => "no unit of a kubelet exists on this machine",
    }
}
