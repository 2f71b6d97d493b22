//! `netfix snapshot`: writes down what every pod and the host have, and never loses a good checkpoint to a bad moment.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use super::claims::contested_claims;
use super::record::{Draft, Writer};
use super::select::Selection;
use super::session::{self, Session, bare_view, now};
use super::{Context, Early, Outcome};
use crate::cli::{Runtimes, Selectors};
use crate::kernel::Error;
use crate::model::checkpoint::{Extension, SCHEMA};
use crate::model::{Checkpoint, Code, Link, NetState, NodeIdentity, PodId, PodInfo, Problem, stack};
use crate::observe::{self, Pod};
use crate::plan::worth;
use crate::report::{PodView, Progress, State, interfaces};
use crate::runtime;
use crate::store::{self, Guard};

/// A pod that is being deleted loses its interface a moment before its namespace: who has lost something is looked at
/// again before it is called degraded.
pub(super) const SECOND_LOOK: Duration = Duration::from_secs(1);

pub(super) fn run(
    selectors: &Selectors,
    runtimes: &Runtimes,
    keep: NonZeroUsize,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let selection = session::selection(selectors)?;
    let lock = |context: &Context| {
        let guard = context.store.lock("snapshot");
        guard.map(Rc::new).map_err(|error| Box::new(Outcome::refused(error.problem())))
    };
    let config = runtimes.config();
    let mut found = look(lock(context)?, &selection, &config, context)?;
    if found.has_lost_something() {
        // A restore may be waiting for the lock.
        drop(found);
        thread::sleep(SECOND_LOOK);
        found = look(lock(context)?, &selection, &config, context)?;
    }
    Ok(found.write(keep, context.progress.as_mut()))
}

/// Takes a snapshot under a lock that is held already.
pub(super) fn write_down(
    guard: &Rc<Guard>,
    selection: &Selection,
    runtimes: &runtime::Config,
    keep: NonZeroUsize,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let mut found = look(guard.clone(), selection, runtimes, context)?;
    if found.has_lost_something() {
        thread::sleep(SECOND_LOOK);
        found = look(guard.clone(), selection, runtimes, context)?;
    }
    Ok(found.write(keep, context.progress.as_mut()))
}

/// Looks at everything and decides what is to be written.
fn look(
    guard: Rc<Guard>,
    selection: &Selection,
    runtimes: &runtime::Config,
    context: &mut Context,
) -> Result<Writer, Early> {
    let stored = context.store.load_all().map_err(|error| Box::new(Outcome::refused(error.problem())))?;
    let created = now();
    let mut session = Session::open(selection)?;
    session.ask(runtimes, selection)?;
    let known: Vec<_> = stored.iter().filter_map(|(id, stored)| Some((id, stored.as_ref().ok()?))).collect();
    session.recognise(&known);
    session.pods.retain(|pod| selection.wants_pod(&pod.info));
    session.require_pods(selection)?;
    context.progress.notice(Progress::Phase("reading namespaces", session.pods.len()));
    let (states, torn) = read(&mut session);
    let Session { node, mut host, pods, mut problems, answer: _ } = session;
    let links_now = host.links_now().unwrap_or_else(|error| {
        problems.push(Problem::error(Code::Unreadable, "host", error.to_string()));
        Vec::new()
    });
    let unread = problems.iter().any(|problem| problem.code == Code::Unreadable);
    let old_node = session::load_node(&context.store, &node, &mut problems);
    let everything = selection.is_everything();
    let known_empty = old_node.as_ref().filter(|_| !everything).map(|node| node.empty.clone());
    let living = pods.iter().zip(&states).filter_map(|(pod, state)| Some((pod, state.as_ref().ok()?)));
    problems.extend(contested_claims([], living, &host.state));
    let mut writer = Writer {
        guard,
        stored: stored.into_iter().collect(),
        node,
        old_node,
        host: host.state,
        links_now,
        created,
        everything,
        views: Vec::new(),
        problems,
        drafts: Vec::new(),
        empty: known_empty.unwrap_or_default(),
        gone: BTreeMap::new(),
        incomplete: unread,
    };
    for ((pod, state), torn) in pods.iter().zip(states).zip(torn) {
        match state {
            Ok(state) => writer.pod(pod, state, torn),
            Err(error) => writer.failed(&pod.info, pod, error.to_string()),
        }
    }
    if everything && !writer.incomplete {
        writer.find_gone(&pods);
    }
    Ok(writer)
}

/// Reads every pod, and what went from each while it was read.
fn read(session: &mut Session) -> (Vec<Result<NetState, Error>>, Vec<Option<String>>) {
    let read = observe::observe_pods_twice(&mut session.pods, &session.host);
    let torn = |read: Result<(NetState, Vec<Link>), Error>| match read {
        Ok((state, links)) => {
            let torn = worth::torn(&state, &links);
            (Ok(state), torn)
        }
        Err(error) => (Err(error), None),
    };
    read.into_iter().map(torn).unzip()
}

impl Writer {
    fn has_lost_something(&self) -> bool {
        self.views.iter().any(|view| view.state == State::Degraded)
    }

    fn pod(&mut self, pod: &Pod, state: NetState, torn: Option<String>) {
        let info = &pod.info;
        let mut view = bare_view(info, &pod.netns.path, State::Saved);
        view.interfaces = interfaces(&state);
        let good = self.good_checkpoint_of(pod);
        let lost = torn.or_else(|| worth::loss(&good?.state, &state));
        match (lost, good) {
            (Some(lost), Some(good)) => {
                view.interfaces = interfaces(&good.state);
                view.created = Some(good.created.clone());
                view.state = State::Degraded;
                let message = "is lost; the good checkpoint is kept: run `netfix restore`";
                self.problems.push(Problem::error(Code::Degraded, lost, message).of(&info.id));
                return self.views.push(view);
            }
            (Some(lost), None) => {
                let message = format!("{lost} went away while it was read; run `netfix snapshot` again");
                return self.failed(info, pod, message);
            }
            (None, _) => {}
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
            stack: stack::under(&state, &self.host),
            state,
        };
        match Checkpoint::new(pod.netns.path.display().to_string(), extension) {
            None => {
                view.state = State::Empty;
                if !self.empty.iter().any(|known| known.is_same(&pod.identity)) {
                    self.empty.push(pod.identity.clone());
                }
            }
            Some(checkpoint) => self.draft(pod, &mut view, checkpoint),
        }
        self.views.push(view);
    }

    /// Notes what is to be written, unless the file on disk says the same already.
    fn draft(&mut self, pod: &Pod, view: &mut PodView, checkpoint: Checkpoint) {
        self.note_others(pod);
        match self.stored.get(&pod.info.id) {
            Some(Ok(old)) => {
                view.created = old.netfix.as_ref().map(|extension| extension.created.clone());
                if is_of(old, &self.node, pod) && says_the_same(old, &checkpoint) {
                    view.state = State::Unchanged;
                    return;
                }
            }
            Some(Err(error)) => {
                self.problems.push(error.problem().demoted().of(&pod.info.id));
            }
            None => {}
        }
        self.drafts.push(Draft { at: self.views.len(), checkpoint });
    }

    /// Checkpoints about this very namespace that were written under another name, before a runtime told its sandbox.
    fn note_others(&mut self, pod: &Pod) {
        let at = self.views.len();
        let is_other = |id: &PodId, stored: &Result<Checkpoint, store::Error>| {
            *id != pod.info.id && stored.as_ref().is_ok_and(|checkpoint| is_of(checkpoint, &self.node, pod))
        };
        let others = self.stored.iter().filter(|(id, stored)| is_other(id, stored));
        let others: Vec<_> = others.map(|(id, _)| (id.clone(), Some(at))).collect();
        self.gone.extend(others);
    }

    /// The stored checkpoint of this very namespace.
    fn good_checkpoint_of(&self, pod: &Pod) -> Option<&Extension> {
        let usable = self.stored.values().filter_map(|stored| stored.as_ref().ok());
        let about = usable.filter(|checkpoint| is_of(checkpoint, &self.node, pod));
        about.max_by_key(|checkpoint| checkpoint.rank())?.netfix.as_ref()
    }

    fn failed(&mut self, info: &PodInfo, pod: &Pod, message: String) {
        self.incomplete = true;
        self.problems.push(
            Problem::error(Code::Unreadable, pod.netns.path.display().to_string(), message).of(&info.id),
        );
        self.views.push(bare_view(info, &pod.netns.path, State::Failed));
    }

    /// Notes the pods that are gone and lose their checkpoints; only for when every namespace could be asked.
    fn find_gone(&mut self, pods: &[Pod]) {
        let is_alive = |checkpoint: &Checkpoint| pods.iter().any(|pod| is_of(checkpoint, &self.node, pod));
        let written = |id: &PodId| self.views.iter().any(|view| view.info.id == *id);
        let gone = self.stored.iter().filter(|(id, stored)| {
            let of_netfix = |checkpoint: &Checkpoint| checkpoint.netfix.is_some() && !is_alive(checkpoint);
            !written(id) && stored.as_ref().is_ok_and(of_netfix)
        });
        let gone: Vec<_> = gone.map(|(id, _)| (id.clone(), None)).collect();
        self.gone.extend(gone);
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
