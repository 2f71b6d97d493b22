//! What a snapshot changes, by what runs now and what is stored: which checkpoints are written, kept and removed, whether the
//! host's state is recorded, and whether a generation is made.
//!
//! Pure: no kernel, no file, no clock. The rule for a bad moment: a pod that has lost something keeps its checkpoint, and as
//! long as something is lost or cannot be read, the host's recorded state stays and no generation is made.

mod unsaved;

use std::collections::{BTreeMap, HashSet};

use super::accept::Accepted;
use super::changes::{Changes, Gone, PodChange, PodDecision, WriteReason, has_same_content};
use super::facts::{Archive, GoodRecord, Moment, Observation, PodObservation, Reading};
use super::host_state;
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::net::limits::ENTRIES;
use crate::model::pod::empty::{EmptyNetns, Evidence};
use crate::model::problem::SnapshotCause;
use crate::model::{
    Bytes, Checkpoint, HostSide, Loss, LossCause, NetState, NetnsIdentity, PodId, PodInfo,
    PodSummary, Problem, interfaces,
};
use crate::plan::snapshot_quality::{self, less_restorable};

/// Decides what a snapshot changes.
pub(crate) fn decide(now: Observation, stored: &Archive) -> Changes {
    let Observation {
        moment,
        pods,
        mut problems,
        accept,
    } = now;
    let mut decider = Decider {
        moment: &moment,
        host: HostSide::new(&moment.host),
        stored,
        accepted: Accepted::new(&accept, &pods),
        empty: known_empty(stored, moment.everything),
        gone: BTreeMap::new(),
        problems: Vec::new(),
    };
    let (decisions, alive) = decider.pods(pods);
    let Decider {
        accepted,
        empty,
        mut gone,
        problems: of_pods,
        ..
    } = decider;
    problems.extend(of_pods);
    let any = |is_it: fn(&PodChange) -> bool| decisions.iter().any(|one| is_it(&one.change));
    // A pod that cannot be read does not hold up the others: its tenant may change its tables without end.
    let is_whole = moment.complete && !any(|change| matches!(change, PodChange::HalfLost));
    let has_unknown = any(PodChange::is_unknown);
    // Only when every namespace could be read, a checkpoint without a pod is known to be one of a pod that is gone.
    if moment.everything && is_whole {
        for (id, why) in of_gone_pods(stored, alive, &decisions) {
            gone.entry(id).or_insert(why);
        }
    }
    let known = host_state::Known {
        moment: &moment,
        stored,
        pods: &decisions,
        gone: &gone,
        is_whole,
        is_accepted: accepted.host,
    };
    let host = known.decide(empty);
    let makes_generation = !host.has_lost && is_whole;
    let ([given_up, silent], refused) = accepted.end(host.is_given_up);
    Changes {
        is_complete: makes_generation && moment.everything && !has_unknown,
        makes_generation,
        at: moment.stamp(),
        refused,
        pods: decisions,
        gone,
        host,
        answers: moment.answers,
        given_up,
        silent,
        problems,
    }
}

/// The namespaces with nothing to record that a snapshot of some pods does not read again.
fn known_empty(stored: &Archive, everything: bool) -> Vec<EmptyNetns> {
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
    /// Its host, as the pods see it.
    host: HostSide<'a>,
    stored: &'a Archive,
    accepted: Accepted,
    /// Namespaces with nothing to record.
    empty: Vec<EmptyNetns>,
    gone: BTreeMap<PodId, Gone>,
    /// The problems of the pod at hand, in the end of all.
    problems: Vec<Problem>,
}

impl<'a> Decider<'a> {
    /// The decisions for all namespaces, and the checkpoints of those that run.
    fn pods(&mut self, pods: Vec<PodObservation>) -> (Vec<PodDecision>, HashSet<&'a PodId>) {
        let (mut alive, mut problems) = (HashSet::new(), Vec::new());
        let mut decisions = Vec::with_capacity(pods.len());
        for pod in pods {
            let id = pod.info.id.clone();
            let node = &self.moment.node;
            let about = self.stored.about(node, &pod.identity, &pod.info);
            alive.extend(about.map(|(id, _)| id));
            decisions.extend(self.pod(pod));
            problems.extend(self.problems.drain(..).map(|problem| problem.of(&id)));
        }
        self.problems = problems;
        // A name under which one pod was stored may be that of another one now.
        let is_written = |one: &&PodDecision| matches!(one.change, PodChange::Write(..));
        for one in decisions.iter().filter(is_written) {
            self.gone.remove(&one.pod.info.id);
        }
        (decisions, alive)
    }

    /// The decision for a namespace; `None` for one that belongs to no pod.
    fn pod(&mut self, pod: PodObservation) -> Option<PodDecision> {
        let PodObservation {
            info,
            identity,
            path,
            reading,
            evidence,
            lacks,
        } = pod;
        let (state, vanished) = match reading {
            Reading::NoPod => {
                self.note_empty(identity, false);
                return None;
            }
            Reading::Failed(problem) => {
                self.problems.push(problem);
                // What was known of it stays.
                self.keep_empty(self.stored.empty(&identity).cloned());
                return Some(self.unread(&info, &path, &identity));
            }
            Reading::Whole(state) => (state, None),
            Reading::Torn { state, link } => (state, Some(link)),
        };
        let stored = self.stored;
        let good = stored.good(&self.moment.node, &identity, &info);
        let loss = self.loss(&info.id, vanished, &state, good);
        let is_damaged = matches!(stored.get(&info.id), Some(Err(_)));
        let evidence = evidence.or(is_damaged.then_some(Evidence::Checkpoint));
        let is_bare = state.links_but_loopback().next().is_none();
        if let (None, Some(good)) = (&loss, &good)
            && let Some(problem) = less_restorable(&good.own.state, &state, good.generation, false)
            && !self.accepted.takes(&info.id)
        {
            return Some(self.kept(&info, &path, problem, good.own));
        }
        if let (None, Some(lacks)) = (&loss, self.lacked(&info.id, lacks, good.as_ref())) {
            return Some(self.incomplete(&info, &path, lacks));
        }
        Some(match (loss, good) {
            (Some(loss), Some(good)) if self.accepted.takes(&info.id) => {
                self.give_up(loss, good);
                self.whole(info, identity, path, state, is_bare)
            }
            (Some(loss), Some(good)) => self.lost(&info, &path, loss, good),
            (Some(Loss { link, .. }), None) => {
                let cause = SnapshotCause::LinkVanished { link };
                self.unrecorded(&info, &path, cause, PodChange::HalfLost)
            }
            (None, None) if is_bare => match self.missed(&identity, evidence) {
                Some(_) if self.accepted.takes(&info.id) => {
                    self.problems
                        .push(SnapshotCause::BareGivenUp.info(path.to_string()));
                    self.whole(info, identity, path, state, true)
                }
                Some(cause) => self.unrecorded(&info, &path, cause, PodChange::NoRecord),
                None => self.whole(info, identity, path, state, false),
            },
            (None, _) => self.whole(info, identity, path, state, false),
        })
    }

    /// What the pod of this state has lost: a link that vanished while it was read, or what its good record has.
    fn loss(
        &self,
        pod: &PodId,
        gone: Option<String>,
        now: &NetState,
        good: Option<GoodRecord<'_>>,
    ) -> Option<Loss> {
        if let Some(link) = gone {
            let what = LossCause::LinkGone;
            return Some(Loss { link, what });
        }
        let own = good?.own;
        let beside = own.beside(self.stored.answers_of(pod));
        snapshot_quality::pod_loss(&own.state, beside, now, &self.host)
    }

    /// Why a namespace without an interface and without a record should have both.
    fn missed(
        &self,
        identity: &NetnsIdentity,
        evidence: Option<Evidence>,
    ) -> Option<SnapshotCause> {
        let known = self.stored.empty(identity);
        let evidence = evidence.filter(|_| !known.is_some_and(|known| known.accepted))?;
        Some(SnapshotCause::NoRecord { evidence })
    }

    /// A pod that has lost nothing: what it has now is the good state.
    fn whole(
        &mut self,
        info: PodInfo,
        identity: NetnsIdentity,
        path: Bytes,
        state: NetState,
        is_given_up: bool,
    ) -> PodDecision {
        let mut pod = PodSummary {
            interfaces: interfaces(&state),
            ..summary(&info, &path)
        };
        self.problems
            .extend(snapshot_quality::unsupported_in_pod(&state));
        self.problems.extend(snapshot_quality::duplicates(&state));
        self.give_up_silent(&info.id);
        let cut_off = self.is_cut_off(&info, &identity, &state);
        let mut state = state.lasting().with_own_ways();
        let left = state.shorten(ENTRIES);
        if left > 0 {
            let most = ENTRIES;
            let cause = SnapshotCause::TooLong { most, left };
            self.problems.push(cause.error("checkpoint"));
        }
        let extension = Extension {
            schema: SCHEMA,
            created: self.moment.created.clone(),
            created_boottime: self.moment.created_boottime,
            node: self.moment.node.clone(),
            identity: identity.clone(),
            pod: info,
            stack: self.host.graph.under(&state.links),
            chain: self.host.chain(&state),
            cut_off,
            state,
        };
        let change = if let Some(checkpoint) = Checkpoint::new(path, extension) {
            self.checkpoint(&mut pod, &identity, checkpoint)
        } else {
            if is_given_up {
                let about = self.stored.about(&self.moment.node, &identity, &pod.info);
                let files = about.map(|(id, _)| id).chain([&pod.info.id]);
                let stored = files.filter(|id| self.stored.has(id));
                self.gone
                    .extend(stored.map(|id| (id.clone(), Gone::GivenUp)));
            }
            self.note_empty(identity, is_given_up);
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

    /// Records that a namespace has nothing now.
    fn note_empty(&mut self, identity: NetnsIdentity, accepted: bool) {
        let known = self.stored.empty(&identity);
        let note = EmptyNetns {
            accepted: accepted || known.is_some_and(|known| known.accepted),
            identity,
        };
        self.keep_empty(Some(note));
    }

    fn keep_empty(&mut self, note: Option<EmptyNetns>) {
        let Some(note) = note else { return };
        self.empty
            .retain(|known| !known.identity.is_same(&note.identity));
        self.empty.push(note);
    }
}

/// A pod of which nothing else is known.
fn summary(info: &PodInfo, path: &Bytes) -> PodSummary {
    PodSummary {
        netns: Some(path.clone()),
        ..PodSummary::bare(info, None)
    }
}

#[cfg(test)]
mod tests;
