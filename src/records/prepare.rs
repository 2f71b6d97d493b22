//! From a request to the surveyed pods.

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use crate::inventory::Inventory;
use crate::matching::Selection;
use crate::model::checkpoint::Extension;
use crate::model::pod::by_netns::ByNetns;
use crate::model::problem::{ForeignCause, MatchingCause};
use crate::model::{Checkpoint, IfName, NodeState, Problem};
use crate::records::cni_cache;
use crate::records::contest;
use crate::records::stored::{Stored, load_light, load_node};
use crate::records::survey::{Records, Surveyed, survey_from};
use crate::refusal::Refusal;
use crate::runtime;
use crate::store::Store;

/// The pods of a command, and the source of what they had.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub selection: Selection,
    pub source: Source,
    /// The parent of interfaces for which their source names none.
    pub parent: Option<IfName>,
    pub runtimes: runtime::Config,
    /// libcni's cache, which shows who had a contested address first.
    pub cni_cache: PathBuf,
}

/// Where records come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The state directory, or one generation of it.
    Checkpoints { generation: Option<u64> },
    /// libcni's cache in this folder.
    CniCache(PathBuf),
    /// Records and node state in memory, should the disk fail.
    Memory(Box<(Stored, Option<NodeState>)>),
}

/// Surveys what a request needs, and refuses it if its source cannot be read.
pub(crate) fn prepare(request: Request, store: &Store) -> Result<Surveyed, Refusal> {
    let Request {
        selection,
        source,
        parent,
        runtimes,
        cni_cache,
    } = request;
    let nothing_stored = match &source {
        Source::CniCache(folder) => {
            let folder = folder.display().to_string();
            ForeignCause::NoCacheEntries { folder }.error(selection.to_string())
        }
        _ => MatchingCause::NoCheckpoints.error(selection.to_string()),
    };
    // Side by side: a pod of tens of thousands of routes has a large file.
    let (read, inventory) = thread::scope(|scope| {
        let reading = scope.spawn(|| read(source, &selection, store));
        let inventory = Inventory::open(&selection);
        let read = reading.join();
        (read.unwrap_or_else(|panic| resume_unwind(panic)), inventory)
    });
    let (records, node, problems) = read?;
    let mut inventory = inventory?;
    if needs_runtime(&records, &inventory, &selection) {
        inventory.attribute(&runtimes, &selection)?;
    }
    let parent = parent.as_ref();
    let sources = contest::Sources {
        store,
        cni_cache: &cni_cache,
    };
    let mut surveyed = survey_from(
        inventory, records, node, parent, &selection, sources, problems,
    )?;
    let Surveyed {
        matched,
        rejected,
        damaged,
        ..
    } = &surveyed;
    if matched.is_empty() && rejected.is_empty() && damaged.is_empty() {
        surveyed.problems.push(nothing_stored);
    }
    Ok(surveyed)
}

/// What a source has: its records, the node's state, and the problems of that.
fn read(
    source: Source,
    selection: &Selection,
    store: &Store,
) -> Result<(Records, Option<NodeState>, Vec<Problem>), Refusal> {
    let mut problems = Vec::new();
    let (records, node) = match source {
        Source::Checkpoints { generation } => {
            let store = store.at(generation)?;
            let node = load_node(&store, &mut problems);
            let stored = load_light(&store, selection, node.as_ref())?;
            (Records::Stored(stored), node)
        }
        Source::CniCache(folder) => {
            let cache = cni_cache::read(&folder)?;
            (Records::Cache(cache), load_node(store, &mut problems))
        }
        Source::Memory(memory) => {
            let (stored, node) = *memory;
            (Records::Stored(stored), node)
        }
    };
    Ok((records, node, problems))
}

/// Whether the kernel alone cannot identify the pod of some selected record; then the runtime must.
fn needs_runtime(records: &Records, inventory: &Inventory, selection: &Selection) -> bool {
    match records {
        Records::Cache(_) => true,
        Records::Stored(stored) => {
            let checkpoints = stored.checkpoints.iter();
            let selected = checkpoints.filter(|(info, _)| selection.wants_pod(info));
            inventory.cannot_tell(selected.map(|(_, checkpoint)| checkpoint))
        }
    }
}

impl Inventory {
    /// Whether the kernel alone cannot identify the pod of one of these checkpoints.
    pub(crate) fn cannot_tell<'a>(
        &self,
        checkpoints: impl IntoIterator<Item = &'a Checkpoint>,
    ) -> bool {
        let identities = self.pods.iter().map(|pod| &pod.identity);
        let by_netns = ByNetns::new(identities.map(|identity| (identity, identity)));
        let is_doubtful = |extension: &Extension| {
            let then = &extension.identity;
            let mut candidates = by_netns.candidates(then);
            candidates.any(|now| then.may_be(now) && !then.is_same(now))
        };
        let cannot_tell = |checkpoint: &Checkpoint| {
            let Some(extension) = &checkpoint.netfix else {
                return true;
            };
            extension.node.is_same(&self.node) && is_doubtful(extension)
        };
        checkpoints.into_iter().any(cannot_tell)
    }
}
