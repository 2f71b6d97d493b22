//! Sentences about the pause of kubelet.

use std::fmt;

use crate::model::problem::KubeletCause;

impl fmt::Display for KubeletCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Systemd { error } | Self::NotPaused { error } => error,
            Self::NoSystemd => "this machine is not run by systemd: netfix cannot pause the unit",
            Self::NothingWithoutSystemd => {
                "this machine is not run by systemd: there is no kubelet to pause"
            }
            Self::DeadlineTooShort => {
                "the deadline came before the unit was stopped. Use a longer --deadline"
            }
            Self::StartedBeforeCommand => "something else started it: COMMAND did not run",
            Self::StartedBeforeRestore => {
                "was started before the pods were restored, by the deadline or by something else"
            }
            Self::NotResumed { unit, error } => {
                return write!(
                    f,
                    "{error}; the deadline stays armed. Run `systemctl status {unit}`, then `netfix resume`"
                );
            }
            Self::TimerNotStopped { error } => {
                return write!(f, "could not stop the deadline timer (harmless): {error}");
            }
            Self::NotRunning => "not running; left unchanged",
            Self::Masked => "not running and masked; left unchanged",
            Self::NoUnit => "no unit of a kubelet exists on this machine",
        })
    }
}
