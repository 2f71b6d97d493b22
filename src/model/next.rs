//! What an open window leaves at this moment, by systemd and the kernel rather than by its record, and what to do about it.

use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::text::word;
use super::{Loss, PodInfo};

/// An open window as it was observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowNow {
    /// COMMAND or the rollback of the window, if it still runs.
    pub running: Option<RunningCommand>,
    /// The unit that the window paused.
    pub unit: Option<String>,
    /// Whether that unit runs.
    pub kubelet: KubeletNow,
    /// The pods that have lost their network; `None` where the pods could not be read.
    pub lost: Option<LostPods>,
    /// What to do.
    pub next: NextStep,
}

/// A command of the window that runs at this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningCommand {
    /// Which one.
    pub name: CommandName,
    /// Its process.
    pub pid: u32,
    /// Program and arguments.
    pub argv: Vec<String>,
    /// How long it has been running, in milliseconds; null when unknown.
    pub for_ms: Option<u64>,
}

/// A command of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandName {
    /// The user's command.
    Command,
    /// The command that brings the former driver back.
    Rollback,
}

/// Whether the unit of kubelet runs that a window paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubeletNow {
    /// The window paused none.
    NotPaused,
    /// It runs.
    Running,
    /// It is stopped, and can be started.
    Stopped,
    /// It is stopped and masked.
    Masked,
    /// systemd could not be queried; by the record, the unit is paused.
    Unknown,
}

impl KubeletNow {
    /// Whether the unit has to be started.
    fn is_down(self) -> bool {
        matches!(self, Self::Stopped | Self::Masked | Self::Unknown)
    }
}

/// The pods that have lost their network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LostPods {
    /// Each of them.
    pub pods: Vec<LostPod>,
    /// How many of them have no checkpoint to restore them from.
    pub without_checkpoint: usize,
    /// Pods of which it is not known whether they have lost it.
    pub unknown: usize,
}

/// A pod that has lost its network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostPod {
    /// The pod.
    pub info: PodInfo,
    /// The first thing that it lost; `None`: it has no interface, and no checkpoint.
    pub loss: Option<Loss>,
}

impl LostPod {
    /// Its name for people.
    #[must_use]
    pub fn title(&self) -> String {
        self.info.title()
    }
}

/// Those of a document: the names, with the link that has lost something and what.
impl Serialize for LostPod {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut pod = to.serialize_struct("LostPod", 4)?;
        pod.serialize_field("id", &self.info.id)?;
        pod.serialize_field("pod", &self.title())?;
        pod.serialize_field("link", &self.loss.as_ref().map(|loss| &loss.link))?;
        pod.serialize_field("what", &self.loss.as_ref().map(|loss| loss.what))?;
        pod.end()
    }
}

/// What to do about an open window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextStep {
    /// Its netfix is working: wait for the end of the window.
    Wait,
    /// COMMAND or the rollback has outlived its netfix: wait for its end or stop it, restore the pods, then resume.
    WaitForCommand,
    /// Pods are lost, or could not be read: restore them, then resume.
    Restore,
    /// Pods are lost, and no checkpoint has what they lost: only kubelet can rebuild them.
    Force,
    /// The pods have their network, and kubelet is stopped.
    Resume,
    /// The pods have their network, and kubelet runs: only the record is open.
    Close,
    /// A reboot has ended the window: the next command with the lock closes its record.
    Nothing,
}

/// What the next step depends on.
#[derive(Debug, Clone, Copy)]
pub struct WindowStanding<'a> {
    /// Whether a reboot has ended the window.
    pub is_of_other_boot: bool,
    /// Whether its netfix runs, and does not wait for a person.
    pub is_working: bool,
    /// Whether COMMAND or the rollback runs.
    pub is_command_running: bool,
    /// Whether kubelet's unit runs.
    pub kubelet: KubeletNow,
    /// The lost pods.
    pub lost: Option<&'a LostPods>,
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(self, f)
    }
}

impl NextStep {
    /// The one rule for it.
    #[must_use]
    pub fn of(now: WindowStanding<'_>) -> Self {
        match now.lost {
            _ if now.is_of_other_boot => Self::Nothing,
            _ if now.is_working => Self::Wait,
            _ if now.is_command_running => Self::WaitForCommand,
            None => Self::Restore,
            Some(lost) if lost.pods.len() > lost.without_checkpoint => Self::Restore,
            Some(lost) if !lost.pods.is_empty() => Self::Force,
            Some(_) if now.kubelet.is_down() => Self::Resume,
            Some(_) => Self::Close,
        }
    }

    /// The commands, in order.
    #[must_use]
    pub fn commands(self) -> &'static [&'static str] {
        match self {
            Self::Wait | Self::Nothing => &[],
            Self::WaitForCommand | Self::Restore => &["netfix restore", "netfix resume"],
            Self::Force => &["netfix resume --force"],
            Self::Resume | Self::Close => &["netfix resume"],
        }
    }
}

impl WindowNow {
    /// Whether nothing but the record is left: the pods have their network, and kubelet runs.
    pub(crate) fn is_harmless(&self) -> bool {
        matches!(self.next, NextStep::Close | NextStep::Nothing)
    }

    /// Whether a kubelet that starts now may rebuild pods: they have lost their network, or COMMAND is about to take it.
    pub(crate) fn is_resume_dangerous(&self) -> bool {
        let has_lost = self.lost.as_ref().is_some_and(|lost| !lost.pods.is_empty());
        self.next != NextStep::Nothing && (has_lost || self.running.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PodId;

    fn lost(all: usize, without_checkpoint: usize) -> LostPods {
        let pod = |at| LostPod {
            info: PodInfo::nameless(&PodId::from_text(&format!("p{at}"))),
            loss: None,
        };
        LostPods {
            pods: (0..all).map(pod).collect(),
            without_checkpoint,
            unknown: 0,
        }
    }

    #[test]
    fn the_next_step_follows_from_what_runs_and_what_is_lost() {
        let none = lost(0, 0);
        let well = WindowStanding {
            is_of_other_boot: false,
            is_working: false,
            is_command_running: false,
            kubelet: KubeletNow::Running,
            lost: Some(&none),
        };
        let of = NextStep::of;
        assert_eq!(of(well), NextStep::Close);
        for kubelet in [KubeletNow::Stopped, KubeletNow::Masked, KubeletNow::Unknown] {
            assert_eq!(of(WindowStanding { kubelet, ..well }), NextStep::Resume);
        }
        let kubelet = KubeletNow::NotPaused;
        assert_eq!(of(WindowStanding { kubelet, ..well }), NextStep::Close);
        for (all, without, next) in [
            (2, 0, NextStep::Restore),
            (2, 1, NextStep::Restore),
            (2, 2, NextStep::Force),
        ] {
            let lost = lost(all, without);
            let now = WindowStanding {
                lost: Some(&lost),
                ..well
            };
            assert_eq!(of(now), next);
            let is_command_running = true;
            let next = of(WindowStanding {
                is_command_running,
                ..now
            });
            assert_eq!(next, NextStep::WaitForCommand);
            let is_working = true;
            assert_eq!(of(WindowStanding { is_working, ..now }), NextStep::Wait);
            let is_of_other_boot = true;
            let next = of(WindowStanding {
                is_of_other_boot,
                ..now
            });
            assert_eq!(next, NextStep::Nothing);
        }
        assert_eq!(of(WindowStanding { lost: None, ..well }), NextStep::Restore);
    }
}
