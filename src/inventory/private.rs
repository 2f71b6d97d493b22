//! Namespaces that belong to no pod: those of services, of sandboxed programs, and of containers without a network.
//!
//! Only a namespace without interfaces and without a checkpoint can be one. In doubt it is a pod, which may have lost its
//! interfaces.
//!
//! A user without rights can make any number of namespaces, with any interfaces inside, but no link on a link of the
//! host: such a namespace is no pod either, unless a runtime reports it.

use std::collections::BTreeSet;

use crate::inventory::cgroup::CgroupOwner;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::procfs;
use crate::inventory::visit::visit;
use crate::model::{Link, NetState, PodInfo};
use crate::runtime::{RuntimeAnswer, Sandbox};

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
    answer: Option<&RuntimeAnswer>,
) -> Vec<bool> {
    let pods: Vec<_> = pods.into_iter().collect();
    let with_links = pods.iter().filter(|(_, is_bare)| !is_bare);
    let known: Vec<&PodInfo> = others
        .iter()
        .copied()
        .chain(with_links.map(|(pod, _)| &pod.info))
        .collect();
    let sandboxes: BTreeSet<&str> = others
        .iter()
        .copied()
        .chain(pods.iter().map(|(pod, _)| &pod.info))
        .filter_map(|info| info.sandbox.as_deref())
        .collect();
    let is_whole = answer.is_some_and(|answer| is_whole(answer, &known, &sandboxes));
    pods.iter()
        .map(|(pod, is_bare)| {
            let is_private = match reported(answer, &pod.info) {
                Some(sandbox) => !sandbox.has_network,
                None => pod.netns.is_foreign || is_unreported_private(pod, &known, is_whole),
            };
            *is_bare && is_private
        })
        .collect()
}

/// The sandbox that the runtimes report under the pod's sandbox id.
pub(crate) fn reported<'a>(
    answer: Option<&'a RuntimeAnswer>,
    info: &PodInfo,
) -> Option<&'a Sandbox> {
    let id = info.sandbox.as_ref()?;
    answer?.sandboxes.iter().find(|sandbox| sandbox.id == *id)
}

/// Whether the runtimes listed their pods and report all of `known`, and `sandboxes` has all that they report.
fn is_whole(answer: &RuntimeAnswer, known: &[&PodInfo], sandboxes: &BTreeSet<&str>) -> bool {
    let mut theirs = answer.sandboxes.iter();
    !answer.sandboxes.is_empty()
        && answer.queried.iter().all(|one| one.kind.is_some())
        && known
            .iter()
            .all(|info| reported(Some(answer), info).is_some())
        && theirs.all(|sandbox| sandboxes.contains(sandbox.id.as_str()))
}

/// A namespace that no runtime reports. One that is mounted may be a pod's, in any cgroup of its processes: a pod's
/// virtual machine may run in the cgroup of the runtime.
fn is_unreported_private(pod: &Pod, known: &[&PodInfo], is_whole: bool) -> bool {
    let is_mounted = pod.paths.iter().any(|path| procfs::pid_in(path).is_none());
    match &pod.owner {
        CgroupOwner::Container { id, uid } => {
            !is_mounted && is_inside_another(id, uid.as_deref(), known)
        }
        CgroupOwner::System if !is_mounted => true,
        CgroupOwner::System | CgroupOwner::Unknown => is_whole,
    }
}

/// Whether its process runs in a container of a pod that has another namespace, as a browser's sandbox does.
pub(super) fn is_inside_another(id: &str, uid: Option<&str>, known: &[&PodInfo]) -> bool {
    known.iter().any(|info| {
        info.sandbox.as_deref() == Some(id) || (uid.is_some() && info.uid.as_deref() == uid)
    })
}

/// The pods among these namespaces, and the others; reads the links of those that have no checkpoint.
pub(crate) fn split(
    pods: Vec<Pod>,
    host: &Host,
    answer: Option<&RuntimeAnswer>,
    has_checkpoint: impl Fn(&Pod) -> bool,
) -> (Vec<Pod>, Vec<Pod>) {
    let (mut known, mut others): (Vec<_>, Vec<_>) = pods.into_iter().partition(has_checkpoint);
    let bare: Vec<bool> = visit(&mut others, |pod| {
        let state = pod.observe_links_inside(host);
        may_be(pod, state.ok().as_ref())
    })
    .into_iter()
    .zip(&others)
    .map(|(is_bare, pod)| is_bare.unwrap_or(pod.netns.is_foreign))
    .collect();
    let infos: Vec<_> = known.iter().map(|pod| &pod.info).collect();
    let is_private = among(others.iter().zip(bare), &infos, answer);
    let mut private = Vec::new();
    for (pod, is_private) in others.into_iter().zip(is_private) {
        if is_private {
            private.push(pod);
        } else {
            known.push(pod);
        }
    }
    (known, private)
}
