//! What `diff`, `plan` and `restore` share: the chosen checkpoints, the living pods that they are about, and the
//! ground that those stand on. Everything that can be refused is refused here, before anything is touched.

use super::check_in::{self, CheckIn, Ground, Matched, Strays, check_in, ground, numbers};
use super::claims::contested_claims;
use super::cni_cache::{self, Cache};
use super::origin::{self, Parents};
use super::select::Selection;
use super::session::{Session, Stored, load, load_node, no_checkpoints};
use super::{Context, Early, Outcome, generations};
use crate::cli::{Source, SourceArgs, Target};
use crate::model::{Checkpoint, Code, IfName, NetState, NodeIdentity, NodeState, PodId, PodInfo, Problem};
use crate::observe::{Host, Pod};
use crate::plan::claims::Claimant;
use crate::report::{NodeView, PodView, State};
use crate::runtime::{self, Sandbox};
use crate::store::Store;

/// Everything that a plan can be made from.
#[derive(Debug)]
pub(super) struct Prepared {
    pub host: Host,
    pub ground: Ground,
    pub matched: Vec<Matched>,
    pub node: NodeView,
    /// The pods that cannot be worked on.
    pub views: Vec<PodView>,
    pub problems: Vec<Problem>,
    /// Whom to ask about at the end.
    pub replaced: Replaced,
}

/// Gathers it, or ends the command where there is no pod to work on.
pub(super) fn prepare(
    target: &Target,
    source: &SourceArgs,
    selection: &Selection,
    context: &Context,
) -> Result<Prepared, Early> {
    let store = generations::store(&context.store, target.pods.generation)?;
    let records = match source.source {
        Source::Checkpoints => Records::Stored(load(&store, selection)?),
        Source::CniCache => Records::Cache(cni_cache::read(&source.cni_cache_dir)?),
    };
    prepare_from(records, NodeFile::In(&store), target, source, selection)
}

/// The same from records that were read before.
pub(super) fn prepare_from(
    records: Records,
    node: NodeFile<'_>,
    target: &Target,
    source: &SourceArgs,
    selection: &Selection,
) -> Result<Prepared, Early> {
    let mut session = Session::open(selection)?;
    if records.need_runtime(&session.pods, &session.node) {
        session.ask(&source.runtimes.config(), selection)?;
    }
    let surveyed = survey(session, records, target.parent.as_ref(), selection, node)?;
    let ending = surveyed.checked.end_without_pods(&surveyed.damaged);
    let Surveyed { host, ground, checked, strays, damaged, node, node_state: _, mut problems } = surveyed;
    let CheckIn { matched, strays: _, rejected, problems: refusals } = checked;
    let nothing_stored = matched.is_empty() && rejected.is_empty() && damaged.is_empty();
    problems.extend(nothing_stored.then(|| nothing_to_work_from(source, selection)));
    problems.extend(refusals.into_iter().chain(strays.problems));
    let replaced = Replaced::among(&rejected, &problems);
    let views: Vec<_> = damaged.into_iter().chain(rejected).chain(strays.views).collect();
    if matched.is_empty() {
        replaced.tell(&source.runtimes.config(), &mut problems);
        return Err(Box::new(Outcome { exit: ending, node, pods: views, problems, ..Outcome::default() }));
    }
    Ok(Prepared { host, ground, matched, node, views, problems, replaced })
}

/// Where the host's own state is known from.
#[derive(Debug)]
pub(super) enum NodeFile<'a> {
    /// The state folder has it.
    In(&'a Store),
    /// It was read before.
    Read(Option<Box<NodeState>>),
}

impl NodeFile<'_> {
    /// The state, if it is of this machine and boot.
    pub(super) fn load(self, node: &NodeIdentity, problems: &mut Vec<Problem>) -> Option<NodeState> {
        match self {
            Self::In(store) => load_node(store, node, problems),
            Self::Read(state) => state.map(|state| *state),
        }
    }
}

/// What is known of pods that lived.
#[derive(Debug)]
pub(super) enum Records {
    /// What the state folder has.
    Stored(Stored),
    /// What libcni has written down.
    Cache(Cache),
}

impl Records {
    /// Whether the kernel alone does not tell whose they are.
    fn need_runtime(&self, pods: &[Pod], node: &NodeIdentity) -> bool {
        match self {
            Self::Stored(stored) => needs_runtime(&stored.checkpoints, pods, node),
            Self::Cache(_) => true,
        }
    }
}

/// The chosen checkpoints beside the living pods: nothing is decided yet.
#[derive(Debug)]
pub(super) struct Surveyed {
    pub host: Host,
    pub ground: Ground,
    pub checked: CheckIn,
    pub strays: Strays,
    /// Pods whose checkpoint cannot be read.
    pub damaged: Vec<PodView>,
    pub node: NodeView,
    pub node_state: Option<NodeState>,
    pub problems: Vec<Problem>,
}

/// Compares what is stored with who lives here, and refuses contested claims.
pub(super) fn survey(
    session: Session,
    records: Records,
    parent: Option<&IfName>,
    selection: &Selection,
    node: NodeFile<'_>,
) -> Result<Surveyed, Early> {
    let mut problems = Vec::new();
    let node_state = node.load(&session.node, &mut problems);
    let node = session.node_view(node_state.as_ref().map(|stored| stored.created.clone()));
    let Session { node: identity, host, pods, problems: found, answer } = session;
    problems.extend(found);
    let by_plugins = matches!(records, Records::Cache(_));
    let parents = Parents::new(parent, by_plugins, node_state.as_ref(), &host.state)
        .map_err(|problem| Box::new(Outcome::refused(problem)))?;
    let (mut checked, damaged) = match records {
        Records::Stored(Stored { checkpoints, damaged, problems: unreadable }) => {
            problems.extend(unreadable);
            (check_in(checkpoints, pods, &identity, selection), damaged)
        }
        Records::Cache(cache) => cni_cache::check_in(cache, pods, answer.as_ref(), selection),
    };
    checked.find_parents(&parents);
    checked.strays.retain(|pod| selection.wants_pod(&pod.info));
    let known_empty = node_state.as_ref().map(|stored| stored.empty.as_slice()).unwrap_or_default();
    let strays = check_in::strays(&mut checked.strays, &host, known_empty, &damaged);
    let ground = ground(node_state.clone(), &checked.matched, selection.is_everything(), &host);
    problems.extend(origin::what_is_not_known(&checked.matched, &ground, &host.state));
    let refused = contested_among(&checked, &strays.states, &ground.state);
    checked.refuse(refused);
    Ok(Surveyed { host, ground, checked, strays, damaged, node, node_state, problems })
}

/// Checkpoints whose namespace is gone and whose pod may live on under the same name, as a `StatefulSet`'s does. Only a
/// runtime knows, and it is asked when everything else is done: nothing but a message depends on it.
#[derive(Debug, Default)]
pub(super) struct Replaced(Vec<PodInfo>);

impl Replaced {
    fn among(rejected: &[PodView], problems: &[Problem]) -> Self {
        let gone = |view: &&PodView| {
            let is_it = |problem: &Problem| problem.pod.as_ref() == Some(&view.info.id) && is_gone(problem);
            problems.iter().any(is_it)
        };
        Self(
            rejected
                .iter()
                .filter(gone)
                .map(|view| view.info.clone())
                .filter(|i| i.sandbox.is_some())
                .collect(),
        )
    }

    /// Asks the runtimes, and says of each such checkpoint which pod has its name now.
    pub(super) fn tell(self, config: &runtime::Config, problems: &mut Vec<Problem>) {
        if self.0.is_empty() {
            return;
        }
        let answer = match runtime::ask(config) {
            Ok(answer) => answer,
            Err(unreachable) => {
                return problems.extend(unreachable.into_iter().map(Problem::demoted));
            }
        };
        for then in self.0 {
            let is_successor = |now: &&Sandbox| {
                then.name.is_some()
                    && now.name == then.name
                    && now.namespace == then.namespace
                    && then.sandbox.as_ref() != Some(&now.id)
            };
            let Some(now) = answer.sandboxes.iter().find(is_successor) else { continue };
            for problem in problems.iter_mut().filter(|p| p.pod.as_ref() == Some(&then.id) && is_gone(p)) {
                problem.code = Code::PodReplaced;
                problem.message = format!(
                    "{} was deleted and made again: it is {} now, and this checkpoint is not used: it is about {}; run \
                     `netfix snapshot`",
                    then.title(),
                    numbers(Some(&now.id), now.uid.as_deref()),
                    numbers(then.sandbox.as_deref(), then.uid.as_deref()),
                );
            }
        }
    }
}

fn is_gone(problem: &Problem) -> bool {
    matches!(problem.code, Code::NetnsGone | Code::NetnsReplaced)
}

/// The problem of having nothing to work from.
fn nothing_to_work_from(source: &SourceArgs, selection: &Selection) -> Problem {
    match source.source {
        Source::Checkpoints => no_checkpoints(selection),
        Source::CniCache => {
            let message = format!(
                "libcni's cache below {} has nothing of any living pod that was chosen",
                source.cni_cache_dir.display()
            );
            Problem::error(Code::CheckpointMissing, selection.to_string(), message)
        }
    }
}

/// Whether some checkpoint's namespace is not told by the kernel alone; then the runtime must say whose it is.
pub(super) fn needs_runtime(
    checkpoints: &[(PodInfo, Checkpoint)],
    pods: &[Pod],
    node: &NodeIdentity,
) -> bool {
    checkpoints.iter().any(|(_, checkpoint)| match &checkpoint.netfix {
        None => true,
        Some(extension) => {
            let doubtful = |pod: &Pod| {
                extension.identity.may_be(&pod.identity) && !extension.identity.is_same(&pod.identity)
            };
            extension.node.is_same(node) && pods.iter().any(doubtful)
        }
    })
}

/// Two claims on one MAC or address, among the checkpoints, the pods that have none, and the host.
fn contested_among(checked: &CheckIn, strays: &[NetState], host: &NetState) -> Vec<Problem> {
    let wanted: Vec<_> = checked.matched.iter().map(|matched| (matched, matched.claims())).collect();
    let of_checkpoints = wanted.iter().map(|(matched, state)| Claimant {
        pod: Some(&matched.info.id),
        netns: &matched.checkpoint.netns,
        state,
    });
    contested_claims(of_checkpoints, checked.strays.iter().zip(strays), host)
}

impl CheckIn {
    /// Takes the pods that these problems are about out of the work.
    fn refuse(&mut self, problems: Vec<Problem>) {
        let is_refused = |id: &PodId| problems.iter().any(|problem| problem.pod.as_ref() == Some(id));
        let matched = std::mem::take(&mut self.matched);
        let (refused, matched): (Vec<_>, Vec<_>) = matched.into_iter().partition(|m| is_refused(&m.info.id));
        self.matched = matched;
        self.rejected.extend(refused.iter().map(|matched| matched.view(State::Failed)));
        self.problems.extend(problems);
    }
}
