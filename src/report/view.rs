//! The document that every command answers with (`-o json`), schema `netfix/v1`.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use serde::Serialize;

use crate::model::{IfName, LinkKind, Mac, NetState, Parent, PodId, PodInfo, Problem};

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
    Status(StatusView),
    /// `show`
    Show(ShowView),
    /// `list --generations`
    Generations(Vec<GenerationView>),
    /// `snapshot` and `prune`
    Kept(KeptView),
}

/// What became of the generations.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KeptView {
    /// The one that was made; null when none was.
    pub generation: Option<u64>,
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

/// What a command found or did, for one pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A checkpoint was written.
    Saved,
    /// The checkpoint on disk already says the same.
    Unchanged,
    /// The pod has lost something; its good checkpoint was kept.
    Degraded,
    /// It may have lost something, and no checkpoint says what.
    NoCheckpoint,
    /// Nothing but a loopback device: nothing to save.
    Empty,
    /// A checkpoint is stored.
    Stored,
    /// A checkpoint of another program was taken over.
    Imported,
    /// netfix's own checkpoint is better and was kept.
    Kept,
    /// The pod lives no longer: there is nothing to do for it.
    Gone,
    /// The last snapshot that found it true is too long ago.
    Stale,
    /// The kernel has everything that the checkpoint has.
    InSync,
    /// Something is missing or differs.
    Drifted,
    /// Was missing something and has it again.
    Restored,
    /// Something was put back, something is still missing.
    Partial,
    /// The gateways answer.
    Reachable,
    /// A gateway does not answer.
    Unreachable,
    /// A gateway could not be asked.
    Unknown,
    /// There is no gateway to ask.
    NoGateway,
    /// It could not be handled at all.
    Failed,
}

impl State {
    /// Whether this is what the user hoped for.
    #[must_use]
    pub fn is_good(self) -> bool {
        use State::{
            Empty, Gone, Imported, InSync, Kept, NoGateway, Reachable, Restored, Saved, Stored, Unchanged,
        };
        matches!(
            self,
            Saved
                | Unchanged
                | Empty
                | Stored
                | Imported
                | Kept
                | Gone
                | InSync
                | Restored
                | Reachable
                | NoGateway
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.pad(word.as_str().unwrap_or_default())
    }
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

/// One interface of a pod.
#[derive(Debug, Clone, Serialize)]
pub struct InterfaceView {
    /// Its name.
    pub name: IfName,
    /// Its kind.
    pub kind: String,
    /// Its hardware address.
    pub mac: Option<Mac>,
    /// The host's link that it stands on.
    pub parent: Option<IfName>,
    /// MTU in bytes; null where the checkpoint does not say.
    pub mtu: Option<u32>,
    /// Its addresses with prefix length, without those that the kernel makes by itself.
    pub addresses: Vec<String>,
    /// Gateways reached through it.
    pub gateways: Vec<IpAddr>,
}

/// The answer of one gateway.
#[derive(Debug, Clone, Serialize)]
pub struct GatewayView {
    /// The gateway.
    pub address: IpAddr,
    /// The pod's interface.
    pub dev: IfName,
    /// Whether it answered; null when it could not be asked at all.
    pub reachable: Option<bool>,
    /// Round trip in microseconds; null when it did not answer.
    pub rtt_us: Option<u64>,
    /// The hardware address that answered.
    pub lladdr: Option<Mac>,
}

/// The interfaces of a state, without the loopback device.
#[must_use]
pub fn interfaces(state: &NetState) -> Vec<InterfaceView> {
    let links = state.links.iter().filter(|link| link.kind != LinkKind::Loopback);
    let view = |link: &crate::model::Link| {
        let addresses = state.addresses_of(&link.name).filter(|address| !address.comes_by_itself());
        let mut gateways: Vec<IpAddr> = Vec::new();
        for (gateway, dev) in state.routes.iter().flat_map(crate::model::Route::gateways) {
            if *dev == link.name && !gateways.contains(&gateway) {
                gateways.push(gateway);
            }
        }
        InterfaceView {
            name: link.name.clone(),
            kind: link.kind.name().to_owned(),
            mac: link.mac,
            parent: match &link.parent {
                Some(Parent::Own(name) | Parent::Host(name)) => Some(name.clone()),
                Some(Parent::Elsewhere) | None => None,
            },
            mtu: Some(link.mtu),
            addresses: addresses.map(|a| format!("{}/{}", a.local, a.prefix_len)).collect(),
            gateways,
        }
    };
    links.map(view).collect()
}
