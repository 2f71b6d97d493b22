//! Writes what was decided. Nothing is replaced that no generation holds, and where a write fails, no generation is made.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZeroUsize;

use super::changes::{Changes, Gone, HostChange, HostDecision, PodChange, PodDecision};
use super::facts::Archive;
use super::{Generations, PodSnapshot, Snapshot, SnapshotState};
use crate::model::checkpoint::{Large, schema_of};
use crate::model::pod::empty::EmptyNetns;
use crate::model::problem::StoreEffect;
use crate::model::{
    AddressProxy, AnswerRecord, Checkpoint, NetState, NodeState, PodId, PodSummary, Problem, Stamp,
};
use crate::progress::{Listener, Progress, Stage};
use crate::records::stored::Stored;
use crate::refusal::Refusal;
use crate::store::{Guard, NewestGeneration, Prune};

/// What a snapshot observed and decided, and what is stored.
pub(crate) struct Captured {
    pub(super) changes: Changes,
    pub(super) stored: Archive,
    /// What answers for addresses of pods; `None` keeps what is recorded.
    pub proxies: Option<Vec<AddressProxy>>,
}

impl Captured {
    /// Whether a pod or the host has lost something, or a pod should have more, or reaches nothing.
    pub(crate) fn has_degraded(&self) -> bool {
        let mut pods = self.changes.pods.iter();
        let is_lost = |change: &PodChange| match change {
            PodChange::Lost | PodChange::NoRecord | PodChange::Incomplete => true,
            PodChange::Write(_, new) => new.netfix.as_ref().is_some_and(|own| own.cut_off),
            _ => false,
        };
        self.changes.host.has_lost || pods.any(|one| is_lost(&one.change))
    }

    /// The states of the pods that have lost nothing, of those that were not read as they are stored.
    pub(crate) fn whole(&self) -> impl Iterator<Item = &NetState> {
        let pods = self
            .changes
            .pods
            .iter()
            .filter_map(|one| match &one.change {
                PodChange::Write(_, checkpoint) => Some(&**checkpoint),
                PodChange::Unchanged | PodChange::Unread => {
                    self.stored.get(&one.pod.info.id)?.as_ref().ok()
                }
                _ => None,
            });
        pods.filter_map(|checkpoint| Some(&checkpoint.netfix.as_ref()?.state))
    }

    /// What is stored once everything is written, as it is read then.
    pub(crate) fn records(&self) -> (Stored, Option<NodeState>) {
        let is_gone = |id: &PodId| self.changes.gone.contains_key(id);
        let stored = self.stored.readable().filter(|(id, _)| !is_gone(id));
        let mut all: BTreeMap<&PodId, &Checkpoint> = stored.collect();
        for one in &self.changes.pods {
            if let PodChange::Write(_, checkpoint) = &one.change {
                all.insert(&one.pod.info.id, checkpoint);
            }
        }
        let checkpoints = all.into_iter().filter_map(|(id, checkpoint)| {
            let file = serde_json::to_vec(checkpoint).ok()?;
            let read: Checkpoint = serde_json::from_slice(&file).ok()?;
            Some((read.pod(id), read))
        });
        let stored = Stored {
            checkpoints: checkpoints.collect(),
            ..Stored::default()
        };
        (stored, self.node().cloned())
    }

    /// The host as it is stored then.
    pub(crate) fn node(&self) -> Option<&NodeState> {
        match &self.changes.host.change {
            HostChange::Record(node) => Some(node),
            HostChange::Keep(_) => self.stored.node.as_ref(),
        }
    }

    /// Writes what was decided, or refuses where something is to be given up that is not lost.
    pub(super) fn accepted(
        self,
        guard: &Guard,
        keep: NonZeroUsize,
        progress: &mut dyn Listener,
    ) -> Result<Snapshot, Refusal> {
        if self.changes.refused.is_empty() {
            Ok(self.write(guard, keep, progress))
        } else {
            Err(self.changes.refused.into())
        }
    }

    /// Writes what was decided.
    pub(crate) fn write(
        self,
        guard: &Guard,
        keep: NonZeroUsize,
        progress: &mut dyn Listener,
    ) -> Snapshot {
        let Self {
            changes,
            stored,
            proxies,
        } = self;
        let Changes {
            at,
            pods,
            gone,
            host,
            answers,
            given_up,
            silent,
            problems,
            makes_generation,
            is_complete,
            refused: _,
        } = changes;
        let mut writing = Writing {
            guard,
            at,
            stored: &stored,
            pods: Vec::with_capacity(pods.len()),
            problems,
            large: BTreeMap::new(),
            removed: BTreeSet::new(),
            has_failed: false,
        };
        let held = writing.keep_before(&pods, &gone);
        writing.checkpoints(pods, held.is_ok(), progress);
        if held.is_ok() {
            writing.remove(gone);
        }
        let HostDecision {
            change, problems, ..
        } = host;
        writing.problems.extend(problems);
        let (mut recorded, mut generations) = (None, Generations::default());
        if let Ok(spare) = held {
            recorded = writing.node_state(change, is_complete, proxies, (silent, answers));
            generations = writing.generations(keep, spare, makes_generation);
        }
        let Writing {
            at, pods, problems, ..
        } = writing;
        let stored = recorded.as_ref().or(stored.node.as_ref());
        // What was not written is not given up.
        let given_up = recorded.as_ref().map(|_| given_up);
        Snapshot {
            given_up: given_up.unwrap_or_default(),
            ..Snapshot::new(at.node, stored, pods, generations, problems)
        }
    }

    /// What `write` would find, without what only a write shows.
    pub(crate) fn unwritten(self) -> Snapshot {
        let Changes {
            at,
            pods,
            mut problems,
            host,
            ..
        } = self.changes;
        problems.extend(host.problems);
        let mut intentions = Vec::with_capacity(pods.len());
        for PodDecision { pod, change } in pods {
            let (state, seen) = (intended(&change), None);
            intentions.push(PodSnapshot { pod, state, seen });
        }
        let recorded = self.stored.node.as_ref();
        let generations = Generations::default();
        Snapshot::new(at.node, recorded, intentions, generations, problems)
    }
}

/// What a snapshot does with a pod's checkpoint if every write succeeds.
fn intended(change: &PodChange) -> SnapshotState {
    match change {
        PodChange::Write(..) => SnapshotState::Saved,
        PodChange::Unchanged => SnapshotState::Unchanged,
        PodChange::Lost | PodChange::Incomplete => SnapshotState::Degraded,
        PodChange::Empty => SnapshotState::Empty,
        PodChange::NoRecord => SnapshotState::NoCheckpoint,
        PodChange::HalfLost | PodChange::Unread => SnapshotState::Failed,
    }
}

/// A snapshot while it is written.
struct Writing<'a> {
    guard: &'a Guard,
    at: Stamp,
    stored: &'a Archive,
    pods: Vec<PodSnapshot>,
    problems: Vec<Problem>,
    /// What of large checkpoints that were written concerns other pods.
    large: BTreeMap<PodId, Large>,
    removed: BTreeSet<PodId>,
    /// Whether a write failed that keeps all pods from their generation.
    has_failed: bool,
}

impl Writing<'_> {
    /// Makes sure that a generation holds each file that is replaced or removed; otherwise none may be. Returns the number of
    /// the generation that must stay for it.
    fn keep_before(
        &mut self,
        pods: &[PodDecision],
        gone: &BTreeMap<PodId, Gone>,
    ) -> Result<Option<u64>, ()> {
        let replaced: Vec<PodId> = pods
            .iter()
            .filter(|one| one.change.replaces())
            .map(|one| &one.pod.info.id)
            .chain(gone.keys())
            .cloned()
            .collect();
        let problem = match self.guard.keep_before(&replaced) {
            Ok(number) => return Ok(number.filter(|_| !replaced.is_empty())),
            Err(error) => error.problem_with(StoreEffect::NothingReplaced),
        };
        if replaced.is_empty() {
            self.problems.push(problem.clone());
        }
        self.problems
            .extend(replaced.iter().map(|id| problem.clone().of(id)));
        self.has_failed = true;
        Err(())
    }

    /// Writes the checkpoints; without `may_replace` only those of pods that have none.
    fn checkpoints(
        &mut self,
        pods: Vec<PodDecision>,
        may_replace: bool,
        progress: &mut dyn Listener,
    ) {
        let may_write = |change: &PodChange| {
            matches!(change, PodChange::Write(..)) && (may_replace || !change.replaces())
        };
        let count = pods.iter().filter(|one| may_write(&one.change)).count();
        progress.notice(Progress::Phase(Stage::WritingCheckpoints, count));
        for PodDecision { mut pod, change } in pods {
            let is_written = may_write(&change);
            let state = match change {
                PodChange::Write(_, checkpoint) if is_written => {
                    let state = self.save(&mut pod, &checkpoint);
                    progress.notice(Progress::Advance(1));
                    state
                }
                PodChange::Write(..) => SnapshotState::Failed,
                change => intended(&change),
            };
            let seen = None;
            self.pods.push(PodSnapshot { pod, state, seen });
        }
    }

    fn save(&mut self, pod: &mut PodSummary, checkpoint: &Checkpoint) -> SnapshotState {
        let id = &pod.info.id;
        match self.guard.save(id, checkpoint) {
            Ok(()) => {
                let large = self.guard.large(id, checkpoint);
                self.large.extend(large.map(|large| (id.clone(), large)));
                pod.created = Some(self.at.wall.clone());
                SnapshotState::Saved
            }
            Err(error) => {
                self.problems.push(error.problem().of(id));
                // A pod with too many objects must not keep the others from their generation.
                self.has_failed |= !error.is_too_large();
                SnapshotState::Failed
            }
        }
    }

    /// Removes checkpoints, unless the new one of the same pod could not be written.
    fn remove(&mut self, gone: BTreeMap<PodId, Gone>) {
        let pods = self.pods.iter();
        let failed: HashSet<PodId> = pods
            .filter(|one| one.state == SnapshotState::Failed)
            .map(|one| one.pod.info.id.clone())
            .collect();
        for (id, gone) in gone {
            if matches!(gone, Gone::Renamed(to) if failed.contains(&to)) {
                continue;
            }
            match self.guard.remove(&id) {
                Ok(()) => drop(self.removed.insert(id)),
                Err(error) => {
                    self.problems.push(error.problem().of(&id));
                    self.has_failed = true;
                }
            }
        }
    }

    /// Writes the host's state, or the recorded one with new times at which checkpoints were verified. Returns what was written.
    fn node_state(
        &mut self,
        host: HostChange,
        is_complete: bool,
        proxies: Option<Vec<AddressProxy>>,
        (silent, mut answers): (Vec<Option<PodId>>, Vec<AnswerRecord>),
    ) -> Option<NodeState> {
        let mut node = match (host, &self.stored.node) {
            (HostChange::Keep(_), None) => return None,
            (HostChange::Keep(accepted), Some(old)) => {
                let mut node = old.clone();
                let is_new = |known: &EmptyNetns| {
                    let mut accepted = accepted.iter();
                    !accepted.any(|one| one.identity.is_same(&known.identity))
                };
                node.empty.retain(is_new);
                node.empty.extend(accepted);
                node
            }
            (HostChange::Record(_), Some(old)) if self.has_failed => old.clone(),
            (HostChange::Record(new), _) => *new,
        };
        node.proxies = proxies.unwrap_or(node.proxies);
        node.large = self.all_large();
        node.schema = schema_of(&(&node.state, &node.large));
        node.forget_unless(|id| self.stored.has(id) && !self.removed.contains(id));
        let pods = self.pods.iter();
        let is_good = |state| matches!(state, SnapshotState::Saved | SnapshotState::Unchanged);
        let good: BTreeSet<_> = pods
            .filter_map(|one| is_good(one.state).then_some(&one.pod.info.id))
            .collect();
        answers.retain(|one| one.pod.as_ref().is_none_or(|id| good.contains(id)));
        for pod in silent {
            node.answers.give_up(pod.as_ref(), &answers);
        }
        node.answers.take(answers, &self.at.wall);
        for id in good {
            node.note_seen(id, &self.at);
        }
        let mut pods = self.pods.iter();
        let has_failed = self.has_failed || pods.any(|one| one.state == SnapshotState::Failed);
        if is_complete && !has_failed {
            node.note_complete(&self.at);
        }
        match self.guard.save_node(&node) {
            Ok(()) => Some(node),
            Err(error) => {
                self.problems.push(error.problem());
                self.has_failed = true;
                None
            }
        }
    }

    /// What of all large checkpoints concerns other pods.
    fn all_large(&mut self) -> BTreeMap<PodId, Large> {
        let mut all = std::mem::take(&mut self.large);
        for (id, checkpoint) in self.stored.readable() {
            if !all.contains_key(id) && !self.removed.contains(id) {
                let large = self.guard.large(id, checkpoint);
                all.extend(large.map(|large| (id.clone(), large)));
            }
        }
        all
    }

    /// Creates a generation of everything stored, if all was written, and removes generations beyond `keep`.
    fn generations(
        &mut self,
        keep: NonZeroUsize,
        spare: Option<u64>,
        makes_generation: bool,
    ) -> Generations {
        let mut generations = Generations::default();
        let mut which = Prune::Aside;
        if makes_generation && !self.has_failed {
            match self.guard.keep() {
                Ok(NewestGeneration::Made(number)) => {
                    (generations.generation, which) = (Some(number), Prune::Any);
                }
                Ok(NewestGeneration::Already(number)) => {
                    (generations.same_as, which) = (Some(number), Prune::Any);
                }
                Err(error) => self.problems.push(error.problem()),
            }
        }
        let (removed, result) = self.guard.prune(keep, spare, which);
        let failed = result.err().map(|error| error.problem());
        self.problems.extend(failed);
        Generations {
            removed,
            ..generations
        }
    }
}
