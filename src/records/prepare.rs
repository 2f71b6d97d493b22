//! From a request to the surveyed pods.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::inventory::nics::{self, LLDPAD};
use crate::inventory::sockets::loaders;
use crate::inventory::{Inventory, procfs};
use crate::matching::{NetnsKey, Selection};
use crate::model::net::link::nic::NicGroup;
use crate::model::pod::by_netns::ByNetns;
use crate::model::problem::{ForeignCause, KeptIndex, MatchingCause};
use crate::model::{Checkpoint, IfName, NodeState, PodId, PodInfo, Problem};
use crate::plan::{DaemonState, IndexMode, NicMode, NicRules, snapshot_quality};
use crate::records::cni_cache;
use crate::records::contest::{self, CNI_CACHE};
use crate::records::fallback::{Fallback, FallbackRequest};
use crate::records::stored::{Stored, load_light, load_node};
use crate::records::survey::{Records, SourceContents, Surveyed, survey_from};
use crate::refusal::Refusal;
use crate::runtime::RuntimeConfig;
use crate::side_by_side;
use crate::store::Store;

/// The daemon that spreads interrupts over processors, repeatedly.
const IRQBALANCE: &str = "irqbalance";

/// The pods of a command, and the source of what they had.
#[derive(Debug, Clone)]
pub(crate) struct SurveyRequest {
    pub selection: Selection,
    pub source: RecordSource,
    /// What completes the source.
    pub fallback: Fallback,
    /// Whether to restore also what daemons own.
    pub with_daemons: bool,
    /// What becomes of settings of NICs.
    pub nic: NicMode,
    /// What becomes of the ifindexes of NICs.
    pub index: IndexMode,
    /// The parent of interfaces for which their source names none.
    pub parent: Option<IfName>,
    pub runtimes: RuntimeConfig,
    /// libcni's cache, which shows who had a contested address first.
    pub cni_cache: PathBuf,
}

impl SurveyRequest {
    /// With the records of the state directory, and what completes them.
    pub(crate) fn new(selection: Selection, runtimes: RuntimeConfig) -> Self {
        Self {
            selection,
            source: RecordSource::Checkpoints { generation: None },
            fallback: Fallback::GenerationsAndCache,
            with_daemons: false,
            nic: NicMode::default(),
            index: IndexMode::default(),
            parent: None,
            runtimes,
            cni_cache: CNI_CACHE.into(),
        }
    }
}

/// Where records come from.
#[derive(Debug, Clone)]
pub(crate) enum RecordSource {
    /// The state directory, or one generation of it.
    Checkpoints { generation: Option<u64> },
    /// libcni's cache in this folder.
    CniCache(PathBuf),
    /// Records and node state in memory, should the disk fail.
    Memory {
        contents: Box<(Stored, Option<NodeState>)>,
        /// Whether the open window took them itself.
        is_of_window: bool,
    },
}

/// Surveys what a request needs, and refuses it if its source cannot be read.
pub(crate) fn prepare(request: &SurveyRequest, store: &Store) -> Result<Surveyed, Refusal> {
    prepare_with(request, request.fallback, &BTreeSet::new(), store)
}

/// Surveys what a request needs, with a part of what may complete its source; `recovered` are the pods that this run has
/// restored by that.
pub(crate) fn prepare_with(
    request: &SurveyRequest,
    fallback: Fallback,
    recovered: &BTreeSet<NetnsKey>,
    store: &Store,
) -> Result<Surveyed, Refusal> {
    let selection = &request.selection;
    // Side by side: a pod of tens of thousands of routes has a large file.
    let (contents, inventory) =
        side_by_side::both(|| read(request, store), || Inventory::open(selection));
    let (contents, mut inventory) = (contents?, inventory?);
    // The runtime alone may know a pod by the name that the user gives it.
    if needs_runtime(&contents.records, &inventory, selection) || !selection.unmatched().is_empty()
    {
        inventory.attribute(&request.runtimes, selection)?;
    }
    let sources = contest::Sources {
        store,
        cni_cache: &request.cni_cache,
    };
    let fallback = FallbackRequest {
        fallback,
        recovered,
        runtimes: Some(&request.runtimes),
    };
    let parent = request.parent.as_ref();
    let mut surveyed = survey_from(inventory, contents, parent, selection, sources, fallback)?;
    let daemons = daemons(request, store);
    surveyed.baseline.daemons = daemons;
    let nic = nic_rules(request, &surveyed);
    surveyed.baseline.nic = nic;
    surveyed.baseline.kept_indexes = kept_indexes(request.index, &mut surveyed);
    for one in &mut surveyed.matched {
        one.nic = nic;
        // A record from elsewhere is older.
        let is_older = one.is_from_elsewhere() && !request.with_daemons;
        one.daemons = if is_older {
            DaemonState::Leave
        } else {
            daemons
        };
    }
    surveyed.gone.missed = missed(request, &surveyed);
    let is_of_cache = matches!(request.source, RecordSource::CniCache(_));
    let has_host = surveyed.baseline.is_whole && !is_of_cache;
    let has_matched = has_host || !surveyed.matched.is_empty();
    if !has_matched && surveyed.rejected.is_empty() && surveyed.damaged.is_empty() {
        surveyed.problems.push(nothing_stored(request));
    }
    Ok(surveyed)
}

/// How settings of NICs are compared; whether a daemon runs only matters where what it configures is recorded.
fn nic_rules(request: &SurveyRequest, surveyed: &Surveyed) -> NicRules {
    let pods = surveyed.matched.iter();
    let of_pods = pods.filter_map(|one| one.checkpoint.netfix.as_ref());
    let states = of_pods
        .map(|extension| &extension.state)
        .chain([&surveyed.baseline.state]);
    let recorded: BTreeSet<NicGroup> = states
        .flat_map(|state| &state.links)
        .filter_map(|link| link.nic.as_ref())
        .flat_map(|nic| nic.settings.keys().copied())
        .collect();
    NicRules {
        mode: request.nic,
        irqs_are_balanced: recorded.contains(&NicGroup::Irqs) && procfs::runs(IRQBALANCE),
        dcb_is_managed: recorded.contains(&NicGroup::Dcb) && procfs::runs(LLDPAD),
    }
}

/// The ifindexes that devices of the host do not get back, and why.
pub(crate) fn kept_indexes(mode: IndexMode, surveyed: &mut Surveyed) -> BTreeMap<u32, KeptIndex> {
    let recorded = &surveyed.baseline.state;
    let mut kept = nics::kept_indexes(mode, &recorded.links);
    // Those that are up may carry packets of pods, which are not interrupted.
    let other = snapshot_quality::renumbered(recorded, &surveyed.host.state);
    let up = other.filter(|(_, now)| now.flags.up);
    let mut up: Vec<_> = up
        .map(|(then, now)| (now.name.clone(), then.index))
        .collect();
    let mut why = KeptIndex::Selection;
    if !surveyed.is_selection && !up.is_empty() {
        let used = surveyed.used_links();
        up.retain(|(name, _)| used.contains(name));
        why = KeptIndex::Pods;
    }
    for (_, index) in up {
        kept.entry(index).or_insert_with(|| why.clone());
    }
    kept
}

/// What becomes of what daemons own: they have hardly withdrawn it since the snapshot of a window that is open.
fn daemons(request: &SurveyRequest, store: &Store) -> DaemonState {
    let is_of_window = match request.source {
        RecordSource::Memory { is_of_window, .. } => is_of_window,
        RecordSource::Checkpoints { generation: None } => {
            let window = store.open_window().ok().flatten();
            window.is_some_and(|window| window.has_snapshot())
        }
        RecordSource::Checkpoints { .. } | RecordSource::CniCache(_) => false,
    };
    if request.with_daemons || is_of_window {
        DaemonState::Restore
    } else {
        DaemonState::Leave
    }
}

/// The pods of records that a request needs, whether they run or not.
fn missed(request: &SurveyRequest, surveyed: &Surveyed) -> BTreeSet<PodId> {
    let found: Vec<_> = surveyed.matched.iter().map(|one| &one.info).collect();
    let is_missed = |info: &PodInfo| match &request.source {
        // The window knows which of its pods may be gone.
        RecordSource::Memory { .. } => false,
        _ => request.selection.is_alone(info, &found),
    };
    let ids = surveyed.rejected.iter().map(|one| &one.pod.info);
    ids.filter(|info| is_missed(info))
        .map(|info| info.id.clone())
        .collect()
}

/// The problem of a source without a record of a selected pod.
fn nothing_stored(request: &SurveyRequest) -> Problem {
    let selection = request.selection.to_string();
    match &request.source {
        RecordSource::CniCache(folder) => {
            let folder = folder.display().to_string();
            ForeignCause::NoCacheEntries { folder }.error(selection)
        }
        RecordSource::Checkpoints { .. } | RecordSource::Memory { .. } => {
            MatchingCause::NoCheckpoints.error(selection)
        }
    }
}

/// Reads the source of a request.
fn read(request: &SurveyRequest, store: &Store) -> Result<SourceContents, Refusal> {
    let mut problems = Vec::new();
    let (records, node) = match &request.source {
        RecordSource::Checkpoints { generation } => {
            let store = store.at(*generation)?;
            let node = load_node(&store, &mut problems)?;
            let stored = load_light(&store, &request.selection, node.as_ref())?;
            (Records::Stored(stored), node)
        }
        RecordSource::CniCache(folder) => {
            let cache = cni_cache::read(folder)?;
            (Records::Cache(cache), load_node(store, &mut problems)?)
        }
        RecordSource::Memory { contents, .. } => {
            let (stored, mut node) = contents.as_ref().clone();
            loaders::forget_ended(&mut node);
            (Records::Stored(stored), node)
        }
    };
    Ok(SourceContents {
        records,
        node,
        problems,
    })
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
        checkpoints.into_iter().any(|checkpoint| {
            let Some(extension) = &checkpoint.netfix else {
                return true;
            };
            let then = &extension.identity;
            let mut candidates = by_netns.candidates(then);
            extension.node.is_same(&self.node)
                && candidates.any(|now| then.may_be(now) && !then.is_same(now))
        })
    }
}
