//! What a snapshot changes, by what runs now and what is stored: which checkpoints are written, kept and removed, whether the
//! host's state is recorded, and whether a generation is made.
//!
//! Pure: no kernel, no file, no clock. The rule for a bad moment: a pod that has lost something keeps its checkpoint, and as
//! long as something is lost or cannot be read, the host's recorded state stays and no generation is made.

use std::collections::{BTreeMap, HashSet};

use super::facts::{Archive, Moment, Observation, PodObservation, Reading};
use super::host_state;
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::net::stack;
use crate::model::problem::SnapshotCause;
use crate::model::{
    Bytes, Checkpoint, Loss, LossCause, NetState, NetnsIdentity, NodeState, PodId, PodInfo,
    PodSummary, Problem, Stamp, interfaces,
};
use crate::plan::snapshot_quality;

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
    /// Problems of the observation and of the pods.
    pub problems: Vec<Problem>,
    /// Whether all that is stored then becomes a generation.
    pub makes_generation: bool,
    /// Whether nothing is lost, and all pods were to be observed and could be read.
    pub is_complete: bool,
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
    /// Its pod has a checkpoint under this id, which a runtime has reported since.
    Renamed(PodId),
}

/// What a snapshot changes for the host.
#[derive(Debug)]
pub(crate) struct HostDecision {
    pub change: HostChange,
    /// Whether the host or a pod has lost something.
    pub has_lost: bool,
    pub problems: Vec<Problem>,
}

/// What happens to the host's recorded state.
#[derive(Debug)]
pub(crate) enum HostChange {
    Record(Box<NodeState>),
    /// It stays, with new times at which checkpoints were verified.
    Keep,
}

/// Decides what a snapshot changes.
pub(crate) fn decide(now: Observation, stored: &Archive) -> Changes {
    let Observation {
        moment,
        pods,
        mut problems,
    } = now;
    let mut decider = Decider {
        moment: &moment,
        stored,
        empty: known_empty(stored, moment.everything),
        gone: BTreeMap::new(),
        problems: Vec::new(),
    };
    // The checkpoints of running namespaces.
    let mut alive = HashSet::new();
    let mut decisions = Vec::with_capacity(pods.len());
    for pod in pods {
        let id = pod.info.id.clone();
        let about = stored.about(&moment.node, &pod.identity, &pod.info);
        alive.extend(about.map(|(id, _)| id));
        decisions.extend(decider.pod(pod));
        problems.extend(decider.problems.drain(..).map(|problem| problem.of(&id)));
    }
    let Decider {
        empty, mut gone, ..
    } = decider;
    // A name under which one pod was stored may be that of another one now.
    for one in &decisions {
        if matches!(one.change, PodChange::Write(..)) {
            gone.remove(&one.pod.info.id);
        }
    }
    let any = |is_it: fn(&PodChange) -> bool| decisions.iter().any(|one| is_it(&one.change));
    // A pod that cannot be read does not hold up the others: its tenant may change its tables without end.
    let is_whole = moment.complete && !any(|change| matches!(change, PodChange::HalfLost));
    let has_unread = any(|change| matches!(change, PodChange::Unread));
    // Only when every namespace could be read, a checkpoint without a pod is known to be one of a pod that is gone.
    if moment.everything && is_whole {
        gone.extend(of_gone_pods(stored, alive, &decisions));
    }
    let known = host_state::Known {
        moment: &moment,
        stored,
        pods: &decisions,
        gone: &gone,
        is_whole,
    };
    let host = known.decide(empty);
    let makes_generation = !host.has_lost && is_whole;
    Changes {
        is_complete: makes_generation && moment.everything && !has_unread,
        makes_generation,
        at: moment.stamp(),
        pods: decisions,
        gone,
        host,
        problems,
    }
}

/// The namespaces with nothing to record that a snapshot of some pods does not read again.
fn known_empty(stored: &Archive, everything: bool) -> Vec<NetnsIdentity> {
    match &stored.node {
        Some(node) if !everything => node.empty.clone(),
        _ => Vec::new(),
    }
}

/// The checkpoints of pods that are gone; `alive` are those of running namespaces.
fn of_gone_pods<'a>(
    stored: &'a Archive,
    mut alive: HashSet<&'a PodId>,
    pods: &'a [PodDecision],
) -> Vec<(PodId, Gone)> {
    alive.extend(pods.iter().map(|one| &one.pod.info.id));
    let of_netfix = stored
        .readable()
        .filter(|(_, checkpoint)| checkpoint.netfix.is_some());
    of_netfix
        .filter(|(id, _)| !alive.contains(id))
        .map(|(id, _)| (id.clone(), Gone::Pod))
        .collect()
}

/// Decides for one pod after the other.
struct Decider<'a> {
    moment: &'a Moment,
    stored: &'a Archive,
    /// Namespaces with nothing to record: one that has nothing now has lost nothing later, also where no runtime is queried.
    empty: Vec<NetnsIdentity>,
    gone: BTreeMap<PodId, Gone>,
    /// The problems of the pod at hand.
    problems: Vec<Problem>,
}

impl Decider<'_> {
    /// The decision for a namespace; `None` for one that belongs to no pod.
    fn pod(&mut self, pod: PodObservation) -> Option<PodDecision> {
        let PodObservation {
            info,
            identity,
            path,
            reading,
        } = pod;
        let (state, vanished) = match reading {
            Reading::NoPod => {
                self.note_empty(identity);
                return None;
            }
            Reading::Failed(problem) => {
                self.problems.push(problem);
                let mut recorded = self.stored.node.iter().flat_map(|node| &node.empty);
                if recorded.any(|known| known.is_same(&identity)) {
                    self.note_empty(identity);
                }
                return Some(PodDecision {
                    pod: summary(&info, &path),
                    change: PodChange::Unread,
                });
            }
            Reading::Whole(state) => (state, None),
            Reading::Torn { state, link } => (state, Some(link)),
        };
        let good = self.stored.best_about(&self.moment.node, &identity, &info);
        let lost = match vanished {
            Some(link) => Some(Loss {
                link,
                what: LossCause::LinkGone,
            }),
            None => good.and_then(|good| snapshot_quality::loss(&good.state, &state)),
        };
        Some(match (lost, good) {
            (Some(lost), Some(good)) => self.lost(&info, &path, lost, good),
            (Some(Loss { link, .. }), None) => {
                let problem = SnapshotCause::LinkVanished { link }.error(path.to_string());
                self.problems.push(problem);
                PodDecision {
                    pod: summary(&info, &path),
                    change: PodChange::HalfLost,
                }
            }
            (None, _) => self.whole(info, identity, path, state),
        })
    }

    /// A pod that has lost something: its good checkpoint stays.
    fn lost(
        &mut self,
        info: &PodInfo,
        path: &Bytes,
        Loss { link, what }: Loss,
        good: &Extension,
    ) -> PodDecision {
        let generation = None;
        self.problems
            .push(SnapshotCause::Lost { what, generation }.error(link));
        PodDecision {
            pod: PodSummary {
                interfaces: interfaces(&good.state),
                created: Some(good.created.clone()),
                ..summary(info, path)
            },
            change: PodChange::Lost,
        }
    }

    /// A pod that has lost nothing: what it has now is the good state.
    fn whole(
        &mut self,
        info: PodInfo,
        identity: NetnsIdentity,
        path: Bytes,
        state: NetState,
    ) -> PodDecision {
        let mut pod = PodSummary {
            interfaces: interfaces(&state),
            ..summary(&info, &path)
        };
        self.problems
            .extend(snapshot_quality::unsupported_in_pod(&state));
        let state = state.lasting();
        let extension = Extension {
            schema: SCHEMA,
            created: self.moment.created.clone(),
            created_boottime: self.moment.created_boottime,
            node: self.moment.node.clone(),
            identity: identity.clone(),
            pod: info,
            stack: stack::under(&state, &self.moment.host),
            state,
        };
        let change = if let Some(checkpoint) = Checkpoint::new(path, extension) {
            self.checkpoint(&mut pod, &identity, checkpoint)
        } else {
            self.note_empty(identity);
            PodChange::Empty
        };
        PodDecision { pod, change }
    }

    /// Whether the checkpoint is written, and why.
    fn checkpoint(
        &mut self,
        pod: &mut PodSummary,
        identity: &NetnsIdentity,
        checkpoint: Checkpoint,
    ) -> PodChange {
        let node = &self.moment.node;
        let (info, id) = (&pod.info, &pod.info.id);
        // Checkpoints of the same namespace under another id, from before a runtime reported its sandbox.
        let others = self.stored.about(node, identity, info);
        let others = others.filter(|(other, _)| *other != id);
        self.gone
            .extend(others.map(|(other, _)| (other.clone(), Gone::Renamed(id.clone()))));
        let reason = match self.stored.get(id) {
            None => WriteReason::New,
            Some(Err(problem)) => {
                self.problems.push(problem.clone().demoted());
                WriteReason::Corrupt
            }
            Some(Ok(old)) => {
                let own = old.netfix.as_ref();
                let is_of_it = own.is_some_and(|own| own.is_about(node, identity, info));
                pod.created = own.map(|own| own.created.clone());
                match is_of_it {
                    true if has_same_content(old, &checkpoint) => return PodChange::Unchanged,
                    true => WriteReason::Changed,
                    false => WriteReason::Replaced,
                }
            }
        };
        PodChange::Write(reason, Box::new(checkpoint.in_oldest_schema()))
    }

    fn note_empty(&mut self, identity: NetnsIdentity) {
        if !self.empty.iter().any(|known| known.is_same(&identity)) {
            self.empty.push(identity);
        }
    }
}

/// A pod of which nothing else is known.
fn summary(info: &PodInfo, path: &Bytes) -> PodSummary {
    PodSummary {
        netns: Some(path.clone()),
        ..PodSummary::bare(info, None)
    }
}

/// Whether two checkpoints differ in the time alone; then the disk is spared. What is left of a lifetime is true only together with
/// the time.
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
        created_boottime: _,
        node,
        identity,
        pod,
        stack,
        state,
    } = old;
    is_same
        && !state.has_lifetimes()
        && (node, identity) == (&new.node, &new.identity)
        && (pod, stack, state) == (&new.pod, &new.stack, &new.state)
}

#[cfg(test)]
mod tests;
