//! Writes what was captured: nothing is replaced that no generation holds, and a bad moment makes no generation.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use super::{Generations, PodSnapshot, Snapshot, SnapshotState};
use crate::model::checkpoint::{Large, SCHEMA, schema_of};
use crate::model::pod::by_netns::ByNetns;
use crate::model::problem::{SnapshotCause, StoreEffect};
use crate::model::{
    Checkpoint, IfName, Link, LinkKind, NetState, NetnsIdentity, NodeIdentity, NodeState, Parent,
    PodId, Problem, StackLink,
};
use crate::plan::snapshot_quality;
use crate::progress::{Listener, Progress, Stage};
use crate::store::{self, Guard, Kept, Prune};

/// A checkpoint to write.
#[derive(Debug)]
pub(super) struct Draft {
    /// The place of its pod.
    pub at: usize,
    pub checkpoint: Checkpoint,
}

/// What a snapshot observed, and what is stored.
pub(crate) struct Captured {
    pub(super) stored: BTreeMap<PodId, Result<Checkpoint, store::Error>>,
    /// The ids of what is stored.
    pub(super) by_netns: ByNetns<PodId>,
    pub(super) node: NodeIdentity,
    /// The host's state as it was stored before.
    pub(super) old_node: Option<NodeState>,
    pub(super) host: NetState,
    /// The host's links after everything else was read.
    pub(super) links_now: Vec<Link>,
    pub(super) created: String,
    /// Whether all pods were observed.
    pub(super) everything: bool,
    pub(super) pods: Vec<PodSnapshot>,
    pub(super) problems: Vec<Problem>,
    pub(super) drafts: Vec<Draft>,
    /// Namespaces with nothing to record.
    pub(super) empty: Vec<NetnsIdentity>,
    /// Checkpoints to remove: of pods that are gone, and of pods that have one under another id, with their place.
    pub(super) gone: BTreeMap<PodId, Option<usize>>,
    /// What of large checkpoints that were written concerns other pods.
    pub(super) large: BTreeMap<PodId, Large>,
    /// Whether something could not be read or written.
    pub(super) incomplete: bool,
}

impl Captured {
    /// Writes what was decided.
    pub(crate) fn write(
        mut self,
        guard: &Guard,
        keep: NonZeroUsize,
        progress: &mut dyn Listener,
    ) -> Snapshot {
        let held = self.keep_before(guard);
        progress.notice(Progress::Phase(
            Stage::WritingCheckpoints,
            self.drafts.len(),
        ));
        for draft in std::mem::take(&mut self.drafts) {
            self.save(guard, &draft);
            progress.notice(Progress::Advance(1));
        }
        self.remove_gone(guard);
        let has_lost = self.has_lost();
        let old_node = self.old_node.take();
        let node = if held.is_ok() {
            self.node_state(guard, old_node, has_lost)
        } else {
            old_node
        };
        let generations = match held {
            Ok(spare) => self.generations(guard, keep, spare, has_lost),
            Err(()) => Generations::default(),
        };
        self.finish(node.as_ref(), generations)
    }

    /// What `write` would find, without what only a write shows.
    pub(crate) fn unwritten(mut self) -> Snapshot {
        self.has_lost();
        let node = self.old_node.take();
        self.finish(node.as_ref(), Generations::default())
    }

    /// Makes sure that a generation holds each file that is replaced; otherwise replaces nothing. Returns the number
    /// of the generation that must stay for it.
    fn keep_before(&mut self, guard: &Guard) -> Result<Option<u64>, ()> {
        let drafted = self.drafts.iter().map(|draft| self.id_of(draft));
        let replaced = drafted
            .filter(|id| self.stored.contains_key(id))
            .chain(self.gone.keys());
        let replaced: Vec<PodId> = replaced.cloned().collect();
        let problem = match guard.keep_before(&replaced) {
            Ok(number) => return Ok(number.filter(|_| !replaced.is_empty())),
            Err(error) => error.problem_with(StoreEffect::NothingReplaced),
        };
        if replaced.is_empty() {
            self.problems.push(problem.clone());
        }
        self.problems
            .extend(replaced.iter().map(|id| problem.clone().of(id)));
        self.gone.clear();
        let (kept, fresh) = std::mem::take(&mut self.drafts)
            .into_iter()
            .partition::<Vec<_>, _>(|draft| replaced.contains(self.id_of(draft)));
        self.drafts = fresh;
        for draft in kept {
            self.pods[draft.at].state = SnapshotState::Failed;
        }
        self.incomplete = true;
        Err(())
    }

    fn id_of(&self, draft: &Draft) -> &PodId {
        &self.pods[draft.at].pod.info.id
    }

    fn save(&mut self, guard: &Guard, draft: &Draft) {
        let one = &mut self.pods[draft.at];
        match guard.save(&one.pod.info.id, &draft.checkpoint) {
            Ok(()) => {
                one.pod.created = Some(self.created.clone());
                let id = &one.pod.info.id;
                let large = guard.large(id, &draft.checkpoint);
                self.large.extend(large.map(|large| (id.clone(), large)));
            }
            Err(error) => {
                one.state = SnapshotState::Failed;
                self.problems.push(error.problem().of(&one.pod.info.id));
                // A pod with too many objects must not keep the others from their generation.
                self.incomplete |= !error.is_too_large();
            }
        }
    }

    fn remove_gone(&mut self, guard: &Guard) {
        let failed = |at: usize| self.pods[at].state == SnapshotState::Failed;
        self.gone.retain(|_, other| !other.is_some_and(failed));
        for id in std::mem::take(&mut self.gone).into_keys() {
            match guard.remove(&id) {
                Ok(()) => drop(self.stored.remove(&id)),
                Err(error) => {
                    self.problems.push(error.problem().of(&id));
                    self.incomplete = true;
                }
            }
        }
    }

    /// Whether a pod has lost something, or a link of the host under a stored checkpoint is gone or down. Otherwise, what
    /// the host has that no restore could bring back is a problem.
    fn has_lost(&mut self) -> bool {
        if self.has_degraded() {
            return true;
        }
        let problem = self.lost_host_link();
        let has_lost = problem.is_some();
        if !has_lost {
            self.problems
                .extend(snapshot_quality::unsupported_on_host(&self.host));
        }
        self.problems.extend(problem);
        has_lost
    }

    /// Writes the host's present state. In a bad moment the old state stays, with new times at which checkpoints were
    /// verified. Returns what is stored afterwards.
    fn node_state(
        &mut self,
        guard: &Guard,
        old: Option<NodeState>,
        has_lost: bool,
    ) -> Option<NodeState> {
        let mut node = match &old {
            Some(old) if has_lost || self.incomplete => old.clone(),
            None if has_lost => return None,
            _ => NodeState {
                schema: SCHEMA,
                created: self.created.clone(),
                node: self.node.clone(),
                state: self.lasting_state(),
                empty: std::mem::take(&mut self.empty),
                seen: old.as_ref().map(|old| old.seen.clone()).unwrap_or_default(),
                complete: old.as_ref().and_then(|old| old.complete.clone()),
                large: BTreeMap::new(),
            },
        };
        node.large = self.all_large(guard);
        node.schema = schema_of(&(&node.state, &node.large));
        let is_true = |one: &&PodSnapshot| {
            matches!(one.state, SnapshotState::Saved | SnapshotState::Unchanged)
        };
        let true_pods = self.pods.iter().filter(is_true);
        let seen = true_pods.map(|one| one.pod.info.id.clone());
        node.seen.retain(|id, _| self.stored.contains_key(id));
        node.seen.extend(seen.map(|id| (id, self.created.clone())));
        let has_failed = self
            .pods
            .iter()
            .any(|one| one.state == SnapshotState::Failed);
        if self.everything && !has_lost && !self.incomplete && !has_failed {
            node.complete = Some(self.created.clone());
        }
        match guard.save_node(&node) {
            Ok(()) => Some(node),
            Err(error) => {
                self.problems.push(error.problem());
                self.incomplete = true;
                old
            }
        }
    }

    /// What of all large checkpoints concerns other pods.
    fn all_large(&mut self, guard: &Guard) -> BTreeMap<PodId, Large> {
        let mut all = std::mem::take(&mut self.large);
        for (id, stored) in &self.stored {
            if let (false, Ok(checkpoint)) = (all.contains_key(id), stored) {
                let large = guard.large(id, checkpoint);
                all.extend(large.map(|large| (id.clone(), large)));
            }
        }
        all
    }

    /// Creates a generation of everything stored, except in a bad moment, and removes generations beyond `keep`.
    fn generations(
        &mut self,
        guard: &Guard,
        keep: NonZeroUsize,
        spare: Option<u64>,
        has_lost: bool,
    ) -> Generations {
        let mut generations = Generations::default();
        let mut which = Prune::Aside;
        if !has_lost && !self.incomplete {
            match guard.keep() {
                Ok(Kept::Made(number)) => {
                    (generations.generation, which) = (Some(number), Prune::Any);
                }
                Ok(Kept::Already(number)) => {
                    (generations.same_as, which) = (Some(number), Prune::Any);
                }
                Err(error) => self.problems.push(error.problem()),
            }
        }
        let (removed, result) = guard.prune(keep, spare, which);
        let failed = result.err().map(|error| error.problem());
        self.problems.extend(failed);
        Generations {
            removed,
            ..generations
        }
    }

    /// The problem with a link under a checkpoint of this boot that is gone under any name, or that was up and is down.
    fn lost_host_link(&self) -> Option<Problem> {
        let is_same = |under: &StackLink, now: &Link| match (&under.hardware, &now.hardware) {
            (Some(then), Some(now)) => then.is_same(now),
            _ => false,
        };
        let was_up = |under: &StackLink| {
            let old_node = self.old_node.as_ref();
            let then = old_node.and_then(|old| old.state.link(&under.name));
            then.is_some_and(|then| then.flags.up)
        };
        let lost = |under: &StackLink| {
            let mut links = self.links_now.iter();
            let now = links.find(|now| now.name == under.name || is_same(under, now));
            let cause = match now {
                None => SnapshotCause::HostLinkGone,
                Some(now) if was_up(under) && !now.flags.up => SnapshotCause::HostLinkDown,
                Some(_) => return None,
            };
            Some(cause.error(&under.name))
        };
        self.stacks().find_map(lost)
    }

    /// The host's links under every stored checkpoint of this boot.
    fn stacks(&self) -> impl Iterator<Item = &StackLink> {
        let stored = self.stored.values();
        let extensions = stored.filter_map(|stored| stored.as_ref().ok()?.netfix.as_ref());
        extensions
            .filter(|extension| extension.node.is_same(&self.node))
            .flat_map(|extension| &extension.stack)
    }

    /// The host's state without the ends of pods' veth pairs, which come and go with the pods.
    fn lasting_state(&self) -> NetState {
        let mut state = self.host.clone().lasting();
        let is_pair =
            |link: &Link| matches!(&link.kind, LinkKind::Other { driver } if driver == "veth");
        let carries = |link: &Link| {
            let on_it = |upper: &Link| {
                let is_bond = matches!(upper.kind, LinkKind::Bond(_));
                upper.parent == Some(Parent::Own(link.name.clone()))
                    || is_bond && link.master.as_ref() == Some(&upper.name)
            };
            let under_pod = |one: &PodSnapshot| {
                let mut interfaces = one.pod.interfaces.iter();
                interfaces.any(|interface| interface.parent.as_ref() == Some(&link.name))
            };
            self.host.links.iter().any(on_it)
                || self.pods.iter().any(under_pod)
                || self.stacks().any(|under| under.name == link.name)
        };
        state.links.retain(|link| !is_pair(link) || carries(link));
        let names: BTreeSet<IfName> = state.links.iter().map(|link| link.name.clone()).collect();
        state
            .addresses
            .retain(|address| names.contains(&address.dev));
        state
            .neighbours
            .retain(|neighbour| names.contains(&neighbour.dev));
        state
            .routes
            .retain(|route| route.devs().iter().all(|dev| names.contains(*dev)));
        state
    }

    fn finish(mut self, node: Option<&NodeState>, generations: Generations) -> Snapshot {
        for one in &mut self.pods {
            let seen = node.and_then(|node| node.seen(&one.pod.info.id));
            one.seen = seen.map(str::to_owned);
        }
        self.pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
        Snapshot {
            node: self.node,
            recorded: node.map(|node| node.created.clone()),
            pods: self.pods,
            generations,
            problems: self.problems,
        }
    }
}
