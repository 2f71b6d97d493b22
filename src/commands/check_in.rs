//! Which checkpoint belongs to which living namespace: by identity, never by name.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::select::Selection;
use super::session::{age, bare_view, key_at, partial_interfaces, stored_view};
use super::{Exit, origin};
use crate::cni;
use crate::model::address::DADFAILED;
use crate::model::checkpoint::Extension;
use crate::model::sysctl::Sysctls;
use crate::model::{
    Address, Checkpoint, Code, IfName, LinkKind, NetState, NetnsIdentity, NodeIdentity, NodeState, Partial,
    PodInfo, Problem, Severity, stack,
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
    let mut claims: BTreeMap<usize, Vec<(PodInfo, Checkpoint)>> = BTreeMap::new();
    let mut result = CheckIn::default();
    for (info, checkpoint) in checkpoints {
        match find(&info, &checkpoint, &pods, node) {
            Ok(at) => claims.entry(at).or_default().push((info, checkpoint)),
            Err(_) if !selection.wants_checkpoint(&info, &checkpoint) => {}
            Err(problem) => result.reject(&info, &checkpoint, problem),
        }
    }
    for (at, pod) in pods.into_iter().enumerate() {
        match claims.remove(&at) {
            Some(claims) => result.settle(pod, claims),
            None => result.strays.push(pod),
        }
    }
    result.matched.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    result
}

impl CheckIn {
    fn reject(&mut self, info: &PodInfo, checkpoint: &Checkpoint, problem: Problem) {
        self.problems.push(problem.of(&info.id));
        self.rejected.push(stored_view(info, checkpoint, State::Failed));
    }

    /// Of the checkpoints about one pod the best one is used.
    fn settle(&mut self, pod: Pod, mut claims: Vec<(PodInfo, Checkpoint)>) {
        let is_sure = |info: &PodInfo, checkpoint: &Checkpoint| {
            checkpoint.netfix.is_some() || info.is_surely(&pod.info)
        };
        claims.sort_by_cached_key(|(info, checkpoint)| (is_sure(info, checkpoint), checkpoint.rank()));
        let Some((info, checkpoint)) = claims.pop() else { return };
        if !is_sure(&info, &checkpoint) && !claims.is_empty() {
            claims.push((info, checkpoint));
            return self.reject_all(&claims);
        }
        let superseded = |(other, checkpoint): (PodInfo, Checkpoint)| {
            let message = format!("is about the same namespace as {}, which knows more and is used", info.id);
            let problem = Problem::warning(Code::CheckpointStale, checkpoint.netns, message).of(&other.id);
            Problem { severity: Severity::Info, ..problem }
        };
        self.problems.extend(claims.into_iter().map(superseded));
        let age = checkpoint.netfix.as_ref().map_or(0, |extension| age(&extension.created));
        let partial = checkpoint.netfix.is_none().then(|| cni::of_origin(&checkpoint));
        self.matched.push(Matched { info, checkpoint, pod, age, partial });
    }

    /// Refuses several files of the origin whose path leads to one pod.
    fn reject_all(&mut self, claims: &[(PodInfo, Checkpoint)]) {
        let ids: Vec<_> = claims.iter().map(|(info, _)| info.id.as_str()).collect();
        let message = format!(
            "the path of several checkpoints leads to this namespace, and no runtime says whose it is: none of {} is \
             used",
            ids.join(", ")
        );
        for (info, checkpoint) in claims {
            let object = checkpoint.netns.escape_debug().to_string();
            self.reject(info, checkpoint, Problem::error(Code::NetnsReplaced, object, &message));
        }
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
        let mut errors = self.problems.iter().filter(|problem| problem.is_error());
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

/// The place of the pod that a checkpoint is about.
fn find(
    info: &PodInfo,
    checkpoint: &Checkpoint,
    pods: &[Pod],
    node: &NodeIdentity,
) -> Result<usize, Problem> {
    let refuse =
        |(code, message)| Err(Problem::error(code, checkpoint.netns.escape_debug().to_string(), message));
    let candidate = match &checkpoint.netfix {
        Some(extension) => {
            if let Some(reason) = other_boot(extension, node) {
                return refuse(reason);
            }
            pods.iter().position(|pod| extension.identity.may_be(&pod.identity))
        }
        // The origin's format knows nothing but the path and the sandbox.
        None => pods.iter().position(|pod| info.is_surely(&pod.info)).or_else(|| {
            let key = key_at(&checkpoint.netns)?;
            pods.iter().position(|pod| pod.netns.key() == key)
        }),
    };
    if let Some(at) = candidate {
        return doubt(info, checkpoint, &pods[at], node).map_or(Ok(at), refuse);
    }
    let path = Path::new(&checkpoint.netns);
    refuse(if pods.iter().any(|pod| pod.paths.iter().any(|known| known == path)) {
        let message =
            "another namespace is at this path now: the pod was replaced, and its checkpoint is not used";
        (Code::NetnsReplaced, message.to_owned())
    } else if checkpoint.netfix.is_some() {
        let message =
            "the namespace is gone, and with it the pod; `netfix snapshot` will put its checkpoint away";
        (Code::NetnsGone, message.to_owned())
    } else {
        (Code::NetnsGone, "no living namespace is found at this path".to_owned())
    })
}

/// Why no checkpoint of that machine or boot can be used here.
fn other_boot(extension: &Extension, node: &NodeIdentity) -> Option<(Code, String)> {
    if extension.node.machine_id != node.machine_id {
        let message =
            "the checkpoint was written on another machine and is not used; run `netfix snapshot` here";
        return Some((Code::OtherMachine, message.to_owned()));
    }
    let message = "the checkpoint was written before this machine's last boot and is not used; its namespace cannot \
                   have survived";
    (!extension.node.is_same(node)).then(|| (Code::OtherBoot, message.to_owned()))
}

/// Why the namespace that looks like a checkpoint's may be another one.
fn doubt(info: &PodInfo, checkpoint: &Checkpoint, pod: &Pod, node: &NodeIdentity) -> Option<(Code, String)> {
    let is_about = |extension: &Extension| extension.is_about(node, &pod.identity, &pod.info);
    if checkpoint.netfix.as_ref().is_some_and(is_about) {
        return None;
    }
    if info.contradicts(&pod.info) {
        let message = format!(
            "another pod has this namespace now, {}, and this checkpoint is not used: it is about {}",
            described(&pod.info),
            numbers(info.sandbox.as_deref(), info.uid.as_deref()),
        );
        return Some((Code::PodReplaced, message));
    }
    let message = "a namespace with the same inode is there, but this kernel gives namespaces no cookie, and neither a \
                   process, nor a mount, nor a runtime proves that it is the same one; its checkpoint is not used";
    checkpoint.netfix.as_ref().map(|_| (Code::NetnsReplaced, message.to_owned()))
}

/// A living pod in a message: its names and what tells it from others.
pub(super) fn described(info: &PodInfo) -> String {
    format!("{} ({})", info.title(), numbers(info.sandbox.as_deref(), info.uid.as_deref()))
}

/// What tells a pod from others of its name, in a message.
pub(super) fn numbers(sandbox: Option<&str>, uid: Option<&str>) -> String {
    let text = |text: Option<&str>| text.unwrap_or("-").escape_debug().to_string();
    format!("sandbox {}, uid {}", text(sandbox), text(uid))
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
        let is_own =
            |address: &&Address| address.flags & DADFAILED == 0 && self.guessed.contains(&address.dev);
        self.state.addresses.extend(now.addresses.iter().filter(is_own).cloned());
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
