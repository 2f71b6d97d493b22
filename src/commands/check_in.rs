//! Which checkpoint belongs to which living namespace: by identity, never by name.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::select::Selection;
use super::session::{age, bare_view, leads_to, partial_interfaces, seconds, stored_view};
use super::{Exit, origin};
use crate::cni;
use crate::model::checkpoint::Extension;
use crate::model::sysctl::Sysctls;
use crate::model::{
    Checkpoint, Code, IfName, LinkKind, NetState, NetnsIdentity, NodeIdentity, NodeState, Partial, PodInfo,
    Problem, Severity, stack,
};
use crate::observe::{self, Host, Pod};
use crate::plan::{self, HostLinks, Observed, Plan};
use crate::report::{PodView, State};

/// A checkpoint and the living namespace that it describes.
#[derive(Debug)]
pub(super) struct Matched {
    pub info: PodInfo,
    pub checkpoint: Checkpoint,
    pub pod: Pod,
    /// Seconds since the checkpoint was written.
    pub age: u32,
    /// What is said by a source that knows only part; `None` where netfix wrote everything down.
    pub partial: Option<Partial>,
}

impl Matched {
    /// What the pod had, as far as its source says it without being asked what is there.
    pub(super) fn claims(&self) -> Cow<'_, NetState> {
        match (&self.partial, &self.checkpoint.netfix) {
            (Some(partial), _) => {
                let nothing = NetState::default();
                Cow::Owned(plan::complete(partial, &nothing, &[], &HostLinks::default()).0)
            }
            (None, Some(extension)) => Cow::Borrowed(&extension.state),
            (None, None) => Cow::Owned(NetState::default()),
        }
    }

    /// The state that the pod should have, and what its source cannot say of it; `made` are links of this run's own.
    pub(super) fn wanted(
        &self,
        now: &NetState,
        links: &HostLinks,
        made: &[IfName],
    ) -> (Cow<'_, NetState>, Vec<Problem>) {
        let Some(partial) = &self.partial else { return (self.claims(), Vec::new()) };
        let (wanted, problems) = plan::complete(partial, now, made, links);
        (Cow::Owned(wanted), problems)
    }

    /// What is to be done in the pod.
    pub(super) fn plan(&self, observed: Observed<'_>, links: &HostLinks, made: &[IfName]) -> Plan {
        let (wanted, problems) = self.wanted(observed.state, links, made);
        let mut plan = plan::pod(&wanted, observed, links);
        plan.problems.extend(problems);
        plan
    }

    /// The pod as answers show it, with what its source says.
    pub(super) fn view(&self, state: State) -> PodView {
        let mut view = stored_view(&self.info, &self.checkpoint, state);
        if let Some(partial) = &self.partial {
            view.interfaces = partial_interfaces(partial);
        }
        view
    }
}

/// The outcome of comparing all chosen checkpoints with all living namespaces.
#[derive(Debug, Default)]
pub(super) struct CheckIn {
    pub matched: Vec<Matched>,
    /// Living pods that no checkpoint describes.
    pub strays: Vec<Pod>,
    /// Pods whose checkpoint cannot be used.
    pub rejected: Vec<PodView>,
    pub problems: Vec<Problem>,
}

/// Pairs checkpoints with pods. A checkpoint that has no pod here counts only if the user chose its old path.
pub(super) fn check_in(
    checkpoints: Vec<(PodInfo, Checkpoint)>,
    pods: Vec<Pod>,
    node: &NodeIdentity,
    selection: &Selection,
) -> CheckIn {
    let mut pods: Vec<Option<Pod>> = pods.into_iter().map(Some).collect();
    let mut result = CheckIn::default();
    for (info, checkpoint) in checkpoints {
        match find(&info, &checkpoint, &mut pods, node) {
            Err(_) if !selection.wants_checkpoint(&info, &checkpoint) => {}
            Ok(pod) => {
                let age = checkpoint.netfix.as_ref().map_or(0, |extension| age(&extension.created));
                let partial = checkpoint.netfix.is_none().then(|| cni::of_origin(&checkpoint));
                result.matched.push(Matched { info, checkpoint, pod, age, partial });
            }
            Err(problem) => result.reject(&info, &checkpoint, problem),
        }
    }
    result.strays = pods.into_iter().flatten().collect();
    result
}

impl CheckIn {
    fn reject(&mut self, info: &PodInfo, checkpoint: &Checkpoint, problem: Problem) {
        self.problems.push(problem.of(&info.id));
        self.rejected.push(stored_view(info, checkpoint, State::Failed));
    }
}

impl CheckIn {
    /// How a command ends that found no pod to work on: refused when nothing is stored for what was chosen, or when
    /// no checkpoint may be used here: it is of another machine or boot, or claims what another one claims.
    pub(super) fn end_without_pods(&self, damaged: &[PodView]) -> Exit {
        let of_no_use = |problem: &Problem| {
            use Code::{AddressConflict, MacConflict, OtherBoot, OtherMachine};
            matches!(problem.code, OtherBoot | OtherMachine | MacConflict | AddressConflict)
        };
        let mut errors = self.problems.iter().filter(|problem| problem.severity == Severity::Error);
        let refused = damaged.is_empty() && errors.all(of_no_use);
        if refused { Exit::Refused } else { Exit::Failed }
    }
}

/// Living pods that no checkpoint describes.
#[derive(Debug, Default)]
pub(super) struct Strays {
    /// What each has; nothing where it could not be read.
    pub states: Vec<NetState>,
    /// Those that may have lost something.
    pub views: Vec<PodView>,
    pub problems: Vec<Problem>,
}

/// What is to be said of living pods that no checkpoint describes: one without any interface may have lost it.
///
/// `known_empty` are namespaces that had none when the node was last written down; `damaged` are pods of which a
/// checkpoint exists and cannot be read, which is told elsewhere.
pub(super) fn strays(
    pods: &mut [Pod],
    host: &Host,
    known_empty: &[NetnsIdentity],
    damaged: &[PodView],
) -> Strays {
    let mut strays = Strays::default();
    let states = observe::observe_pods(pods, host);
    let has_damaged = |pod: &Pod| damaged.iter().any(|view| view.info.id == pod.info.id);
    for (pod, state) in pods.iter().zip(states) {
        let is_bare =
            state.as_ref().is_ok_and(|state| state.links.iter().all(|link| link.kind == LinkKind::Loopback));
        strays.states.push(state.unwrap_or_default());
        let path = pod.netns.path.display().to_string();
        let was_empty = known_empty.iter().any(|known| known.is_same(&pod.identity));
        if has_damaged(pod) || (is_bare && was_empty) {
            continue;
        }
        if is_bare {
            let message = "has no interface and no checkpoint, so nobody knows what it lost";
            strays.views.push(bare_view(&pod.info, &pod.netns.path, State::NoCheckpoint));
            strays.problems.push(Problem::error(Code::CheckpointMissing, path, message).of(&pod.info.id));
        } else {
            let message = "has no checkpoint; it has interfaces, and they are left alone";
            strays.problems.push(Problem::warning(Code::CheckpointMissing, path, message).of(&pod.info.id));
        }
    }
    strays
}

fn find(
    info: &PodInfo,
    checkpoint: &Checkpoint,
    pods: &mut [Option<Pod>],
    node: &NodeIdentity,
) -> Result<Pod, Problem> {
    let refuse =
        |code, message: String| Problem::error(code, checkpoint.netns.escape_debug().to_string(), message);
    let is_candidate = |pod: &Pod| match &checkpoint.netfix {
        Some(extension) => extension.identity.is_same(&pod.identity),
        // The origin's format knows nothing but the path and the sandbox.
        None => leads_to(&checkpoint.netns, pod) || info.is_surely(&pod.info),
    };
    if let Some(extension) = &checkpoint.netfix {
        is_of_this_boot(extension, node).map_err(|(code, message)| refuse(code, message.to_owned()))?;
    }
    let candidate = pods.iter_mut().find(|pod| pod.as_ref().is_some_and(is_candidate));
    if let Some(pod) = candidate {
        let living = pod.as_ref().map(|pod| proven(info, checkpoint, pod));
        living.transpose().map_err(|(code, message)| refuse(code, message))?;
        return pod.take().ok_or_else(|| refuse(Code::NetnsGone, "is used twice".to_owned()));
    }
    let path = std::path::Path::new(&checkpoint.netns);
    if pods.iter().flatten().any(|pod| pod.paths.iter().any(|known| known == path)) {
        let message =
            "another namespace is at this path now: the pod was replaced, and its checkpoint is not used";
        return Err(refuse(Code::NetnsReplaced, message.to_owned()));
    }
    let message = if checkpoint.netfix.is_some() {
        "the namespace is gone, and with it the pod; `netfix snapshot` will put its checkpoint away"
    } else {
        "no living namespace is found at this path"
    };
    Err(refuse(Code::NetnsGone, message.to_owned()))
}

fn is_of_this_boot(extension: &Extension, node: &NodeIdentity) -> Result<(), (Code, &'static str)> {
    if extension.node.machine_id != node.machine_id {
        let message =
            "the checkpoint was written on another machine and is not used; run `netfix snapshot` here";
        return Err((Code::OtherMachine, message));
    }
    if !extension.node.is_same(node) {
        let message = "the checkpoint was written before this machine's last boot and is not used; its namespace \
                       cannot have survived";
        return Err((Code::OtherBoot, message));
    }
    Ok(())
}

/// Whether the namespace that looks like a checkpoint's is the checkpoint's, or why that is not certain.
fn proven(info: &PodInfo, checkpoint: &Checkpoint, pod: &Pod) -> Result<(), (Code, String)> {
    if checkpoint.netfix.as_ref().is_some_and(|extension| extension.identity.is_surely(&pod.identity)) {
        return Ok(());
    }
    if info.contradicts(&pod.info) {
        let message = format!(
            "another pod has this namespace now, {}, and this checkpoint is not used: it is about sandbox {}, uid {}",
            described(&pod.info),
            info.sandbox.as_deref().unwrap_or("-").escape_debug(),
            info.uid.as_deref().unwrap_or("-").escape_debug(),
        );
        return Err((Code::PodReplaced, message));
    }
    let Some(extension) = &checkpoint.netfix else { return Ok(()) };
    let as_old = || seconds(&extension.created).is_some_and(|then| pod.netns.is_older_than(then));
    if info.is_surely(&pod.info) || as_old() {
        return Ok(());
    }
    let message = "a namespace with the same inode is there, but this kernel gives namespaces no cookie, and neither a \
                   process, nor a mount, nor a runtime proves that it is the same one; its checkpoint is not used";
    Err((Code::NetnsReplaced, message.to_owned()))
}

/// A living pod in a message: its names and what tells it from others.
pub(super) fn described(info: &PodInfo) -> String {
    let text = |text: &Option<String>| text.as_deref().unwrap_or("-").escape_debug().to_string();
    format!("{} (sandbox {}, uid {})", info.title(), text(&info.sandbox), text(&info.uid))
}

/// The host's state that pods are to stand on again, and the devices at the bottom of it.
#[derive(Debug)]
pub(super) struct Ground {
    pub state: NetState,
    pub devices: BTreeSet<IfName>,
    /// Links that only a name tells of, and that pods stand on.
    named: BTreeSet<IfName>,
    /// What was taken from the host, or guessed, for those.
    guessed: BTreeSet<IfName>,
    /// Seconds since the host's state was written down.
    pub age: u32,
}

impl Ground {
    /// Completes what is known of links by name alone from the host as it is: to be done again once devices are back.
    pub(super) fn learn(&mut self, now: &NetState) {
        let guessed = std::mem::take(&mut self.guessed);
        self.state.links.retain(|link| !guessed.contains(&link.name));
        self.state.addresses.retain(|address| !guessed.contains(&address.dev));
        for name in &self.named {
            let (links, bottom) = origin::ground(name, &self.state, now);
            self.guessed.extend(links.iter().map(|link| link.name.clone()));
            self.state.links.extend(links);
            self.devices.extend(bottom);
        }
        // What is there belongs to the host, so that no pod may claim it.
        let own = now.addresses.iter().filter(|address| self.guessed.contains(&address.dev));
        self.state.addresses.extend(own.cloned());
    }

    /// The VLANs that have to be made again and of which nothing but the name is known.
    pub(super) fn nameless(&self, now: &NetState) -> Vec<&IfName> {
        let is_gone = |name: &&IfName| now.link(name).is_none();
        let is_vlan =
            |name: &&IfName| self.state.link(name).is_some_and(|link| matches!(link.kind, LinkKind::Vlan(_)));
        self.guessed.iter().filter(is_gone).filter(is_vlan).collect()
    }

    /// The host's namespace as a plan for it looks at it.
    pub(super) fn observed<'a>(&self, host: &'a Host, new_link: Option<&'a Sysctls>) -> Observed<'a> {
        Observed { state: &host.state, new_link, age: self.age }
    }
}

/// From the stored node state, or from the pods' stacks where there is none.
pub(super) fn ground(
    stored: Option<NodeState>,
    matched: &[Matched],
    everything: bool,
    host: &Host,
) -> Ground {
    let stacks = || matched.iter().filter_map(|m| m.checkpoint.netfix.as_ref()).map(|e| e.stack.as_slice());
    let mut devices: BTreeSet<IfName> = stacks().flat_map(stack::devices).cloned().collect();
    let age = stored.as_ref().map_or(0, |stored| age(&stored.created));
    let state = stored.map_or_else(|| stack::as_state(stacks(), &host.state), |stored| stored.state);
    if everything {
        let physical = state.links.iter().filter(|link| link.kind == LinkKind::Physical);
        devices.extend(physical.map(|link| link.name.clone()));
    }
    let partials = matched.iter().filter_map(|m| m.partial.as_ref()).flat_map(|partial| &partial.attachments);
    let named = partials.filter_map(|attachment| attachment.parent.clone()).collect();
    let mut ground = Ground { state, devices, named, guessed: BTreeSet::new(), age };
    ground.learn(&host.state);
    ground
}
