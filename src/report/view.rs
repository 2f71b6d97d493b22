//! The document that every command answers with (`-o json`), schema `netfix/v1`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::window::{ReportView, WindowView};
use crate::model::window::{PhaseName, Run};
use crate::model::{GatewayView, IfName, InterfaceView, PodId, PodInfo, Problem, State};

/// The answer of one command.
#[derive(Debug, Serialize)]
pub struct Document {
    /// Always `netfix/v1`.
    pub schema: &'static str,
    /// The command.
    pub command: &'static str,
    /// The exit code.
    pub exit: u8,
    /// The host.
    pub node: NodeView,
    /// The pods.
    pub pods: Vec<PodView>,
    /// Everything that went wrong or is worth knowing.
    pub problems: Vec<Problem>,
    /// What only this command answers.
    #[serde(flatten)]
    pub extra: Option<Extra>,
}

/// A key of the document that only one command has.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extra {
    /// `check`
    Check(CheckView),
    /// `status`
    Status(Box<StatusView>),
    /// `show`
    Show(ShowView),
    /// `list --generations`
    Generations(Vec<GenerationView>),
    /// `report`
    Report(Box<ReportView>),
    /// `report --list`
    Windows(Vec<WindowView>),
    /// `snapshot` and `prune`
    Kept(KeptView),
    /// `pause`, `resume` and `upgrade`
    Window(Box<HoldView>),
}

/// A maintenance window, in short; `report` tells all of it.
#[derive(Debug, Clone, Serialize)]
pub struct HoldView {
    /// Its name.
    pub id: String,
    /// The command that opened it.
    pub command: String,
    /// When (RFC 3339).
    pub started: String,
    /// Whether the process that opened it is still at work.
    pub kept: bool,
    /// That process.
    pub pid: u32,
    /// The phase that it is in, or died in; null when it is in none.
    pub phase: Option<PhaseName>,
    /// kubelet's unit; null where none was to be paused.
    pub unit: Option<String>,
    /// systemd's word for how the unit is at this moment; null when it was not asked.
    pub unit_state: Option<String>,
    /// Whether the unit is kept from running at this moment; null when systemd was not asked.
    pub held: Option<bool>,
    /// Seconds for which the unit was, or has been, paused; null when it was not.
    pub paused_for: Option<u64>,
    /// Seconds until the unit is started again whatever happens; null when nothing is paused.
    pub deadline_in: Option<u64>,
    /// The user's command; null when none was started.
    pub run: Option<Run>,
    /// How the window ended; null while it is open.
    pub exit: Option<u8>,
    /// The file with the talk and the command's output.
    pub log: Option<String>,
}

/// What became of the generations.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KeptView {
    /// The one that was made; null when none was.
    pub generation: Option<u64>,
    /// The newest one, where none was made because it holds the same, but for times.
    pub same_as: Option<u64>,
    /// Those that were removed, oldest first.
    pub removed: Vec<u64>,
}

/// One generation.
#[derive(Debug, Clone, Serialize)]
pub struct GenerationView {
    /// Its number.
    pub number: u64,
    /// When the newest of what it holds was written or found true (RFC 3339); null where nothing in it says so.
    pub time: Option<String>,
    /// Whether it holds exactly what is stored now.
    pub current: bool,
    /// Whether it was put aside before something of it was replaced.
    pub aside: bool,
    /// How many checkpoints it holds.
    pub pods: usize,
    /// Checkpoints that the one before it has not; null where none is before it.
    pub added: Option<Vec<PodId>>,
    /// Checkpoints that differ from those of the one before it.
    pub changed: Option<Vec<PodId>>,
    /// Checkpoints that only the one before it has.
    pub removed: Option<Vec<PodId>>,
    /// Checkpoints that cannot be read.
    pub damaged: Vec<PodId>,
}

/// What is known of the living pod of one checkpoint, beside the pod's own view.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ShowView {
    /// Whether the pod lives; null when that could not be found out.
    pub alive: Option<bool>,
    /// The link that it has lost; null when none is lost, or when the pod does not live.
    pub lost: Option<String>,
    /// Seconds since the checkpoint was written; null for a file that does not say when.
    pub written_age: Option<u64>,
    /// Settings in the checkpoint that a new link of the pod would not have by itself.
    pub settings: Vec<String>,
}

/// How things stand.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView {
    /// The state folder.
    pub state_dir: String,
    /// Checkpoints that can be read.
    pub checkpoints: usize,
    /// Checkpoints that cannot.
    pub damaged: usize,
    /// Kept snapshots.
    pub generations: usize,
    /// When the last snapshot that covered everything was completed (RFC 3339); null when none was in this boot.
    pub last_success: Option<String>,
    /// The same in seconds before now.
    pub last_success_age: Option<u64>,
    /// Running pods.
    pub running: usize,
    /// Running pods that have a checkpoint.
    pub covered: usize,
    /// The container runtimes that answered.
    pub runtimes: Vec<RuntimeView>,
    /// Who holds the lock; null when nobody does.
    pub lock: Option<String>,
    /// The maintenance window that is open; null when none is.
    pub window: Option<HoldView>,
}

/// A container runtime that answered.
#[derive(Debug, Clone, Serialize)]
pub struct RuntimeView {
    /// Its socket.
    pub endpoint: String,
    /// Name and version; null when it does not say.
    pub version: Option<String>,
    /// Pods with a network namespace of their own.
    pub pods: usize,
}

/// What monitoring wants to know.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckView {
    /// The worst finding.
    pub status: Verdict,
    /// Running pods by state; every state that `check` gives is there.
    pub pods: BTreeMap<State, usize>,
    /// Age in seconds of the oldest checkpoint of a running pod, counted from the last snapshot that found it true;
    /// null when no running pod has one.
    pub oldest_age: Option<u64>,
    /// Steps that a restore would take now, on the host and in all pods.
    pub steps: usize,
    /// When the last snapshot that covered everything was taken (RFC 3339); null when none was in this boot.
    pub last_success: Option<String>,
}

/// What `check` found; the number is its exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Every running pod could be restored.
    #[default]
    Ok = 0,
    /// Something wants attention.
    Warning = 1,
    /// A pod is lost, or could not be restored.
    Critical = 2,
    /// It could not be found out.
    Unknown = 3,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        })
    }
}

/// The host.
#[derive(Debug, Default, Serialize)]
pub struct NodeView {
    /// Host name.
    pub hostname: Option<String>,
    /// When its state was written down (RFC 3339), where it was.
    pub created: Option<String>,
    /// The host's state after the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Steps taken or planned in the host's namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
}

/// One pod.
#[derive(Debug, Clone, Serialize)]
pub struct PodView {
    /// Who it is; null what nobody knows.
    #[serde(flatten)]
    pub info: PodInfo,
    /// A path that leads to its network namespace; null where a damaged file hides it.
    pub netns: Option<String>,
    /// What the command found or did.
    pub state: State,
    /// When its checkpoint was written (RFC 3339).
    pub created: Option<String>,
    /// When a snapshot last found its checkpoint true (RFC 3339); null where that is not known.
    pub seen: Option<String>,
    /// Its interfaces as the checkpoint has them.
    pub interfaces: Vec<InterfaceView>,
    /// The interfaces that it had before the command, where that is another question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Vec<IfName>>,
    /// The interfaces that it has after the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<IfName>>,
    /// Steps taken or planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Answers of its gateways.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayView>,
    /// Everything that the checkpoint has (`show`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<crate::model::Checkpoint>>,
}
