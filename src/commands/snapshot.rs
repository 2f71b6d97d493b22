//! `netfix snapshot`: writes down what every pod and the host have, and never loses a good checkpoint to a bad moment.

use std::collections::{BTreeMap, BTreeSet};

use super::session::{self, Session, bare_view, now};
use super::{Context, Early, Outcome};
use crate::cli::{Runtimes, Selectors};
use crate::kernel::Error;
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::{
    Checkpoint, Code, IfName, Link, LinkKind, NetState, NetnsIdentity, NodeIdentity, NodeState, Parent,
    PodId, PodInfo, Problem, StackLink, stack,
};
use crate::observe::{self, Host, Pod};
use crate::plan::claims::{Claimant, contested};
use crate::plan::worth;
use crate::report::{PodView, Progress, State, interfaces};
use crate::store::{self, Guard, Retired};

pub(super) fn run(
    selectors: &Selectors,
    runtimes: &Runtimes,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let selection = session::selection(selectors)?;
    let guard =
        context.store.lock("snapshot").map_err(|error| Box::new(Outcome::refused(error.problem())))?;
    let stored = context.store.load_all().map_err(|error| Box::new(Outcome::refused(error.problem())))?;
    let mut session = Session::open(&selection)?;
    session.ask(&runtimes.config(), &selection)?;
    let known: Vec<_> = stored.iter().filter_map(|(id, stored)| Some((id, stored.as_ref().ok()?))).collect();
    session.recognise(&known);
    session.pods.retain(|pod| selection.wants_pod(&pod.info));
    session.require_pods(&selection)?;
    context.progress.notice(Progress::Phase("reading namespaces", session.pods.len()));
    let states = observe::observe_pods(&mut session.pods, &session.host);
    context.progress.notice(Progress::Phase("writing checkpoints", session.pods.len()));
    let Session { node, host, pods, mut problems, answer: _ } = session;
    let old_node = session::load_node(&context.store, &node, &mut problems);
    let everything = selection.is_everything();
    let known_empty = old_node.as_ref().filter(|_| !everything).map(|node| node.empty.clone());
    let mut writer = Writer {
        guard: &guard,
        stored: stored.into_iter().collect(),
        node,
        host: &host,
        created: now(),
        views: Vec::new(),
        problems,
        empty: known_empty.unwrap_or_default(),
        gone: BTreeSet::new(),
    };
    writer.problems.extend(contested_claims(&pods, &states, &host.state));
    for (pod, state) in pods.iter().zip(states) {
        match state {
            Ok(state) => writer.pod(pod, state),
            Err(error) => writer.failed(&pod.info, pod, error.to_string()),
        }
        context.progress.notice(Progress::Advance(1));
    }
    if everything {
        writer.retire_gone(&pods);
    }
    let node_created = writer.node_state(old_node);
    Ok(writer.finish(node_created))
}

/// Two running pods, or a pod and the host, with one MAC or address: a restore would bring neither back.
fn contested_claims(pods: &[Pod], states: &[Result<NetState, Error>], host: &NetState) -> Vec<Problem> {
    let paths: Vec<String> = pods.iter().map(|pod| pod.netns.path.display().to_string()).collect();
    let living = pods.iter().zip(&paths).zip(states).filter_map(|((pod, netns), state)| {
        Some(Claimant { pod: Some(&pod.info.id), netns, state: state.as_ref().ok()? })
    });
    let host = Claimant { pod: None, netns: "", state: host };
    contested(&living.chain([host]).collect::<Vec<_>>())
}

struct Writer<'a> {
    guard: &'a Guard,
    stored: BTreeMap<PodId, Result<Checkpoint, store::Error>>,
    node: NodeIdentity,
    host: &'a Host,
    created: String,
    views: Vec<PodView>,
    problems: Vec<Problem>,
    /// Namespaces with nothing to write down.
    empty: Vec<NetnsIdentity>,
    /// Checkpoints of pods that live no longer.
    gone: BTreeSet<PodId>,
}

impl Writer<'_> {
    fn pod(&mut self, pod: &Pod, state: NetState) {
        let info = &pod.info;
        let mut view = bare_view(info, &pod.netns.path, State::Saved);
        view.interfaces = interfaces(&state);
        if let Some((lost, good)) =
            self.good_checkpoint_of(pod).and_then(|good| Some((worth::loss(&good.state, &state)?, good)))
        {
            view.interfaces = interfaces(&good.state);
            view.created = Some(good.created.clone());
            view.state = State::Degraded;
            let message = "is lost; the good checkpoint is kept: run `netfix restore`";
            self.problems.push(Problem::error(Code::Degraded, lost, message).of(&info.id));
            self.views.push(view);
            return;
        }
        let unsupported = worth::unsupported(&state).into_iter().chain(worth::devices_inside(&state));
        self.problems.extend(unsupported.map(|problem| problem.of(&info.id)));
        let state = state.lasting();
        let extension = Extension {
            schema: SCHEMA,
            created: self.created.clone(),
            node: self.node.clone(),
            identity: pod.identity.clone(),
            pod: info.clone(),
            stack: stack::under(&state, &self.host.state),
            state,
        };
        match Checkpoint::new(pod.netns.path.display().to_string(), extension) {
            None => {
                view.state = State::Empty;
                if !self.empty.iter().any(|known| known.is_same(&pod.identity)) {
                    self.empty.push(pod.identity.clone());
                }
            }
            Some(checkpoint) => {
                (view.state, view.created) = self.save(pod, &checkpoint);
                if view.state != State::Failed {
                    self.put_away_others(pod);
                }
            }
        }
        self.views.push(view);
    }

    fn save(&mut self, pod: &Pod, checkpoint: &Checkpoint) -> (State, Option<String>) {
        let id = &pod.info.id;
        match self.stored.get(id) {
            Some(Ok(old)) if !is_of(old, &self.node, pod) => self.put_away(id, Retired::Whole),
            Some(Err(error)) => {
                self.problems.push(error.problem().demoted().of(id));
                self.put_away(id, Retired::Damaged);
            }
            Some(Ok(old)) if says_the_same(old, checkpoint) => {
                return (State::Unchanged, old.netfix.as_ref().map(|extension| extension.created.clone()));
            }
            _ => {}
        }
        match self.guard.save(id, checkpoint) {
            Ok(()) => (State::Saved, Some(self.created.clone())),
            Err(error) => {
                self.problems.push(error.problem().of(id));
                (State::Failed, None)
            }
        }
    }

    /// Checkpoints about this very namespace that were written under another name, before a runtime told its sandbox.
    fn put_away_others(&mut self, pod: &Pod) {
        let is_other = |id: &PodId, stored: &Result<Checkpoint, store::Error>| {
            *id != pod.info.id && stored.as_ref().is_ok_and(|checkpoint| is_of(checkpoint, &self.node, pod))
        };
        let others = self.stored.iter().filter(|(id, stored)| is_other(id, stored));
        let others: Vec<PodId> = others.map(|(id, _)| id.clone()).collect();
        for id in others {
            self.put_away(&id, Retired::Whole);
            self.gone.insert(id);
        }
    }

    fn put_away(&mut self, id: &PodId, retired: Retired) {
        if let Err(error) = self.guard.retire(id, retired) {
            self.problems.push(error.problem().of(id));
        }
    }

    /// The stored checkpoint of this very namespace.
    fn good_checkpoint_of(&self, pod: &Pod) -> Option<&Extension> {
        let usable = self.stored.values().filter_map(|stored| stored.as_ref().ok());
        let about = usable.filter(|checkpoint| is_of(checkpoint, &self.node, pod));
        about.max_by_key(|checkpoint| checkpoint.rank())?.netfix.as_ref()
    }

    fn failed(&mut self, info: &PodInfo, pod: &Pod, message: String) {
        self.problems.push(
            Problem::error(Code::Unreadable, pod.netns.path.display().to_string(), message).of(&info.id),
        );
        self.views.push(bare_view(info, &pod.netns.path, State::Failed));
    }

    /// The host's state of the moment is kept unless the moment is a bad one: a pod has lost something, or a link is
    /// gone that a stored checkpoint stands on. Returns when the state that is now stored was read.
    fn node_state(&mut self, old: Option<NodeState>) -> Option<String> {
        let kept = old.map(|node| node.created);
        if self.views.iter().any(|view| view.state == State::Degraded) {
            return kept;
        }
        if let Some(name) = self.lost_ground() {
            let message = "is gone, and stored checkpoints stand on it: the good node state is kept";
            self.problems.push(Problem::error(Code::Degraded, name.to_string(), message));
            return kept;
        }
        self.problems.extend(worth::unsupported_on_host(&self.host.state));
        let (created, node, empty) =
            (self.created.clone(), self.node.clone(), std::mem::take(&mut self.empty));
        let node = NodeState {
            schema: SCHEMA,
            created,
            node,
            state: self.lasting_state(),
            empty,
            seen: std::collections::BTreeMap::default(),
            complete: Some(self.created.clone()),
        };
        match self.guard.save_node(&node) {
            Ok(()) => Some(node.created),
            Err(error) => {
                self.problems.push(error.problem());
                kept
            }
        }
    }

    /// A link that some checkpoint of this boot stands on and the host does not have now, under any name.
    fn lost_ground(&self) -> Option<&IfName> {
        let links = &self.host.state.links;
        let is_there = |under: &StackLink| {
            let same_device = |now: &Link| match (&under.hardware, &now.hardware) {
                (Some(then), Some(now)) => then.is_same(now),
                _ => false,
            };
            links.iter().any(|now| now.name == under.name || same_device(now))
        };
        self.stacks().find(|under| !is_there(under)).map(|under| &under.name)
    }

    /// The host's links under every checkpoint that was good at the beginning and is still worth something.
    fn stacks(&self) -> impl Iterator<Item = &StackLink> {
        let stored = self.stored.iter().filter(|(id, _)| !self.gone.contains(id));
        let extensions = stored.filter_map(|(_, stored)| stored.as_ref().ok()?.netfix.as_ref());
        extensions
            .filter(|extension| extension.node.is_same(&self.node))
            .flat_map(|extension| &extension.stack)
    }

    /// The host's state without the ends of pods' veth pairs, which come and go with the pods.
    fn lasting_state(&self) -> NetState {
        let mut state = self.host.state.clone().lasting();
        let is_pair = |link: &Link| matches!(&link.kind, LinkKind::Other { driver } if driver == "veth");
        let carries = |link: &Link| {
            let on_it = |upper: &Link| upper.parent == Some(Parent::Own(link.name.clone()));
            let under_pod =
                |view: &PodView| view.interfaces.iter().any(|i| i.parent.as_ref() == Some(&link.name));
            self.host.state.links.iter().any(on_it)
                || self.views.iter().any(under_pod)
                || self.stacks().any(|under| under.name == link.name)
        };
        state.links.retain(|link| !is_pair(link) || carries(link));
        let names: BTreeSet<IfName> = state.links.iter().map(|link| link.name.clone()).collect();
        state.addresses.retain(|address| names.contains(&address.dev));
        state.neighbours.retain(|neighbour| names.contains(&neighbour.dev));
        state.routes.retain(|route| route.devs().iter().all(|dev| names.contains(*dev)));
        state
    }

    /// A pod that is gone loses its checkpoint, but only when every namespace could be asked.
    fn retire_gone(&mut self, pods: &[Pod]) {
        if self.problems.iter().any(|problem| problem.code == Code::Unreadable) {
            return;
        }
        let is_alive = |checkpoint: &Checkpoint| pods.iter().any(|pod| is_of(checkpoint, &self.node, pod));
        let written = |id: &PodId| self.views.iter().any(|view| view.info.id == *id);
        let gone = self.stored.iter().filter(|(id, stored)| {
            let of_netfix = |checkpoint: &Checkpoint| checkpoint.netfix.is_some() && !is_alive(checkpoint);
            !written(id) && !self.gone.contains(id) && stored.as_ref().is_ok_and(of_netfix)
        });
        let gone: Vec<PodId> = gone.map(|(id, _)| id.clone()).collect();
        for id in gone {
            self.put_away(&id, Retired::Whole);
            self.gone.insert(id);
        }
    }

    fn finish(mut self, node_created: Option<String>) -> Outcome {
        self.views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
        let exit = Outcome::judge(&self.views, &self.problems);
        let node = crate::report::NodeView {
            hostname: self.node.hostname,
            created: node_created,
            ..crate::report::NodeView::default()
        };
        Outcome { exit, node, pods: self.views, problems: self.problems, ..Outcome::default() }
    }
}

fn is_of(checkpoint: &Checkpoint, node: &NodeIdentity, pod: &Pod) -> bool {
    checkpoint.netfix.as_ref().is_some_and(|extension| extension.is_about(node, &pod.identity, &pod.info))
}

/// Whether a new checkpoint says nothing that the old one does not say but the time; then the disk is spared.
fn says_the_same(old: &Checkpoint, new: &Checkpoint) -> bool {
    let timeless = |checkpoint: &Checkpoint| {
        let mut checkpoint = checkpoint.clone();
        if let Some(extension) = &mut checkpoint.netfix {
            extension.created.clear();
        }
        checkpoint
    };
    timeless(old) == timeless(new)
}
