//! What a snapshot changes: for each pod, for the host, and which checkpoints are removed.

use std::collections::BTreeMap;

use crate::model::checkpoint::Extension;
use crate::model::pod::empty::EmptyNetns;
use crate::model::{AnswerRecord, Checkpoint, NodeState, PodId, PodSummary, Problem, Stamp};

/// What a snapshot changes.
#[derive(Debug)]
pub(crate) struct Changes {
    /// When the pods were read, and on which machine.
    pub at: Stamp,
    /// In the order in which the pods were observed.
    pub pods: Vec<PodDecision>,
    /// Checkpoints to remove.
    pub gone: BTreeMap<PodId, Gone>,
    pub host: HostDecision,
    /// What has answered pods and the host, by their neighbour tables.
    pub answers: Vec<AnswerRecord>,
    /// The pods, and the host as `None`, whose losses a person gave up.
    pub given_up: Vec<Option<PodId>>,
    /// Those whose earlier answers are given up.
    pub silent: Vec<Option<PodId>>,
    /// Problems of the observation and of the pods.
    pub problems: Vec<Problem>,
    /// Whether all that is stored then becomes a generation.
    pub makes_generation: bool,
    /// Whether nothing is lost, and all pods were to be observed and could be read.
    pub is_complete: bool,
    /// Why something is not given up that is to be: then nothing may be written.
    pub refused: Vec<Problem>,
}

/// What a snapshot changes for one pod.
#[derive(Debug)]
pub(crate) struct PodDecision {
    /// With the interfaces and the time of its checkpoint.
    pub pod: PodSummary,
    pub change: PodChange,
}

/// What happens to a pod's checkpoint.
#[derive(Debug)]
pub(crate) enum PodChange {
    Write(WriteReason, Box<Checkpoint>),
    /// The stored one has the same content.
    Unchanged,
    /// The pod has lost something: the stored one stays.
    Lost,
    /// It has no interface and nothing is stored, and yet it should have one: nothing is written.
    NoRecord,
    /// It is not as libcni's result describes it, and has no good record: nothing is written.
    Incomplete,
    /// A link vanished while the pod was read, and nothing is stored: nothing is written.
    HalfLost,
    /// The pod has nothing to record.
    Empty,
    /// The pod could not be read: what is stored stays.
    Unread,
}

/// Why a checkpoint is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize))]
#[cfg_attr(test, serde(rename_all = "kebab-case"))]
pub(crate) enum WriteReason {
    /// Nothing is stored under its name.
    New,
    /// Its content differs from the stored one.
    Changed,
    /// The stored one is of another namespace.
    Replaced,
    /// The stored one cannot be read; a generation keeps it as it is.
    Corrupt,
}

impl PodChange {
    /// Whether nothing good is known of the pod.
    pub(super) fn is_unknown(&self) -> bool {
        matches!(self, Self::Unread | Self::NoRecord | Self::Incomplete)
    }

    /// Whether a file is written in the place of another.
    pub(super) fn replaces(&self) -> bool {
        matches!(self, Self::Write(reason, _) if *reason != WriteReason::New)
    }
}

/// Why a checkpoint is removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// Its pod is gone.
    Pod,
    /// Its pod has no interface, and a person gave up what it had.
    GivenUp,
    /// Its pod has a checkpoint under this id, which a runtime has reported since.
    Renamed(PodId),
}

/// What a snapshot changes for the host.
#[derive(Debug)]
pub(crate) struct HostDecision {
    pub change: HostChange,
    /// Whether the host or a pod has lost something.
    pub has_lost: bool,
    /// Whether a person gave up what the host has lost.
    pub is_given_up: bool,
    pub problems: Vec<Problem>,
}

/// What happens to the host's recorded state.
#[derive(Debug)]
pub(crate) enum HostChange {
    Record(Box<NodeState>),
    /// It stays, with new times at which checkpoints were verified, and these namespaces whose interfaces a person gave up.
    Keep(Vec<EmptyNetns>),
}

/// Whether two checkpoints differ in the time alone; then the disk is spared. What is left of a lifetime is true only together with
/// the time.
pub(super) fn has_same_content(old: &Checkpoint, new: &Checkpoint) -> bool {
    let Checkpoint {
        netns,
        podname,
        sandbox,
        ifname,
        result,
        netfix,
    } = old;
    let is_same = (netns, podname, sandbox) == (&new.netns, &new.podname, &new.sandbox)
        && (ifname, result) == (&new.ifname, &new.result);
    let (Some(old), Some(new)) = (netfix, &new.netfix) else {
        return is_same && netfix == &new.netfix;
    };
    // What is the same is so in any schema.
    let Extension {
        schema: _,
        created: _,
        created_boottime: _,
        node,
        identity,
        pod,
        stack,
        chain,
        cut_off,
        state,
    } = old;
    is_same
        && !state.has_lifetimes()
        && (node, identity) == (&new.node, &new.identity)
        && (pod, stack, chain) == (&new.pod, &new.stack, &new.chain)
        && (cut_off, state) == (&new.cut_off, &new.state)
}
