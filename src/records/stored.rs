//! What is stored: checkpoints, and the host's recorded state.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::clock;
use crate::cni;
use crate::inventory::node::node_identity;
use crate::inventory::procfs::machine;
use crate::inventory::sockets::loaders;
use crate::matching::{Selection, StoredRecord};
use crate::model::checkpoint::Extension;
use crate::model::pod::cni_result::CniResult;
use crate::model::problem::{MatchingCause, StoreEffect};
use crate::model::{
    Checkpoint, NetnsIdentity, NodeIdentity, NodeState, PodId, PodInfo, PodSummary, Problem, Stamp,
    interfaces,
};
use crate::refusal::Refusal;
use crate::store::{Light, Loaded, Store, Whole};

/// The stored checkpoints.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    /// All of them: a checkpoint that is not selected may be about a selected pod.
    pub checkpoints: Vec<(PodInfo, Checkpoint)>,
    /// Selected pods whose checkpoint cannot be read.
    pub damaged: Vec<PodInfo>,
    /// Why, in the same order.
    pub problems: Vec<Problem>,
    /// The rest of large checkpoints that were read in part.
    pub whole: BTreeMap<PodId, Whole>,
}

impl Stored {
    /// The checkpoints as records to match.
    pub(crate) fn records(&self) -> Vec<StoredRecord> {
        self.checkpoints
            .iter()
            .map(|(info, checkpoint)| StoredRecord::of_checkpoint(info, checkpoint))
            .collect()
    }

    /// What is recorded of this namespace.
    pub(crate) fn record_of(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        info: &PodInfo,
    ) -> Option<&Extension> {
        let checkpoints = self.checkpoints.iter();
        let mut extensions = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        extensions.find(|extension| extension.is_about(node, identity, info))
    }
}

/// Reads the checkpoints. A damaged one does not stop the others.
pub(crate) fn load(store: &Store, selection: &Selection) -> Result<Stored, Refusal> {
    let all = store
        .load_all()?
        .into_iter()
        .map(|(id, loaded)| (id, loaded.map(|checkpoint| (checkpoint, None))));
    Ok(sort(all, selection))
}

/// Reads the checkpoints; of the large ones that the node's state lists, only what concerns other pods too.
pub(crate) fn load_light(
    store: &Store,
    selection: &Selection,
    node: Option<&NodeState>,
) -> Result<Stored, Refusal> {
    let empty = BTreeMap::new();
    let large = node.map_or(&empty, |node| &node.large);
    let mut loaded = store.load_light(large)?;
    for (checkpoint, _) in loaded.iter_mut().filter_map(|(_, one)| one.as_mut().ok()) {
        if let Some(own) = &mut checkpoint.netfix {
            own.state.shrink();
            checkpoint.result = CniResult::default();
        }
    }
    Ok(sort(loaded.into_iter(), selection))
}

/// Reads the checkpoints like [`load_light`], with what the node's state lists, if that can be read.
pub(crate) fn load_in_part(store: &Store, selection: &Selection) -> Result<Stored, Refusal> {
    // What is wrong with it is reported where it is needed.
    let node = store.load_node().ok().flatten();
    load_light(store, selection, node.as_ref())
}

/// The pods that have a checkpoint, as far as it can be read; none where the directory cannot be read.
pub(crate) fn pods(store: &Store) -> Vec<PodInfo> {
    let stored = load_in_part(store, &Selection::default()).unwrap_or_default();
    let named = stored.checkpoints.into_iter().map(|(info, _)| info);
    named.chain(stored.damaged).collect()
}

fn sort(loaded: impl Iterator<Item = Loaded<Light>>, selection: &Selection) -> Stored {
    let mut stored = Stored::default();
    for (id, checkpoint) in loaded {
        match checkpoint {
            Ok((checkpoint, whole)) => {
                stored.checkpoints.push((checkpoint.pod(&id), checkpoint));
                stored.whole.extend(whole.map(|whole| (id, whole)));
            }
            Err(error) => {
                let info = PodInfo::nameless(&id);
                if selection.wants_pod(&info) {
                    stored.problems.push(error.problem().of(&id));
                    stored.damaged.push(info);
                }
            }
        }
    }
    stored
}

/// A pod as its checkpoint describes it.
pub(crate) fn summary_of(info: &PodInfo, checkpoint: &Checkpoint) -> PodSummary {
    let extension = checkpoint.netfix.as_ref();
    PodSummary {
        info: info.clone(),
        netns: Some(checkpoint.netns.clone()).filter(|path| !path.is_empty()),
        created: extension.map(|extension| shown(&extension.stamp())),
        interfaces: match extension {
            Some(extension) => interfaces(&extension.state),
            None => cni::of_origin(checkpoint).interfaces(),
        },
    }
}

/// Seconds since something was recorded: in this boot by the clock that counts from it, which nobody sets. Otherwise by the wall
/// clock; 0 when that was set back or the text is no time.
pub(crate) fn age(at: &Stamp) -> u32 {
    let now = clock::boottime();
    let then = at.boottime.filter(|_| at.node.is_same(&node_identity()));
    let counted = then.and_then(|then| now.checked_sub(then));
    let seconds = counted.map_or_else(
        || {
            let then = at.wall.parse::<Timestamp>().ok();
            let seconds = then.map(|then| clock::seconds() - then.as_second());
            u64::try_from(seconds.unwrap_or_default()).unwrap_or_default()
        },
        |milliseconds| milliseconds / 1000,
    );
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// When something was recorded, by the wall clock as it is set now: as it was written, unless the clock was set since.
pub(crate) fn shown(at: &Stamp) -> String {
    /// Both clocks were read one after the other, and one was rounded.
    const TOLERANCE: i64 = 2;
    let then = clock::seconds() - i64::from(age(at));
    let is_so = |written: Timestamp| (written.as_second() - then).abs() <= TOLERANCE;
    let is_known = at.boottime.is_some() && at.node.is_same(&node_identity());
    match at.wall.parse() {
        Ok(written) if is_known && !is_so(written) => {
            Timestamp::from_second(then).map_or_else(|_| at.wall.clone(), |then| then.to_string())
        }
        _ => at.wall.clone(),
    }
}

/// When the last snapshot of all pods was completed, by the wall clock as it is set now.
pub(crate) fn last_success(node: Option<&NodeState>) -> Option<String> {
    node.and_then(NodeState::completed).as_ref().map(shown)
}

/// The stored node state, if it is of this machine and boot. Any other is a problem, not a reason to stop.
///
/// # Errors
/// It is of a netfix that saw more processes of the machine.
pub(crate) fn load_node(
    store: &Store,
    problems: &mut Vec<Problem>,
) -> Result<Option<NodeState>, Problem> {
    let node = node_identity();
    let problem = match store.load_node() {
        Ok(Some(stored)) if stored.node.machine_id != node.machine_id => {
            MatchingCause::NodeOfOtherMachine.warning("node.json")
        }
        Ok(Some(stored)) if !stored.node.is_same(&node) => {
            MatchingCause::NodeOfOtherBoot.warning("node.json")
        }
        Ok(stored) => return usable(stored),
        Err(error) => match of_generation(store, &node) {
            Some(past) => {
                problems.push(error.problem_with(StoreEffect::HostOfGeneration));
                return usable(Some(past));
            }
            None => error.problem_with(StoreEffect::HostUnknown),
        },
    };
    problems.push(problem);
    Ok(None)
}

/// The host's state of the newest generation of this boot that has one.
fn of_generation(store: &Store, node: &NodeIdentity) -> Option<NodeState> {
    let generations = store.generations().unwrap_or_default();
    generations.iter().rev().find_map(|one| {
        let past = store.generation(one.number).ok()?.load_node().ok()??;
        past.node.is_same(node).then_some(past)
    })
}

/// What of a host's state holds now.
fn usable(mut stored: Option<NodeState>) -> Result<Option<NodeState>, Problem> {
    machine::prove_whole(stored.as_ref().and_then(|stored| stored.host.as_ref()))?;
    loaders::forget_ended(&mut stored);
    Ok(stored)
}
