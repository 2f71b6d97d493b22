//! One maintenance window, from the pause of kubelet to the rebuild check: each step is written to `window.json` before it is
//! taken; the record of a closed window is `windows/<id>.json`.
//!
//! Times are milliseconds since the window's start, by the monotonic clock.

mod guard;
mod kernel;
mod kind;
mod reboot;
mod run;
mod setting;
mod shown;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{
    GatewayAnswer, IfName, Interface, NodeIdentity, PodId, PodInfo, ProbeRate, Problem, Rehearsal,
    State, TargetAnswer, WindowNic, is_false,
};
use crate::model::fate::{ContainerChange, Fate, PodFingerprint};
use crate::model::pod::identity::Holder;

pub use guard::{
    GUARD_SCHEMA, GuardDeed, GuardHold, GuardPace, GuardRecord, GuardWatch, IncompletePod,
    UnplannedEnd,
};
pub use kernel::{KernelCause, KernelLine, KernelLog, KernelNames, LoggedCause};
pub use kind::WindowKind;
pub(crate) use run::command_line;
pub use run::{Rollback, RollbackReason, Run};
pub use setting::{LostSetting, SettingResult};
pub use shown::Shown;

/// Version of the format: 2 has [`Window::nics`] and [`Window::rollback`].
pub const SCHEMA: u32 = 2;
/// What closed a window that a reboot ended.
pub const REBOOT: &str = "reboot";

/// Seconds without kubelet after which the node is marked `NotReady`: node-monitor-grace-period of
/// kube-controller-manager (40 s; 50 s since Kubernetes 1.32).
pub const NOT_READY_AFTER: u64 = 40;
/// Seconds without kubelet after which pods are marked for eviction: 300 s of toleration (`DefaultTolerationSeconds`)
/// after `NotReady`.
pub const EVICTION_AFTER: u64 = NOT_READY_AFTER + 300;

/// A maintenance window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Version of this format.
    pub schema: u32,
    /// Its name, from its start: `20261121T031500Z`.
    pub id: String,
    /// Its place among the windows of its state directory, which no clock changes; null in the record of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// How often the record was written; null in that of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The version of the netfix that wrote it; null in the record of an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The command that opened it: `upgrade`, `pause`, `guard` or `restore`.
    pub command: String,
    /// Its kind; null for one that was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<WindowKind>,
    /// The machine and boot.
    pub node: NodeIdentity,
    /// The process that opened it.
    pub owner: Holder,
    /// When it was opened (RFC 3339, UTC, milliseconds).
    pub started: String,
    /// When it was opened, in milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
    pub started_boottime: u64,
    /// How far the wall clock was set while the window was open, in milliseconds; null when it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_set: Option<i64>,
    /// When it was closed, in milliseconds since the start; null while it is open. Of a window that a reboot ended, the last
    /// moment that is known.
    pub ended: Option<u64>,
    /// Exit code of the command that closed it; null while it is open.
    pub exit: Option<u8>,
    /// The command that closed it, if another one opened it: `resume`, `upgrade`.
    pub closed_by: Option<String>,
    /// kubelet's unit; null where none was running.
    #[serde(rename = "hold")]
    pub pause: Option<KubeletPause>,
    /// The user's command; null before it is started, and for `pause`.
    pub run: Option<Run>,
    /// The rollback; null when none was started.
    #[serde(default)]
    pub rollback: Option<Rollback>,
    /// The host's NICs before and after; null when unknown.
    #[serde(default)]
    pub nics: Option<Vec<WindowNic>>,
    /// The settings of NICs that were lost, and what the restores did with each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<LostSetting>,
    /// The host after the last restore; null before it, and in the record of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<State>,
    /// What the answers of the host's gateways have shown; null where it has none, and in the record of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_shown: Option<Shown>,
    /// The recorded devices of the host that were missing or made anew after COMMAND; null before a restore has compared them, and in the
    /// record of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices_lost: Option<BTreeSet<IfName>>,
    /// The rehearsal of the restore; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// What the kernel logged about the recorded devices; absent where it logged nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelLog>,
    /// The phases, in order.
    pub phases: Vec<Phase>,
    /// Every running pod at the start, sorted by id.
    pub pods: Vec<WindowPod>,
    /// Running pods that COMMAND cuts off and that were not selected: they are observed, not restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unselected: Vec<WindowPod>,
    /// All problems.
    pub problems: Vec<Problem>,
    /// The file with netfix's messages and the command's output; null when it could not be written.
    pub log: Option<String>,
}

/// A paused unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KubeletPause {
    /// The unit, such as `kubelet.service`.
    pub unit: String,
    /// The transient timer that starts it again, even if netfix dies.
    pub timer: String,
    /// How long the unit may be stopped, in seconds.
    pub deadline: u64,
    /// The `--probe-rate` of the restore at the deadline, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_rate: Option<ProbeRate>,
    /// When the timer was armed; null before.
    pub armed: Option<u64>,
    /// When systemd reported the unit as stopped; null before.
    pub paused: Option<u64>,
    /// When systemd reported the unit as running again; null before.
    pub resumed: Option<u64>,
}

/// A phase of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: PhaseName,
    /// When it began.
    pub from: u64,
    /// When it ended; null while it runs, and when netfix died in it.
    pub to: Option<u64>,
    /// Whether it succeeded; null while unknown.
    pub ok: Option<bool>,
}

impl Phase {
    /// A phase that begins at this moment.
    #[must_use]
    pub fn begun(name: PhaseName, from: u64) -> Self {
        Self {
            name,
            from,
            to: None,
            ok: None,
        }
    }
}

/// The phases of a window, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// From a loss that no COMMAND caused until its restore could begin.
    Loss,
    /// Checking that every pod could be restored.
    Check,
    /// Writing the checkpoints.
    Snapshot,
    /// Stopping kubelet.
    Pause,
    /// The user's command.
    Command,
    /// Waiting for NIC and carrier, and restoring the pods.
    Restore,
    /// Probing the gateways.
    Verify,
    /// The user's command that brings the former driver back.
    Rollback,
    /// kubelet is still paused, for a person at work.
    #[serde(rename = "hold")]
    Repair,
    /// Starting kubelet.
    Resume,
    /// Checking that no pod was rebuilt.
    #[serde(rename = "proof")]
    RebuildCheck,
}

/// One pod in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowPod {
    /// The pod.
    #[serde(flatten)]
    pub info: PodInfo,
    /// Its interfaces before the loss.
    pub before: Vec<Interface>,
    /// Its interfaces at the end; null when unknown.
    pub after: Option<Vec<Interface>>,
    /// Its state after the restore; null without a restore.
    pub state: Option<State>,
    /// The number of steps of the restore.
    pub steps: usize,
    /// When its parent was lost; null when nothing was lost, or the loss was not observed.
    pub lost: Option<u64>,
    /// When a gateway first answered after that; null when none did.
    pub answered: Option<u64>,
    /// Its gateways' answers.
    pub gateways: Vec<GatewayAnswer>,
    /// What the targets answered; empty without targets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetAnswer>,
    /// What these answers have shown; null without a probe, and in the record of an earlier netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// Its fingerprint before the pause; null when no runtime reported it.
    #[serde(rename = "lives_before")]
    pub fingerprint_before: Option<PodFingerprint>,
    /// Its last fingerprint; null when no runtime was queried, or the pod was gone.
    #[serde(rename = "lives_after")]
    pub fingerprint_after: Option<PodFingerprint>,
    /// Whether it was rebuilt; null when unknown.
    pub rebuilt: Option<bool>,
    /// What happened to it; null when unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<Fate>,
    /// When netfix noticed that it is gone; null where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<u64>,
    /// What happened to its containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_changes: Vec<ContainerChange>,
    /// Whether an operator must look at what happened to it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unexpected: bool,
}

impl WindowPod {
    /// A pod before the loss.
    #[must_use]
    pub fn new(info: PodInfo, before: Vec<Interface>) -> Self {
        Self {
            info,
            before,
            after: None,
            state: None,
            steps: 0,
            lost: None,
            answered: None,
            gateways: Vec::new(),
            targets: Vec::new(),
            shown: None,
            fingerprint_before: None,
            fingerprint_after: None,
            rebuilt: None,
            fate: None,
            gone: None,
            container_changes: Vec::new(),
            unexpected: false,
        }
    }

    /// Whether it is younger than the snapshot of the window, and is cut off.
    #[must_use]
    pub fn became_cut_off(&self) -> bool {
        self.state == Some(State::CutOff) && self.before.is_empty()
    }

    /// What happened to it. Records of an earlier netfix only have whether it was rebuilt.
    #[must_use]
    pub fn fate(&self) -> Option<Fate> {
        let earlier = |rebuilt| if rebuilt { Fate::Rebuilt } else { Fate::Same };
        self.fate.or_else(|| self.rebuilt.map(earlier))
    }

    /// What its answers have shown. Records of an earlier netfix only have the answers.
    #[must_use]
    pub fn shown(&self) -> Option<Shown> {
        let has = |answer| self.gateways.iter().any(|one| one.reachable == answer);
        self.shown.or(match () {
            () if has(Some(false)) => Some(Shown::NotAgain),
            () if has(None) => Some(Shown::Unknown),
            () => has(Some(true)).then_some(Shown::Again),
        })
    }

    /// Whether it is gone, or was when netfix last looked.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        match self.fate() {
            Some(fate) => fate == Fate::Gone,
            None => self.gone.is_some(),
        }
    }

    /// Milliseconds from the loss to the first answer of a gateway; `None` when either is unknown.
    #[must_use]
    pub fn outage(&self) -> Option<u64> {
        self.answered?.checked_sub(self.lost?)
    }
}

/// Whether a window is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Closed,
    /// It is open, and the netfix that opened it is running.
    Kept,
    /// It is open, and that netfix is gone, as it should be after `pause`.
    Left,
}

impl Window {
    /// Whether kubelet is paused, according to this file.
    pub(crate) fn is_paused(&self) -> bool {
        self.pause
            .as_ref()
            .is_some_and(|pause| pause.resumed.is_none())
    }

    /// Whether the user's command was started, and may have changed the network.
    pub(crate) fn has_begun(&self) -> bool {
        self.phases
            .iter()
            .any(|phase| phase.name == PhaseName::Command)
    }

    /// Whether its snapshot was taken.
    pub(crate) fn has_snapshot(&self) -> bool {
        let mut phases = self.phases.iter();
        phases.any(|phase| phase.name == PhaseName::Snapshot && phase.ok == Some(true))
    }

    /// Whether a pod is one of this window.
    pub(crate) fn has_pod(&self, id: &PodId) -> bool {
        self.pods.iter().any(|pod| pod.info.id == *id)
    }

    /// When the deadline starts the paused unit, in milliseconds since the window's start; `None` if no unit was paused.
    pub(crate) fn deadline_at(&self) -> Option<u64> {
        let pause = self.pause.as_ref()?;
        Some(self.armed_at() + pause.deadline * 1000)
    }

    /// When the deadline was armed, in milliseconds since the window's start.
    pub(crate) fn armed_at(&self) -> u64 {
        let armed = self.pause.as_ref().and_then(|pause| pause.armed);
        // On a full disk `armed` is not recorded. The begin of the phase is, before the timer is armed.
        let armed = armed.or_else(|| {
            let mut phases = self.phases.iter();
            let begin = phases.rfind(|phase| phase.name == PhaseName::Pause)?;
            Some(begin.from)
        });
        armed.unwrap_or_default()
    }

    /// The phase that is running, or in which netfix died.
    pub(crate) fn phase(&self) -> Option<PhaseName> {
        self.phases
            .last()
            .filter(|phase| phase.to.is_none())
            .map(|phase| phase.name)
    }
}
