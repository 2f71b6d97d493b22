//! One maintenance window, from the pause of kubelet to the proof that no pod was rebuilt: what netfix writes down before
//! it is done (`window.json`), and the record that is left of it (`windows/<id>.json`).
//!
//! Moments are milliseconds since the window's start, by a clock that nobody sets: a jump of the wall clock changes no
//! duration.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::identity::Holder;
use super::{GatewayView, InterfaceView, NodeIdentity, PodInfo, Problem, State};

/// Version of the format.
pub const SCHEMA: u32 = 1;

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
    /// The command that opened it: `upgrade` or `pause`.
    pub command: String,
    /// The machine and boot that it is of.
    pub node: NodeIdentity,
    /// The process that opened it.
    pub owner: Holder,
    /// When it was opened (RFC 3339, UTC, milliseconds).
    pub started: String,
    /// The same by the clock that counts from the machine's boot (`CLOCK_BOOTTIME`), in milliseconds.
    pub started_boottime: u64,
    /// When it was closed, in milliseconds since the start; null while it is open.
    pub ended: Option<u64>,
    /// How the command that closed it ended; null while it is open.
    pub exit: Option<u8>,
    /// The command that closed it, where that is not the one that opened it: `resume`, `upgrade`.
    pub closed_by: Option<String>,
    /// kubelet's unit; null where none ran here.
    pub hold: Option<Hold>,
    /// The user's command; null before it is started, and for `pause`.
    pub run: Option<Run>,
    /// What was done, in its order.
    pub phases: Vec<Phase>,
    /// Every running pod at the start, sorted by id.
    pub pods: Vec<WindowPod>,
    /// Everything that went wrong or is worth knowing.
    pub problems: Vec<Problem>,
    /// The file with the talk and the command's output; null when none could be kept.
    pub log: Option<String>,
}

/// A unit that is kept from running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// The unit, such as `kubelet.service`.
    pub unit: String,
    /// The transient timer that starts it again whatever happens to netfix.
    pub timer: String,
    /// How long the unit may be stopped, in seconds.
    pub deadline: u64,
    /// When the timer was armed; null before.
    pub armed: Option<u64>,
    /// When the unit was found stopped; null before.
    pub paused: Option<u64>,
    /// When the unit was found running again; null before.
    pub resumed: Option<u64>,
}

/// The user's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its process; null when it could not be started.
    #[serde(default)]
    pub process: Option<Holder>,
    /// Its exit code; null while it runs, and when a signal ended it or it could not be started.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it could not be started.
    pub error: Option<String>,
}

/// A part of a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Which.
    pub name: PhaseName,
    /// When it began.
    pub from: u64,
    /// When it ended; null while it lasts, and when netfix died in it.
    pub to: Option<u64>,
    /// Whether it did all that it was to do; null while that is not known.
    pub ok: Option<bool>,
}

/// The parts of a window, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseName {
    /// Could every pod be restored?
    Check,
    /// Writing everything down.
    Snapshot,
    /// Stopping kubelet.
    Pause,
    /// The user's command.
    Command,
    /// Waiting for the NIC and carrier, and putting back what is missing.
    Restore,
    /// Asking the gateways.
    Verify,
    /// A person at work, kubelet still paused.
    Hold,
    /// Starting kubelet.
    Resume,
    /// Watching that no pod is rebuilt.
    Proof,
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.pad(word.as_str().unwrap_or_default())
    }
}

/// What became of one pod.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowPod {
    /// Who it is.
    #[serde(flatten)]
    pub info: PodInfo,
    /// Its interfaces before the loss.
    pub before: Vec<InterfaceView>,
    /// Its interfaces at the end; null when nobody looked.
    pub after: Option<Vec<InterfaceView>>,
    /// How the restore left it; null when none was tried.
    pub state: Option<State>,
    /// How many steps that took.
    pub steps: usize,
    /// When the link was lost that it stands on; null when nothing was lost, or nobody saw it.
    pub lost: Option<u64>,
    /// When a gateway answered for the first time after that; null when none did.
    pub answered: Option<u64>,
    /// Its gateways' answers.
    pub gateways: Vec<GatewayView>,
    /// What the runtime said of it before the pause; null when no runtime knew it.
    pub lives_before: Option<Lives>,
    /// What the runtime said last; null when nobody asked or it was gone.
    pub lives_after: Option<Lives>,
    /// Whether it was rebuilt; null when that is not known.
    pub rebuilt: Option<bool>,
}

impl WindowPod {
    /// Milliseconds from the loss to the first answer of a gateway; `None` when either is not known.
    #[must_use]
    pub fn outage(&self) -> Option<u64> {
        self.answered?.checked_sub(self.lost?)
    }
}

/// What a runtime says of a pod: none of it stays the same when the pod is rebuilt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    /// Sandbox id.
    pub sandbox: String,
    /// How often the sandbox was made; null where the runtime does not count.
    pub attempt: Option<u32>,
    /// Its containers, sorted by name.
    pub containers: Vec<Container>,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Container {
    /// Its name in the pod.
    pub name: String,
    /// Its id.
    pub id: String,
    /// How often it was restarted; null where the runtime does not count.
    pub restarts: Option<u32>,
}

impl Window {
    /// Whether kubelet is to be kept from running, as far as this says.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.resumed.is_none())
    }

    /// Whether the user's command was begun, so that the network may not be what it was.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.phases.iter().any(|phase| phase.name == PhaseName::Command)
    }

    /// The phase that it is in, or died in.
    #[must_use]
    pub fn phase(&self) -> Option<PhaseName> {
        self.phases.last().filter(|phase| phase.to.is_none()).map(|phase| phase.name)
    }
}
