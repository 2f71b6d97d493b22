//! Namespaces that belong to no pod: those of services, of sandboxed programs, and of containers without a network.
//!
//! Only a namespace without interfaces and without a checkpoint can be one. In doubt it is a pod, which may have lost its
//! interfaces.
//!
//! A user without rights can make any number of namespaces, and whatever interfaces inside, but no link on a link of the
//! host: such a namespace is no pod either, unless a runtime reports it.

use std::collections::BTreeSet;

use super::cgroup::Owner;
use super::observe::{Host, Pod};
use super::procfs;
use super::visit::visit;
use crate::model::{Link, NetState, PodInfo};
use crate::runtime::{Answer, Sandbox};

/// Whether a namespace without a checkpoint can belong to no pod, by its links; `None` where they cannot be read.
pub(crate) fn may_be(pod: &Pod, links: Option<&NetState>) -> bool {
    match links {
        Some(state) if pod.netns.is_foreign => !state.links.iter().any(Link::is_on_host),
        Some(state) => state.links_but_loopback().next().is_none(),
        None => pod.netns.is_foreign,
    }
}

/// Which of these namespaces belong to no pod. Only one that [`may_be`] can, and that has no checkpoint. `others` are pods
/// beside them.
pub(crate) fn among<'a>(
    pods: impl IntoIterator<Item = (&'a Pod, bool)>,
    others: &[&PodInfo],
    answer: Option<&Answer>,
) -> Vec<bool> {
    let pods: Vec<_> = pods.into_iter().collect();
    let of = |bare: bool| {
        pods.iter()
            .filter(move |one| one.1 == bare)
            .map(|one| one.0)
    };
    let known = of(false).map(|pod| &pod.info);
    let known: Vec<&PodInfo> = others.iter().copied().chain(known).collect();
    let bare: Vec<&Pod> = of(true).collect();
    let mut private = judge(&known, &bare, answer).into_iter();
    let is_private = |(_, is_bare): &(&Pod, bool)| *is_bare && private.next().unwrap_or(false);
    pods.iter().map(is_private).collect()
}

/// Which of the `bare` namespaces belong to no pod. `known` are all other pods.
fn judge(known: &[&PodInfo], bare: &[&Pod], answer: Option<&Answer>) -> Vec<bool> {
    let every = known
        .iter()
        .copied()
        .chain(bare.iter().map(|pod| &pod.info));
    let sandboxes: BTreeSet<&str> = every.filter_map(|info| info.sandbox.as_deref()).collect();
    let is_whole = answer.is_some_and(|answer| is_whole(answer, known, &sandboxes));
    let is_private = |pod: &&Pod| match reported(answer, &pod.info) {
        Some(sandbox) => !sandbox.has_network,
        None if pod.netns.is_foreign => true,
        None => is_unreported_private(pod, known, is_whole),
    };
    bare.iter().map(is_private).collect()
}

pub(super) fn reported<'a>(answer: Option<&'a Answer>, info: &PodInfo) -> Option<&'a Sandbox> {
    let id = info.sandbox.as_ref()?;
    answer?.sandboxes.iter().find(|sandbox| sandbox.id == *id)
}

/// Whether the runtimes know all other pods, and netfix knows all of theirs.
fn is_whole(answer: &Answer, known: &[&PodInfo], sandboxes: &BTreeSet<&str>) -> bool {
    let has_list = |answer: &Answer| answer.queried.iter().all(|one| one.kind.is_some());
    let is_reported = |info: &&PodInfo| reported(Some(answer), info).is_some();
    let mut theirs = answer.sandboxes.iter();
    !answer.sandboxes.is_empty()
        && has_list(answer)
        && known.iter().all(is_reported)
        && theirs.all(|sandbox| sandboxes.contains(sandbox.id.as_str()))
}

/// A namespace that no runtime reports. One that is mounted may be a pod's whatever the cgroup of its processes: a pod's
/// virtual machine may run in the cgroup of the runtime.
fn is_unreported_private(pod: &Pod, known: &[&PodInfo], is_whole: bool) -> bool {
    let is_mounted = pod.paths.iter().any(|path| procfs::pid_in(path).is_none());
    match &pod.owner {
        Owner::Container { id, uid } => !is_mounted && is_inside_another(id, uid.as_deref(), known),
        Owner::System if !is_mounted => true,
        Owner::System | Owner::Unknown => is_whole,
    }
}

/// Whether its process runs in a container of a pod that has another namespace, as a browser's sandbox does.
pub(super) fn is_inside_another(id: &str, uid: Option<&str>, known: &[&PodInfo]) -> bool {
    let has_it = |info: &&PodInfo| {
        info.sandbox.as_deref() == Some(id) || (uid.is_some() && info.uid.as_deref() == uid)
    };
    known.iter().any(has_it)
}

/// The pods among these namespaces, and the others; reads the links of those that have no checkpoint.
pub(crate) fn split(
    pods: Vec<Pod>,
    host: &Host,
    answer: Option<&Answer>,
    has_checkpoint: impl Fn(&Pod) -> bool,
) -> (Vec<Pod>, Vec<Pod>) {
    let (mut known, mut others): (Vec<_>, Vec<_>) = pods.into_iter().partition(has_checkpoint);
    let is_bare = |pod: &mut Pod| {
        let state = pod.observe_links_inside(host);
        may_be(pod, state.ok().as_ref())
    };
    let bare = visit(&mut others, is_bare);
    let bare: Vec<bool> = bare
        .into_iter()
        .zip(&others)
        .map(|(is_bare, pod)| is_bare.unwrap_or(pod.netns.is_foreign))
        .collect();
    let infos: Vec<_> = known.iter().map(|pod| &pod.info).collect();
    let is_private = among(others.iter().zip(bare), &infos, answer);
    let mut private = Vec::new();
    for (pod, is_private) in others.into_iter().zip(is_private) {
        let place = if is_private { &mut private } else { &mut known };
        place.push(pod);
    }
    (known, private)
}
