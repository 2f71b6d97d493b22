//! Observes everything and decides what to write. Nothing is written here.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::write::{Captured, Draft};
use super::{PodSnapshot, SnapshotState};
use crate::inventory::look::Look;
use crate::inventory::observe::Pod;
use crate::inventory::pods::PodObservation;
use crate::inventory::private;
use crate::inventory::{Inventory, cannot_observe};
use crate::kernel::{Error, dump};
use crate::matching::Selection;
use crate::matching::claims::{Claimant, contests};
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::net::stack;
use crate::model::pod::by_netns::ByNetns;
use crate::model::problem::SnapshotCause;
use crate::model::{
    Checkpoint, NetState, NetnsIdentity, NodeIdentity, PodId, PodSummary, Problem, interfaces,
};
use crate::plan::snapshot_quality;
use crate::records::contest;
use crate::records::contest::CNI_CACHE;
use crate::records::stored::{load_node, now};
use crate::runtime::RuntimeAnswer;
use crate::store::{self, Store};

/// Takes down what was seen of the host and the selected pods; returns these too, without their problems.
pub(crate) fn capture(look: Look, selection: &Selection, store: &Store) -> (Captured, Inventory) {
    let created = now();
    let Look {
        stored,
        mut inventory,
        observed,
    } = look;
    let mut incomplete = !inventory.is_complete;
    let Inventory {
        node,
        host,
        pods,
        closed: _,
        is_complete: _,
        problems,
        answer,
    } = &mut inventory;
    let mut problems = std::mem::take(problems);
    let links_now = dump::links(&mut host.socket, None, &mut Vec::new());
    let links_now = links_now.unwrap_or_else(|error| {
        problems.push(cannot_observe("host", &error));
        incomplete = true;
        Vec::new()
    });
    let old_node = load_node(store, &mut problems);
    let everything = selection.is_everything();
    let known_empty = old_node.as_ref().filter(|_| !everything);
    problems.extend(contested(pods, &observed, &host.state, node, store));
    let stored: BTreeMap<_, _> = stored.into_iter().collect();
    let mut captured = Captured {
        by_netns: ByNetns::new(stored.iter().filter_map(with_netns)),
        empty: known_empty
            .map(|node| node.empty.clone())
            .unwrap_or_default(),
        stored,
        node: node.clone(),
        old_node,
        host: host.state.clone(),
        links_now,
        created,
        everything,
        pods: Vec::new(),
        problems,
        drafts: Vec::new(),
        gone: BTreeMap::new(),
        large: BTreeMap::new(),
        incomplete,
    };
    captured.take(pods, observed, answer.as_ref());
    if everything && !captured.incomplete {
        captured.find_gone(pods);
    }
    (captured, inventory)
}

/// What several of the pods that could be read and the host have.
fn contested(
    pods: &[Pod],
    observed: &[PodObservation],
    host: &NetState,
    node: &NodeIdentity,
    store: &Store,
) -> Vec<Problem> {
    let running = pods.iter().zip(observed).filter_map(|(pod, observed)| {
        let (state, _) = observed.as_ref().ok()?;
        let claimant = Claimant::pod(&pod.info, &pod.identity, &pod.netns.path, state);
        Some(claimant.now(state))
    });
    let claimants: Vec<_> = running.chain([Claimant::host(host)]).collect();
    let cni_cache = Path::new(CNI_CACHE);
    let sources = contest::Sources { store, cni_cache };
    let rulings = contest::decide(&contests(&claimants), &claimants, node, sources);
    rulings.into_iter().map(|ruling| ruling.problem).collect()
}

impl Captured {
    /// Takes down each pod's state.
    fn take(
        &mut self,
        pods: &[Pod],
        observed: Vec<PodObservation>,
        answer: Option<&RuntimeAnswer>,
    ) {
        let private = self.private_among(pods, &observed, answer);
        for ((pod, observed), is_private) in pods.iter().zip(observed).zip(private) {
            match observed {
                // It is known by its owner, and there may be any number of them.
                _ if is_private && pod.netns.is_foreign => {}
                Ok(_) if is_private => self.record_empty(pod),
                Ok((state, torn)) => self.pod(pod, state, torn),
                Err(error) => self.unread(pod, &error),
            }
        }
    }

    /// Which of these namespaces belong to no pod.
    fn private_among(
        &self,
        pods: &[Pod],
        observed: &[PodObservation],
        answer: Option<&RuntimeAnswer>,
    ) -> Vec<bool> {
        let is_bare = |(pod, observed): (&Pod, &PodObservation)| {
            let observed = observed.as_ref().ok();
            let is_torn = observed.is_some_and(|(_, torn)| torn.is_some());
            private::may_be(pod, observed.map(|(state, _)| state))
                && (!is_torn || pod.netns.is_foreign)
                && self.good_checkpoint_of(pod).is_none()
        };
        let pods = pods.iter().zip(observed);
        private::among(pods.map(|one| (one.0, is_bare(one))), &[], answer)
    }

    pub(crate) fn has_degraded(&self) -> bool {
        self.pods
            .iter()
            .any(|one| one.state == SnapshotState::Degraded)
    }

    fn pod(&mut self, pod: &Pod, state: NetState, torn: Option<String>) {
        let id = &pod.info.id;
        let mut summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        summary.interfaces = interfaces(&state);
        let good = self.good_checkpoint_of(pod);
        let lost = torn.or_else(|| snapshot_quality::loss(&good?.state, &state));
        match (lost, good) {
            (Some(lost), Some(good)) => {
                summary.interfaces = interfaces(&good.state);
                summary.created = Some(good.created.clone());
                self.problems
                    .push(SnapshotCause::LinkLost.error(lost).of(id));
                return self.add(summary, SnapshotState::Degraded);
            }
            (Some(link), None) => {
                let path = pod.netns.shown();
                return self.failed(pod, SnapshotCause::LinkVanished { link }.error(path));
            }
            (None, _) => {}
        }
        let unsupported = snapshot_quality::unsupported_in_pod(&state).into_iter();
        self.problems
            .extend(unsupported.map(|problem| problem.of(id)));
        let state = state.lasting();
        let extension = Extension {
            schema: SCHEMA,
            created: self.created.clone(),
            node: self.node.clone(),
            identity: pod.identity.clone(),
            pod: pod.info.clone(),
            stack: stack::under(&state, &self.host),
            state,
        };
        let state =
            if let Some(checkpoint) = Checkpoint::new(pod.netns.path.as_path().into(), extension) {
                self.draft(pod, &mut summary, checkpoint)
            } else {
                self.record_empty(pod);
                SnapshotState::Empty
            };
        self.add(summary, state);
    }

    /// What has nothing now has lost nothing later, also where no runtime is queried.
    fn record_empty(&mut self, pod: &Pod) {
        if !self.empty.iter().any(|known| known.is_same(&pod.identity)) {
            self.empty.push(pod.identity.clone());
        }
    }

    fn add(&mut self, pod: PodSummary, state: SnapshotState) {
        self.pods.push(PodSnapshot {
            pod,
            state,
            seen: None,
        });
    }

    /// Drafts the checkpoint, unless the stored one has the same content.
    fn draft(
        &mut self,
        pod: &Pod,
        summary: &mut PodSummary,
        checkpoint: Checkpoint,
    ) -> SnapshotState {
        self.note_others(pod);
        match self.stored.get(&pod.info.id) {
            Some(Ok(old)) => {
                let extension = old.netfix.as_ref();
                summary.created = extension.map(|extension| extension.created.clone());
                if is_of(old, &self.node, pod) && has_same_content(old, &checkpoint) {
                    return SnapshotState::Unchanged;
                }
            }
            Some(Err(error)) => {
                let problem = error.problem().demoted();
                self.problems.push(problem.of(&pod.info.id));
            }
            None => {}
        }
        self.drafts.push(Draft {
            at: self.pods.len(),
            checkpoint: checkpoint.in_oldest_schema(),
        });
        SnapshotState::Saved
    }

    /// Checkpoints of the same namespace under another id, from before a runtime reported its sandbox.
    fn note_others(&mut self, pod: &Pod) {
        let at = self.pods.len();
        let others = self.checkpoints_of(pod).map(|(id, _)| id);
        let others = others.filter(|id| **id != pod.info.id);
        let others: Vec<_> = others.map(|id| (id.clone(), Some(at))).collect();
        self.gone.extend(others);
    }

    /// The stored checkpoint of this namespace.
    fn good_checkpoint_of(&self, pod: &Pod) -> Option<&Extension> {
        let about = self.checkpoints_of(pod).map(|(_, checkpoint)| checkpoint);
        about
            .max_by_key(|checkpoint| checkpoint.rank())?
            .netfix
            .as_ref()
    }

    /// All stored checkpoints of this namespace; one of them may come twice.
    fn checkpoints_of(&self, pod: &Pod) -> impl Iterator<Item = (&PodId, &Checkpoint)> {
        let candidates = self.by_netns.candidates(&pod.identity);
        let usable = candidates.filter_map(|id| Some((id, self.stored.get(id)?.as_ref().ok()?)));
        usable.filter(|(_, checkpoint)| is_of(checkpoint, &self.node, pod))
    }

    /// A pod that runs and cannot be read. Its checkpoint stays, and the others' generation does not wait for it: its tenant
    /// may change its tables without end.
    fn unread(&mut self, pod: &Pod, error: &Error) {
        let old = self.old_node.iter().flat_map(|old| &old.empty);
        let mut known_empty = old.filter(|known| known.is_same(&pod.identity));
        if known_empty.next().is_some() {
            self.record_empty(pod);
        }
        let path = pod.netns.shown();
        let incomplete = self.incomplete;
        self.failed(pod, cannot_observe(&path, error));
        self.incomplete = incomplete;
    }

    fn failed(&mut self, pod: &Pod, problem: Problem) {
        self.incomplete = true;
        self.problems.push(problem.of(&pod.info.id));
        let summary = PodSummary::bare(&pod.info, Some(&pod.netns.path));
        self.add(summary, SnapshotState::Failed);
    }

    /// Finds the checkpoints of pods that are gone. Only valid when every namespace could be read.
    fn find_gone(&mut self, pods: &[Pod]) {
        let alive = pods.iter().flat_map(|pod| self.checkpoints_of(pod));
        let alive = alive.map(|(id, _)| id);
        let written = self.pods.iter().map(|one| &one.pod.info.id);
        let kept: HashSet<&PodId> = alive.chain(written).collect();
        let gone = self.stored.iter().filter(|(id, stored)| {
            let is_own = |checkpoint: &Checkpoint| checkpoint.netfix.is_some();
            !kept.contains(id) && stored.as_ref().is_ok_and(is_own)
        });
        let gone: Vec<_> = gone.map(|(id, _)| (id.clone(), None)).collect();
        self.gone.extend(gone);
    }
}

/// The namespace of a stored checkpoint, and its id.
fn with_netns<'a>(
    (id, checkpoint): (&PodId, &'a Result<Checkpoint, store::Error>),
) -> Option<(&'a NetnsIdentity, PodId)> {
    let extension = checkpoint.as_ref().ok()?.netfix.as_ref()?;
    Some((&extension.identity, id.clone()))
}

fn is_of(checkpoint: &Checkpoint, node: &NodeIdentity, pod: &Pod) -> bool {
    checkpoint
        .netfix
        .as_ref()
        .is_some_and(|extension| extension.is_about(node, &pod.identity, &pod.info))
}

/// Whether two checkpoints differ in the time alone; then the disk is spared.
fn has_same_content(old: &Checkpoint, new: &Checkpoint) -> bool {
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
        node,
        identity,
        pod,
        stack,
        state,
    } = old;
    is_same
        && (node, identity) == (&new.node, &new.identity)
        && (pod, stack, state) == (&new.pod, &new.stack, &new.state)
}
