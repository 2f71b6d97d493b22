//! What `diff`, `plan` and `restore` share: the chosen checkpoints, the living pods that they are about, and the
//! ground that those stand on. Everything that can be refused is refused here, before anything is touched.

use super::check_in::{self, CheckIn, Ground, Matched, check_in, ground};
use super::select::Selection;
use super::session::{Session, Stored, load, load_node, no_checkpoints, stored_view};
use super::{Context, Early, Outcome, origin};
use crate::cli::{SourceArgs, Target};
use crate::model::{Checkpoint, NetState, NodeIdentity, PodId, PodInfo, Problem};
use crate::observe::{Host, Pod};
use crate::plan::claims::{Claimant, contested};
use crate::report::{NodeView, PodView, State};

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
}

/// Gathers it, or ends the command where there is no pod to work on.
pub(super) fn prepare(
    target: &Target,
    source: &SourceArgs,
    selection: &Selection,
    context: &Context,
) -> Result<Prepared, Early> {
    let Stored { checkpoints, damaged, mut problems } = load(&context.store, selection)?;
    let mut session = Session::open(selection)?;
    if needs_runtime(&checkpoints, &session.pods, &session.node) {
        session.ask(&source.runtimes.config(), selection)?;
    }
    let stored = load_node(&context.store, &session.node, &mut problems);
    let node = session.node_view(stored.as_ref().map(|stored| stored.created.clone()));
    let Session { node: identity, host, pods, problems: found, answer: _ } = session;
    problems.extend(found);
    let parent = target.parent.as_ref().map(|name| origin::parent(name, stored.as_ref(), &host.state));
    let parent = parent.transpose().map_err(|problem| Box::new(Outcome::refused(problem)))?;
    let mut checked = check_in(checkpoints, pods, &identity, selection, parent.as_ref());
    checked.strays.retain(|pod| selection.wants_pod(&pod.info));
    let known_empty = stored.as_ref().map(|stored| stored.empty.clone()).unwrap_or_default();
    let strays = check_in::strays(&mut checked.strays, &host, &known_empty, &damaged);
    let ground = ground(stored, &checked.matched, parent.as_ref(), selection.is_everything(), &host);
    let refused = contested_claims(&checked, &strays.states, &ground.state);
    checked.refuse(refused);

    let ending = checked.end_without_pods(&damaged);
    let CheckIn { matched, strays: _, rejected, problems: refusals } = checked;
    let nothing_stored = matched.is_empty() && rejected.is_empty() && damaged.is_empty();
    let views: Vec<_> = damaged.into_iter().chain(rejected).chain(strays.views).collect();
    problems.extend(nothing_stored.then(|| no_checkpoints(selection)));
    problems.extend(refusals.into_iter().chain(strays.problems));
    if matched.is_empty() {
        return Err(Box::new(Outcome { exit: ending, node, pods: views, problems }));
    }
    Ok(Prepared { host, ground, matched, node, views, problems })
}

/// Whether some checkpoint's namespace is not told by the kernel alone; then the runtime must say whose it is.
fn needs_runtime(checkpoints: &[(PodInfo, Checkpoint)], pods: &[Pod], node: &NodeIdentity) -> bool {
    checkpoints.iter().any(|(_, checkpoint)| match &checkpoint.netfix {
        None => true,
        Some(extension) => {
            let candidates = pods
                .iter()
                .filter(|pod| extension.node.is_same(node) && extension.identity.is_same(&pod.identity));
            candidates.into_iter().any(|pod| !extension.identity.is_surely(&pod.identity))
        }
    })
}

/// Two claims on one MAC or address, among the checkpoints, the pods that have none, and the host.
fn contested_claims(checked: &CheckIn, strays: &[NetState], host: &NetState) -> Vec<Problem> {
    let nothing = NetState::default();
    let wanted: Vec<_> = checked.matched.iter().filter_map(|m| Some((m, m.wanted(&nothing)?))).collect();
    let from_checkpoints = wanted.iter().map(|(matched, state)| Claimant {
        pod: Some(&matched.info.id),
        netns: &matched.checkpoint.netns,
        state,
    });
    let paths: Vec<String> = checked.strays.iter().map(|pod| pod.netns.path.display().to_string()).collect();
    let living = checked.strays.iter().zip(&paths).zip(strays);
    let living = living.map(|((pod, netns), state)| Claimant { pod: Some(&pod.info.id), netns, state });
    let host = Claimant { pod: None, netns: "", state: host };
    let claimants: Vec<_> = from_checkpoints.chain(living).chain([host]).collect();
    contested(&claimants)
}

impl CheckIn {
    /// Takes the pods that these problems are about out of the work.
    fn refuse(&mut self, problems: Vec<Problem>) {
        let is_refused = |id: &PodId| problems.iter().any(|problem| problem.pod.as_ref() == Some(id));
        let matched = std::mem::take(&mut self.matched);
        let (refused, matched): (Vec<_>, Vec<_>) = matched.into_iter().partition(|m| is_refused(&m.info.id));
        self.matched = matched;
        self.rejected.extend(refused.iter().map(|m| stored_view(&m.info, &m.checkpoint, State::Failed)));
        self.problems.extend(problems);
    }
}
