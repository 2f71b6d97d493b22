//! `netfix import`: takes over the origin's checkpoints of pods that live. The origin's folder is only read.

use std::collections::BTreeMap;
use std::path::Path;
use std::slice;

use super::check_in::described;
use super::session::{self, Session, bare_view, info_of, key_at, nameless, stored_view};
use super::{Context, Early, Outcome};
use crate::cli::{Runtimes, Selectors};
use crate::model::{Checkpoint, Code, PodId, PodInfo, Problem};
use crate::observe::{self, Pod};
use crate::report::{PodView, State};
use crate::store::{self, Content, Foreign, Guard, Store};

pub(super) fn run(folder: &Path, runtimes: &Runtimes, context: &mut Context) -> Result<Outcome, Early> {
    let refuse = |error: store::Error| Box::new(Outcome::refused(error.problem()));
    let files = read(folder, &context.store).map_err(|problem| Box::new(Outcome::refused(problem)))?;
    let guard = context.store.lock("import").map_err(refuse)?;
    let selection = session::selection(&Selectors::default())?;
    let mut session = Session::open(&selection)?;
    session.ask(&runtimes.config(), &selection)?;
    let stored = context.store.load_all().map_err(refuse)?.into_iter().collect();
    let problems = std::mem::take(&mut session.problems);
    let mut import = Import { guard, stored, session, views: Vec::new(), problems, taken: Vec::new() };
    let living = import.living(&files);
    for (file, at) in files.into_iter().zip(living) {
        import.file(file, at);
    }
    Ok(import.finish())
}

/// Every file of the folder, or why there is nothing to import.
fn read(folder: &Path, store: &Store) -> Result<Vec<Foreign>, Problem> {
    let refuse = |message: &str| Problem::error(Code::NotFound, folder.display().to_string(), message);
    if store.is_at(folder) {
        return Err(refuse("is netfix's own folder; what lies there is used without an import"));
    }
    let files = store::foreign(folder).map_err(|error| {
        if error.is_missing() { refuse("there is no such folder") } else { error.problem() }
    })?;
    if files.is_empty() { Err(refuse("the folder is empty; there is nothing to import")) } else { Ok(files) }
}

/// Where a file's pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lives {
    /// It is the living pod at this place.
    At(usize),
    /// Another file claims the same living pod, and nobody can say which is right.
    Contested(usize),
    /// The living pod at this place is another one.
    Replaced(usize),
    /// It lives no longer.
    Nowhere,
}

struct Import {
    guard: Guard,
    stored: BTreeMap<PodId, Result<Checkpoint, store::Error>>,
    session: Session,
    views: Vec<PodView>,
    problems: Vec<Problem>,
    /// Places of the living pods whose files were taken.
    taken: Vec<usize>,
}

impl Import {
    /// Where the pod of each file is.
    fn living(&self, files: &[Foreign]) -> Vec<Lives> {
        let mut living: Vec<Lives> = files.iter().map(|file| self.lives(file)).collect();
        let claimed = living.clone();
        for lives in &mut living {
            let claims = claimed.iter().filter(|other| *other == lives).count();
            if let (Lives::At(at), true) = (*lives, claims > 1) {
                *lives = Lives::Contested(at);
            }
        }
        living
    }

    fn lives(&self, file: &Foreign) -> Lives {
        let Ok(Content { id, checkpoint, .. }) = &file.content else { return Lives::Nowhere };
        let info = info_of(id, checkpoint);
        let pods = &self.session.pods;
        let by_sandbox = pods.iter().position(|pod| info.is_surely(&pod.info));
        let by_path =
            || key_at(&checkpoint.netns).and_then(|key| pods.iter().position(|p| p.netns.key() == key));
        match by_sandbox.or_else(by_path) {
            Some(at) if info.contradicts(&pods[at].info) => Lives::Replaced(at),
            Some(at) => Lives::At(at),
            None => Lives::Nowhere,
        }
    }

    fn file(&mut self, file: Foreign, lives: Lives) {
        let content = match file.content {
            Ok(content) => content,
            Err(error) => {
                let id = PodId::from_text(&file.name);
                self.problems.push(error.problem().of(&id));
                self.views.push(bare_view(&nameless(&id), Path::new(""), State::Failed));
                return;
            }
        };
        let info = info_of(&content.id, &content.checkpoint);
        let (state, problem) = match lives {
            Lives::At(at) => self.take(&content, at),
            Lives::Contested(at) => (State::Failed, Some(contested(&self.session.pods[at].info))),
            Lives::Replaced(at) => (State::Failed, Some(replaced(&info, &self.session.pods[at].info))),
            Lives::Nowhere => {
                let message =
                    "no living namespace is found at this path, so there is nothing to import it for";
                (State::Gone, Some(Problem::info(Code::NetnsGone, netns(&content.checkpoint), message)))
            }
        };
        self.problems.extend(problem.map(|problem| problem.of(&info.id)));
        self.views.push(stored_view(&info, &content.checkpoint, state));
    }

    /// Writes the file of a pod that lives, unless something better is there.
    fn take(&mut self, content: &Content, at: usize) -> (State, Option<Problem>) {
        let pod = &self.session.pods[at];
        if let Some(id) = self.own_checkpoint(pod) {
            let message = format!("netfix's own checkpoint {id} of this pod knows more and is kept");
            return (
                State::Kept,
                Some(Problem::info(Code::PartialSource, netns(&content.checkpoint), message)),
            );
        }
        self.taken.push(at);
        let note = match self.stored.get(&content.id) {
            Some(Ok(old)) if *old == content.checkpoint => return (State::Unchanged, None),
            None => None,
            Some(old) => {
                if let Err(error) = self.guard.keep_before(slice::from_ref(&content.id)) {
                    return (State::Failed, Some(error.problem()));
                }
                old.as_ref().err().map(|error| error.problem().demoted())
            }
        };
        match self.guard.adopt(content) {
            Ok(()) => (State::Imported, note),
            Err(error) => (State::Failed, Some(error.problem())),
        }
    }

    /// What netfix has written about this very namespace.
    fn own_checkpoint(&self, pod: &Pod) -> Option<&PodId> {
        let is_own = |checkpoint: &Checkpoint| {
            let extension = checkpoint.netfix.as_ref();
            extension.is_some_and(|own| own.is_about(&self.session.node, &pod.identity, &pod.info))
        };
        self.stored.iter().find(|(_, stored)| stored.as_ref().is_ok_and(is_own)).map(|(id, _)| id)
    }

    fn finish(mut self) -> Outcome {
        self.tell_of_the_living();
        self.views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
        let exit = Outcome::judge(&self.views, &self.problems);
        let node = self.session.node_view(None);
        Outcome { exit, node, pods: self.views, problems: self.problems, ..Outcome::default() }
    }

    /// While an interface is there, a snapshot writes down all of it.
    fn tell_of_the_living(&mut self) {
        let Session { host, pods, .. } = &mut self.session;
        let states = observe::observe_pods(pods, host);
        let has_links = |at: &&usize| {
            let is_own = |link: &crate::model::Link| link.kind != crate::model::LinkKind::Loopback;
            states[**at].as_ref().is_ok_and(|state| state.links.iter().any(is_own))
        };
        let alive = self.taken.iter().filter(has_links).count();
        if alive > 0 {
            let message = format!(
                "{alive} of these pods have their interface; run `netfix snapshot`, which writes down all of it, such as \
                 ifindex, MTU, settings and parent"
            );
            self.problems.push(Problem::info(Code::PartialSource, "import", message));
        }
    }
}

fn netns(checkpoint: &Checkpoint) -> String {
    checkpoint.netns.escape_debug().to_string()
}

fn replaced(file: &PodInfo, living: &PodInfo) -> Problem {
    let message = format!(
        "another pod has this namespace now, {}, and this file is not imported: it is about sandbox {}",
        described(living),
        file.sandbox.as_deref().unwrap_or("-").escape_debug(),
    );
    Problem::error(Code::PodReplaced, "", message)
}

fn contested(living: &PodInfo) -> Problem {
    let message = format!(
        "several files lead to the namespace of {}, and no runtime says which is its own: none is imported",
        described(living)
    );
    Problem::error(Code::NetnsReplaced, "", message)
}
