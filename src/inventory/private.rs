//! Namespaces that belong to no pod: those of services, of sandboxed programs, and of containers without a network.
//!
//! Only a namespace without interfaces and without a checkpoint can be one. In doubt it is a pod, which may have lost its
//! interfaces.

use std::collections::BTreeSet;

use super::cgroup::Owner;
use super::observe::{Host, Pod};
use super::procfs;
use crate::kernel::netns;
use crate::model::PodInfo;
use crate::runtime::{Answer, Sandbox};

/// Which of the `bare` namespaces, without interface and checkpoint, belong to no pod. `known` are all other pods.
pub(crate) fn judge(known: &[&PodInfo], bare: &[&Pod], answer: Option<&Answer>) -> Vec<bool> {
    let every = known
        .iter()
        .copied()
        .chain(bare.iter().map(|pod| &pod.info));
    let sandboxes: BTreeSet<&str> = every.filter_map(|info| info.sandbox.as_deref()).collect();
    let is_whole = answer.is_some_and(|answer| is_whole(answer, known, &sandboxes));
    let is_private = |pod: &&Pod| match reported(answer, &pod.info) {
        Some(sandbox) => !sandbox.has_network,
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
    let has_list = |answer: &Answer| answer.asked.iter().all(|asked| asked.kind.is_some());
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
        state.is_ok_and(|state| state.links_but_loopback().next().is_none())
    };
    let found = netns::visit(&mut others, |pod| &pod.netns, is_bare);
    let mut bare = Vec::new();
    for (pod, is_bare) in others.into_iter().zip(found) {
        let pods = if is_bare.unwrap_or(false) {
            &mut bare
        } else {
            &mut known
        };
        pods.push(pod);
    }
    let infos: Vec<_> = known.iter().map(|pod| &pod.info).collect();
    let private = judge(&infos, &bare.iter().collect::<Vec<_>>(), answer);
    let (private, bare): (Vec<_>, Vec<_>) = bare
        .into_iter()
        .zip(private)
        .partition(|(_, is_private)| *is_private);
    known.extend(bare.into_iter().map(|(pod, _)| pod));
    (known, private.into_iter().map(|(pod, _)| pod).collect())
}
