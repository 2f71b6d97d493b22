//! Records the network of every pod and of the host, and never loses a good checkpoint to a bad moment.
//!
//! `observe` takes down what runs and what is stored, `decide` alone decides what is written, kept and removed, and
//! `write` does it.

mod accept;
mod changes;
mod decide;
mod facts;
mod host_state;
mod neighbours;
mod observe;
mod write;

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use serde::Serialize;

pub(crate) use self::accept::Accept;
use self::decide::decide;
use self::observe::observe;
pub(crate) use self::write::Captured;
use crate::inventory::Inventory;
use crate::inventory::look::{Look, LookDepth};
use crate::kernel::events::LINKWATCH;
use crate::matching::Selection;
use crate::model::{NodeIdentity, NodeState, PodId, PodSummary, Problem};
use crate::plan::IndexMode;
use crate::progress::Listener;
use crate::records::stored::shown;
use crate::refusal::Refusal;
use crate::runtime;
use crate::store::Store;

/// A pod that is being deleted loses its interface a moment before its namespace, and a link that got carrier is
/// operational up to a second later: netfix observes both once more before it reports them.
pub(crate) const SECOND_LOOK: Duration = LINKWATCH;

/// What to record.
pub(crate) struct SnapshotRequest<'a> {
    pub selection: &'a Selection,
    pub runtimes: &'a runtime::RuntimeConfig,
    /// How many generations to keep.
    pub keep: NonZeroUsize,
    pub accept: Accept<'a>,
    /// What a restore will do with the ifindexes of NICs.
    pub index: IndexMode,
}

/// What a snapshot recorded.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub node: NodeIdentity,
    /// When the stored state of the host was recorded (RFC 3339); `None` where none is stored.
    pub recorded: Option<String>,
    /// Sorted by id.
    pub pods: Vec<PodSnapshot>,
    pub generations: Generations,
    /// Whose losses a person gave up; `None`: the host's.
    pub given_up: Vec<Option<PodId>>,
    pub problems: Vec<Problem>,
}

/// What a snapshot recorded of one pod.
#[derive(Debug)]
pub(crate) struct PodSnapshot {
    /// With the interfaces and the time of its checkpoint.
    pub pod: PodSummary,
    pub state: SnapshotState,
    /// When a snapshot last found its checkpoint true (RFC 3339).
    pub seen: Option<String>,
}

/// What a snapshot did with a pod's checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotState {
    Saved,
    /// The stored one has the same content.
    Unchanged,
    /// The pod has lost something; the good one was kept.
    Degraded,
    /// The pod has nothing to record.
    Empty,
    /// It has no interface and no checkpoint, and should have both.
    NoCheckpoint,
    /// The pod could not be read, or the checkpoint not be written.
    Failed,
}

impl Snapshot {
    /// `recorded` is the host's state as it is stored then.
    fn new(
        node: NodeIdentity,
        recorded: Option<&NodeState>,
        mut pods: Vec<PodSnapshot>,
        generations: Generations,
        problems: Vec<Problem>,
    ) -> Self {
        for one in &mut pods {
            let seen = recorded.and_then(|recorded| recorded.seen(&one.pod.info.id));
            one.seen = seen.as_ref().map(shown);
        }
        pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
        Self {
            node,
            recorded: recorded.map(|recorded| shown(&recorded.stamp())),
            pods,
            generations,
            given_up: Vec::new(),
            problems,
        }
    }
}

/// What happened to the generations, as documents have it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Generations {
    /// The generation that was created; null when none was.
    pub generation: Option<u64>,
    /// The newest one, when none was created because it has the same content, apart from times.
    pub same_as: Option<u64>,
    /// The generations that were removed, oldest first.
    pub removed: Vec<u64>,
}

/// Takes a snapshot. Between the two observations a restore may take the lock.
pub(crate) fn run(
    request: &SnapshotRequest<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Snapshot, Refusal> {
    let guard = store.lock("snapshot")?;
    let captured = look(request, store, progress)?;
    if !captured.has_degraded() {
        return captured.accepted(&guard, request.keep, progress);
    }
    drop(captured);
    drop(guard);
    thread::sleep(SECOND_LOOK);
    let guard = store.lock("snapshot")?;
    let captured = look(request, store, progress)?;
    captured.accepted(&guard, request.keep, progress)
}

/// Observes the selected pods and the host, and decides what to write; nothing is written. Returns the pods and the host too,
/// without their problems.
pub(crate) fn capture(
    look: Look,
    selection: &Selection,
    (accept, index): (Accept<'_>, IndexMode),
    store: &Store,
) -> Result<(Captured, Inventory), Problem> {
    let (now, stored, inventory) = observe(look, selection, (accept, index), store)?;
    let changes = decide(now, &stored);
    let captured = Captured {
        changes,
        stored,
        proxies: None,
    };
    Ok((captured, inventory))
}

fn look(
    request: &SnapshotRequest<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Captured, Refusal> {
    let look = Look::take(
        request.selection,
        request.runtimes,
        store,
        LookDepth::Whole,
        progress,
    )?;
    let wanted = (request.accept, request.index);
    Ok(capture(look, request.selection, wanted, store)?.0)
}
