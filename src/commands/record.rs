//! What a snapshot writes once it has looked at everything: nothing is replaced that no generation holds, and a bad moment
//! makes no generation.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::rc::Rc;

use super::Outcome;
use crate::model::checkpoint::SCHEMA;
use crate::model::{
    Checkpoint, Code, IfName, Link, LinkKind, NetState, NetnsIdentity, NodeIdentity, NodeState, Parent,
    PodId, Problem, StackLink,
};
use crate::plan::worth;
use crate::report::{Extra, KeptView, Listener, NodeView, PodView, Progress, State};
use crate::store::{self, Guard, Kept, Prune};

/// A checkpoint that is to be written.
#[derive(Debug)]
pub(super) struct Draft {
    /// Where its pod's view stands.
    pub at: usize,
    pub checkpoint: Checkpoint,
}

/// What a snapshot has found, and what is stored of it.
pub(super) struct Writer {
    pub guard: Rc<Guard>,
    pub stored: BTreeMap<PodId, Result<Checkpoint, store::Error>>,
    pub node: NodeIdentity,
    /// The node's state that was stored before.
    pub old_node: Option<NodeState>,
    pub host: NetState,
    /// The host's links after everything else was read.
    pub links_now: Vec<Link>,
    pub created: String,
    /// Whether all pods were looked at.
    pub everything: bool,
    pub views: Vec<PodView>,
    pub problems: Vec<Problem>,
    pub drafts: Vec<Draft>,
    /// Namespaces with nothing to write down.
    pub empty: Vec<NetnsIdentity>,
    /// Checkpoints that nobody needs any more: of pods that live no longer, and those whose pod has one under another
    /// name, with the place of its view.
    pub gone: BTreeMap<PodId, Option<usize>>,
    /// Whether something could not be read, or not be written.
    pub incomplete: bool,
}

impl Writer {
    /// Writes down what was decided.
    pub(super) fn write(mut self, keep: NonZeroUsize, progress: &mut dyn Listener) -> Outcome {
        let held = self.keep_before();
        progress.notice(Progress::Phase("writing checkpoints", self.drafts.len()));
        for draft in std::mem::take(&mut self.drafts) {
            self.save(&draft);
            progress.notice(Progress::Advance(1));
        }
        self.remove_gone();
        let has_lost = self.has_lost();
        let old_node = self.old_node.take();
        let node = if held.is_ok() { self.node_state(old_node, has_lost) } else { old_node };
        let kept = match held {
            Ok(spare) => self.generations(keep, spare, has_lost),
            Err(()) => KeptView::default(),
        };
        self.finish(node.as_ref(), kept)
    }

    /// Sees to it that a generation holds what is about to be replaced; where that cannot be, nothing is. Returns the
    /// number of the one that has to stay for it.
    fn keep_before(&mut self) -> Result<Option<u64>, ()> {
        let drafted = self.drafts.iter().map(|draft| &self.views[draft.at].info.id);
        let replaced = drafted.filter(|id| self.stored.contains_key(id)).chain(self.gone.keys());
        let replaced: Vec<PodId> = replaced.cloned().collect();
        let mut problem = match self.guard.keep_before(&replaced) {
            Ok(number) => return Ok(number.filter(|_| !replaced.is_empty())),
            Err(error) => error.problem(),
        };
        problem.message.push_str("; without a generation that holds it, nothing that is stored is replaced");
        if replaced.is_empty() {
            self.problems.push(problem.clone());
        }
        self.problems.extend(replaced.iter().map(|id| problem.clone().of(id)));
        self.gone.clear();
        let (kept, fresh) = std::mem::take(&mut self.drafts)
            .into_iter()
            .partition::<Vec<_>, _>(|draft| replaced.contains(&self.views[draft.at].info.id));
        self.drafts = fresh;
        for draft in kept {
            self.views[draft.at].state = State::Failed;
        }
        self.incomplete = true;
        Err(())
    }

    fn save(&mut self, draft: &Draft) {
        let view = &mut self.views[draft.at];
        match self.guard.save(&view.info.id, &draft.checkpoint) {
            Ok(()) => view.created = Some(self.created.clone()),
            Err(error) => {
                view.state = State::Failed;
                self.problems.push(error.problem().of(&view.info.id));
                self.incomplete = true;
            }
        }
    }

    fn remove_gone(&mut self) {
        let failed = |at: usize| self.views[at].state == State::Failed;
        self.gone.retain(|_, other| !other.is_some_and(failed));
        for id in std::mem::take(&mut self.gone).into_keys() {
            match self.guard.remove(&id) {
                Ok(()) => drop(self.stored.remove(&id)),
                Err(error) => {
                    self.problems.push(error.problem().of(&id));
                    self.incomplete = true;
                }
            }
        }
    }

    /// Whether a pod has lost something, or a link of the host is gone or down that a stored checkpoint stands on.
    fn has_lost(&mut self) -> bool {
        if self.views.iter().any(|view| view.state == State::Degraded) {
            return true;
        }
        let Some((name, how)) = self.lost_ground() else { return false };
        let message = format!("{how}, and stored checkpoints stand on it: the good node state is kept");
        self.problems.push(Problem::error(Code::Degraded, name.to_string(), message));
        true
    }

    /// Writes the host's state of the moment; in a bad one the old state stays, and only when the pods were last seen
    /// true is noted. Returns what is stored afterwards.
    fn node_state(&mut self, old: Option<NodeState>, has_lost: bool) -> Option<NodeState> {
        if !has_lost {
            self.problems.extend(worth::unsupported_on_host(&self.host));
        }
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
            },
        };
        let is_true = |view: &&PodView| matches!(view.state, State::Saved | State::Unchanged);
        let seen = self.views.iter().filter(is_true).map(|view| view.info.id.clone());
        node.seen.retain(|id, _| self.stored.contains_key(id));
        node.seen.extend(seen.map(|id| (id, self.created.clone())));
        if self.everything && !has_lost && !self.incomplete {
            node.complete = Some(self.created.clone());
        }
        match self.guard.save_node(&node) {
            Ok(()) => Some(node),
            Err(error) => {
                self.problems.push(error.problem());
                self.incomplete = true;
                old
            }
        }
    }

    /// Sees to it that the newest generation holds what is stored now, unless the moment is a bad one, and removes those
    /// that are too many.
    fn generations(&mut self, keep: NonZeroUsize, spare: Option<u64>, has_lost: bool) -> KeptView {
        let mut kept = KeptView::default();
        let mut which = Prune::Aside;
        if !has_lost && !self.incomplete {
            match self.guard.keep() {
                Ok(Kept::Made(number)) => (kept.generation, which) = (Some(number), Prune::Any),
                Ok(Kept::Already(number)) => (kept.same_as, which) = (Some(number), Prune::Any),
                Err(error) => self.problems.push(error.problem()),
            }
        }
        let (removed, result) = self.guard.prune(keep, spare, which);
        self.problems.extend(result.err().map(|error| error.problem()));
        KeptView { removed, ..kept }
    }

    /// A link that some checkpoint of this boot stands on and the host does not have now, under any name, or has down
    /// that was up; and which of the two.
    fn lost_ground(&self) -> Option<(&IfName, &'static str)> {
        let is_same = |under: &StackLink, now: &Link| match (&under.hardware, &now.hardware) {
            (Some(then), Some(now)) => then.is_same(now),
            _ => false,
        };
        let was_up = |under: &StackLink| {
            let then = self.old_node.as_ref().and_then(|old| old.state.link(&under.name));
            then.is_some_and(|then| then.flags.up)
        };
        let lost = |under: &StackLink| {
            let mut now = self.links_now.iter().filter(|now| now.name == under.name || is_same(under, now));
            match now.next() {
                None => Some("is gone"),
                Some(now) if was_up(under) && !now.flags.up => Some("is down"),
                Some(_) => None,
            }
        };
        self.stacks().find_map(|under| Some((&under.name, lost(under)?)))
    }

    /// The host's links under every checkpoint that was good at the beginning and is still worth something.
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
        let is_pair = |link: &Link| matches!(&link.kind, LinkKind::Other { driver } if driver == "veth");
        let carries = |link: &Link| {
            let on_it = |upper: &Link| upper.parent == Some(Parent::Own(link.name.clone()));
            let under_pod =
                |view: &PodView| view.interfaces.iter().any(|i| i.parent.as_ref() == Some(&link.name));
            self.host.links.iter().any(on_it)
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

    fn finish(mut self, node: Option<&NodeState>, kept: KeptView) -> Outcome {
        for view in &mut self.views {
            view.seen = node.and_then(|node| node.seen(&view.info.id)).map(str::to_owned);
        }
        self.views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
        let exit = Outcome::judge(&self.views, &self.problems);
        let created = node.map(|node| node.created.clone());
        let node = NodeView { hostname: self.node.hostname, created, ..NodeView::default() };
        Outcome { exit, node, pods: self.views, problems: self.problems, extra: Some(Extra::Kept(kept)) }
    }
}
