//! The parts of a document: the host, the pods, and what only one command has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::model::text::word;
use crate::model::{
    Bytes, Checkpoint, Code, GatewayAnswer, IfName, Interface, LossCause, Nic, NodeIdentity,
    NodeState, PodId, PodInfo, PodSummary, Problem, Rehearsal, Severity, State, TargetAnswer,
};
use crate::records::stored::shown;
use crate::report::window::hold::HoldView;
use crate::report::window::view::WindowView;
use crate::situation::guard_now::GuardNow;
use crate::upgrade::device_loss::DeviceLoss;
use crate::window::network::PodNetworks;
use crate::window::status::{StatusPart, Unread};

/// One generation.
#[derive(Debug, Clone, Serialize)]
pub struct GenerationView {
    /// Its number.
    pub number: u64,
    /// When its newest file was written or verified (RFC 3339); null where none has a time.
    pub time: Option<String>,
    /// Whether it has exactly the checkpoints that are stored now.
    pub current: bool,
    /// Whether it was created to keep checkpoints that were about to be replaced.
    pub aside: bool,
    /// Its checkpoints.
    pub pods: usize,
    /// Checkpoints that the generation before does not have; null when there is none before.
    pub added: Option<Vec<PodId>>,
    /// Checkpoints that differ from those of the generation before.
    pub changed: Option<Vec<PodId>>,
    /// Checkpoints that only the generation before has.
    pub removed: Option<Vec<PodId>>,
    /// Checkpoints that cannot be read.
    pub damaged: Vec<PodId>,
}

/// The state now of the pod of one checkpoint, beside the pod's own view.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ShowView {
    /// Whether the pod is running; null when that is unknown.
    pub alive: Option<bool>,
    /// The link that it has lost; null when none is lost, or when the pod is not running.
    pub lost: Option<String>,
    /// What went of it.
    pub lost_what: Option<LossCause>,
    /// Seconds since the checkpoint was written; null when the file has no time.
    pub written_age: Option<u64>,
    /// Settings in the checkpoint that differ from the defaults of a new link.
    pub settings: Vec<String>,
}

/// The state of everything.
#[derive(Debug, Clone, Serialize)]
pub struct StatusView {
    /// The state directory.
    pub state_dir: String,
    /// What the configuration file sets; null when there is none.
    pub config: Option<ConfigView>,
    /// Checkpoints that can be read.
    pub checkpoints: usize,
    /// Checkpoints that cannot be read.
    pub damaged: usize,
    /// Kept snapshots; null when they cannot be read.
    pub generations: Option<usize>,
    /// When the last snapshot that covered everything was completed (RFC 3339); null when none was in this boot, or when that
    /// is unknown.
    pub last_success: Option<String>,
    /// How long ago that was, in seconds.
    pub last_success_age: Option<u64>,
    /// Running pods.
    pub running: usize,
    /// Running pods that have a checkpoint.
    pub covered: usize,
    /// Which running pods have their network; null when that cannot be determined.
    pub network: Option<PodNetworks>,
    /// The devices of the host that were recorded and exist now.
    pub nics: Vec<Nic>,
    /// Network namespaces that belong to no pod.
    pub private_namespaces: usize,
    /// The container runtimes that answered.
    pub runtimes: Vec<RuntimeView>,
    /// The process that holds the lock; null when it is free.
    pub lock: Option<String>,
    /// The maintenance window that is open; null when none is, or when that is unknown.
    pub window: Option<HoldView>,
    /// `netfix guard`; null when that is unknown.
    pub guard: Option<GuardNow>,
    /// The newest window that is closed; null when there is none, or when that is unknown.
    pub last: Option<WindowView>,
    /// What could not be read.
    pub unread: Vec<UnreadView>,
}

/// A configuration file.
#[derive(Debug, Clone, Serialize)]
pub struct ConfigView {
    /// The file.
    pub file: String,
    /// What it sets.
    pub settings: Vec<SettingView>,
    /// Why it is not used, with its path and line; null: it is.
    pub error: Option<String>,
}

/// An option with the default that the configuration file sets.
#[derive(Debug, Clone, Serialize)]
pub struct SettingView {
    /// The command that it is for; null: every command that has the option.
    pub command: Option<String>,
    /// The option without its dashes.
    pub option: String,
    /// One value; several for an option that can be repeated.
    pub values: Vec<String>,
}

/// A part of the state that could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct UnreadView {
    /// The part.
    pub part: StatusPart,
    /// Why.
    pub reason: String,
}

impl From<Unread> for UnreadView {
    fn from(Unread { part, problem }: Unread) -> Self {
        Self {
            part,
            reason: problem.line(None),
        }
    }
}

/// A container runtime that answered.
#[derive(Debug, Clone, Serialize)]
pub struct RuntimeView {
    /// Its socket.
    pub endpoint: String,
    /// Name and version; null when it reports none.
    pub version: Option<String>,
    /// Pods with a network namespace of their own.
    pub pods: usize,
}

/// The answer of `check`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CheckView {
    /// When it was checked (RFC 3339).
    pub at: String,
    /// The worst finding.
    pub status: CheckStatus,
    /// Running pods by state; every state that `check` gives is there. Null: netfix saw none, but could not read every pod.
    pub pods: BTreeMap<State, Option<usize>>,
    /// Running pods that have lost something, by what; every word is there. Null as in `pods`.
    pub lost: BTreeMap<&'static str, Option<usize>>,
    /// Running pods that are not among them, because their devices have other drivers; null as in `pods`.
    pub left_out: Option<usize>,
    /// Their names.
    #[serde(skip)]
    pub left_out_pods: Vec<String>,
    /// Age in seconds of the oldest checkpoint of a running pod, since the last snapshot that verified it;
    /// null when no running pod has one.
    pub oldest_age: Option<u64>,
    /// Whether anything was read.
    #[serde(skip)]
    pub is_checked: bool,
    /// How old a checkpoint may be.
    #[serde(skip)]
    pub max_age: Duration,
    /// Whether it was about some of the pods.
    #[serde(rename = "selection")]
    pub is_selection: bool,
    /// Steps that a restore would take now, on the host and in all pods; null as in `pods`.
    pub steps: Option<usize>,
    /// Objects of running pods that no restore could bring back; null as in `pods`.
    pub unsupported: Option<usize>,
    /// When the last snapshot that covered everything was taken (RFC 3339); null when none was in this boot.
    pub last_success: Option<String>,
    /// The rehearsal; null without `--rehearse`, and where it could not begin.
    pub rehearsal: Option<Rehearsal>,
}

impl CheckView {
    /// The running pods that were seen.
    pub(in crate::report) fn total(&self) -> usize {
        self.pods.values().flatten().sum()
    }

    /// The running pods that are known to have lost something.
    pub(in crate::report) fn lost(&self) -> usize {
        self.lost.values().flatten().sum()
    }

    /// The running pods in a state.
    pub(in crate::report) fn count(&self, state: State) -> usize {
        self.pods.get(&state).copied().flatten().unwrap_or_default()
    }

    /// Whether pods may have lost something without being counted.
    pub(in crate::report) fn is_unread(&self) -> bool {
        self.lost.values().any(Option::is_none)
    }
}

/// What `check` found; the number is its exit code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum CheckStatus {
    /// Every running pod could be restored.
    #[default]
    Ok = 0,
    /// Something needs attention.
    Warning = 1,
    /// A pod is lost, or could not be restored.
    Critical = 2,
    /// It could not be determined.
    Unknown = 3,
}

impl CheckStatus {
    /// What one problem makes of a check. What could not be read is unknown.
    pub(crate) fn of(problem: &Problem) -> Self {
        use Code::{NotFound, NotTheHost, PermissionDenied, RuntimeUnreachable, Unreadable};
        match (problem.severity, problem.code()) {
            (
                Severity::Error,
                RuntimeUnreachable | Unreadable | PermissionDenied | NotFound | NotTheHost,
            ) => Self::Unknown,
            (Severity::Error, _) => Self::Critical,
            (Severity::Warning, _) => Self::Warning,
            (Severity::Info, _) => Self::Ok,
        }
    }

    /// What all problems make of it: what is unknown counts only if nothing is known to be lost.
    pub(crate) fn of_all(problems: &[Problem]) -> Self {
        let all = problems.iter().map(Self::of);
        let all: BTreeSet<Self> = all.collect();
        let worst = all.contains(&Self::Critical).then_some(Self::Critical);
        worst.or(all.last().copied()).unwrap_or_default()
    }
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        word(self, f)
    }
}

/// The host.
#[derive(Debug, Default, Serialize)]
pub struct NodeView {
    /// Host name.
    pub hostname: Option<String>,
    /// Machine id; null when it is unknown.
    pub machine_id: Option<String>,
    /// When its state was saved (RFC 3339).
    pub created: Option<String>,
    /// The host's state after the command; for `verify`, whether it reaches its gateways.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Steps taken or planned in the host's namespace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// What the host loses, by device (`upgrade --dry-run`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceLoss>,
    /// The rehearsal of the restore (`upgrade --dry-run`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehearsal: Option<Rehearsal>,
    /// Answers of its gateways.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayAnswer>,
}

/// One pod.
#[derive(Debug, Clone, Serialize)]
pub struct PodView {
    /// Its names; null for what is unknown.
    #[serde(flatten)]
    pub info: PodInfo,
    /// A path of its network namespace; null when its file cannot be read.
    pub netns: Option<Bytes>,
    /// What the command found or did.
    pub state: State,
    /// The word for what it has lost, one of those of `netfix_pods_lost`; null where nothing is (`check`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostView>,
    /// When its checkpoint was written (RFC 3339).
    pub created: Option<String>,
    /// When a snapshot last verified its checkpoint (RFC 3339); null when that is unknown.
    pub seen: Option<String>,
    /// Its interfaces, from the checkpoint.
    pub interfaces: Vec<Interface>,
    /// The names of its interfaces before the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Vec<IfName>>,
    /// The names of its interfaces after the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Vec<IfName>>,
    /// Steps taken or planned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// Answers of its gateways.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<GatewayAnswer>,
    /// Answers of `--ping` and `--tcp` (`verify`).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetAnswer>,
    /// The whole checkpoint (`show`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// What a pod has lost, where the command knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LostView(pub Option<&'static str>);

impl NodeView {
    /// The host, of which only the name is known.
    pub(crate) fn of(node: &NodeIdentity) -> Self {
        Self {
            hostname: node.hostname.clone(),
            machine_id: node.machine_id.clone(),
            ..Self::default()
        }
    }

    /// The host, and when its state was recorded.
    pub(crate) fn recorded(node: &NodeIdentity, created: Option<String>) -> Self {
        Self {
            created,
            ..Self::of(node)
        }
    }
}

impl PodView {
    /// A pod and what a command found or did.
    pub(crate) fn new(pod: PodSummary, state: State) -> Self {
        let PodSummary {
            info,
            netns,
            created,
            interfaces,
        } = pod;
        Self {
            info,
            netns,
            state,
            lost: None,
            created,
            seen: None,
            interfaces,
            before: None,
            after: None,
            steps: Vec::new(),
            gateways: Vec::new(),
            targets: Vec::new(),
            checkpoint: None,
        }
    }

    /// With the time at which a snapshot last verified its checkpoint.
    pub(crate) fn verified_in(mut self, node: Option<&NodeState>) -> Self {
        let seen = node.and_then(|node| node.seen(&self.info.id));
        self.seen = seen.as_ref().map(shown);
        self
    }
}
