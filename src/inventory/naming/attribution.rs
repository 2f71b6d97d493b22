//! Names pods after the sandboxes that container runtimes report, and refuses a report that cannot be true.

use std::path::{Path, PathBuf};

use crate::inventory::cgroup::CgroupOwner;
use crate::inventory::naming::sandbox_match::{Introduction, Unfound};
use crate::inventory::observe::{Host, Pod};
use crate::inventory::private;
use crate::inventory::visit::visit;
use crate::matching::Selection;
use crate::model::problem::InventoryCause;
use crate::model::{Bytes, Link, PodInfo, Problem};
use crate::refusal::Refusal;
use crate::runtime::{self, RuntimeAnswer, names};

/// The runtimes' answer beside the kernel's list of namespaces.
pub(in crate::inventory) struct Attribution {
    pub answer: RuntimeAnswer,
    /// Selected sandboxes whose namespace does not exist.
    pub unfound: Vec<Unfound>,
    /// Selected namespaces that cannot exist if the answer is true.
    pub suspects: Vec<PathBuf>,
    pub problems: Vec<Problem>,
}

impl Attribution {
    /// Names the pods, and compares the answer with the namespaces.
    pub(in crate::inventory) fn new(
        answer: RuntimeAnswer,
        pods: &mut [Pod],
        host: &Host,
        selection: &Selection,
    ) -> Self {
        let Introduction {
            mut unfound,
            problems,
        } = answer.introduce(pods.iter_mut());
        unfound.retain(|sandbox| {
            let inode = sandbox.inode.unwrap_or_default();
            selection.wants_netns(&sandbox.paths, inode) && selection.wants_pod(&sandbox.info)
        });
        let suspects = suspects(&answer, pods, host, selection);
        Self {
            answer,
            unfound,
            suspects,
            problems,
        }
    }

    /// Whether nothing in the answer contradicts the namespaces.
    pub(in crate::inventory) fn is_consistent(&self) -> bool {
        self.unfound.is_empty() && self.suspects.is_empty()
    }
}

/// The selected namespaces that contradict the runtimes' answers: those with a link on a host link and with processes
/// although no runtime reports any pod, or in an unknown container's cgroup although one runtime did not report its
/// containers.
fn suspects(
    answer: &RuntimeAnswer,
    pods: &mut [Pod],
    host: &Host,
    selection: &Selection,
) -> Vec<PathBuf> {
    let reports_none = answer.answering().is_some() && answer.sandboxes.is_empty();
    let is_incomplete = answer.queried.iter().any(|one| one.kind.is_none());
    let mut doubtful: Vec<&mut Pod> = pods
        .iter_mut()
        .filter(|pod| {
            let is_unclaimed_container = pod.info.source == names::SOURCE_CGROUP;
            (reports_none && pod.netns.holder.is_some())
                || (is_incomplete && is_unclaimed_container)
        })
        .filter(|pod| selection.wants_pod(&pod.info))
        .collect();
    let on_host = are_on_host(&mut doubtful, host);
    doubtful
        .iter()
        .zip(on_host)
        .filter(|(_, on_host)| *on_host == Some(true))
        .map(|(pod, _)| pod.netns.path.clone())
        .collect()
}

/// A note for each socket on which no process listens, if the runtimes that answered report every pod.
/// Refuses where one may have been of such a runtime.
pub(in crate::inventory) fn left_over(
    answer: &RuntimeAnswer,
    pods: &mut [Pod],
    host: &Host,
    selection: &Selection,
) -> Result<Vec<Problem>, Refusal> {
    let Some(other) = answer.answering().filter(|_| !answer.refused.is_empty()) else {
        return Ok(Vec::new());
    };
    let unreported = unreported(answer, pods, host, selection);
    let refused = answer.refused.iter();
    if !unreported.is_empty() {
        let refusals: Vec<_> = refused
            .map(|(socket, error)| runtime::refusal(socket, error.clone(), other, &unreported))
            .collect();
        return Err(refusals.into());
    }
    Ok(refused
        .map(|(socket, error)| {
            let (error, other) = (error.clone(), names::plain(&other.display().to_string()));
            let cause = InventoryCause::RuntimeLeftOver { error, other };
            cause.info(socket.display().to_string())
        })
        .collect())
}

/// The selected pods that no runtime reports: containers, and namespaces with a link on a host link.
fn unreported(
    answer: &RuntimeAnswer,
    pods: &mut [Pod],
    host: &Host,
    selection: &Selection,
) -> Vec<PathBuf> {
    let (reported, mut others): (Vec<_>, Vec<_>) = pods
        .iter_mut()
        .partition(|pod| private::reported(Some(answer), &pod.info).is_some());
    let known: Vec<&PodInfo> = reported.iter().map(|pod| &pod.info).collect();
    others.retain(|pod| selection.wants_pod(&pod.info));
    let on_host = are_on_host(&mut others, host);
    others
        .iter()
        .zip(on_host)
        .filter(|(pod, on_host)| {
            let is_container = match &pod.owner {
                CgroupOwner::Container { id, uid } => {
                    !private::is_inside_another(id, uid.as_deref(), &known)
                }
                CgroupOwner::System | CgroupOwner::Unknown => false,
            };
            // A namespace that cannot be read may be a pod's.
            is_container || on_host.unwrap_or(!pod.netns.is_foreign)
        })
        .map(|(pod, _)| pod.netns.path.clone())
        .collect()
}

/// Whether each of these has a link on a link of the host; `None` where it cannot be read.
fn are_on_host(pods: &mut [&mut Pod], host: &Host) -> Vec<Option<bool>> {
    visit(pods, |pod| {
        let state = pod.observe_links_inside(host).ok()?;
        Some(state.links.iter().any(Link::is_on_host))
    })
    .into_iter()
    .map(|found| found.ok().flatten())
    .collect()
}

/// The problem of such namespaces: the answer proves nothing.
pub(in crate::inventory) fn contradicted(
    answer: &RuntimeAnswer,
    namespaces: &[PathBuf],
) -> Problem {
    let text = |path: &Path| Bytes::from(path).to_string();
    let silent = answer
        .queried
        .iter()
        .filter(|one| one.kind.is_none() || answer.sandboxes.is_empty());
    let endpoints: Vec<String> = silent.map(|one| text(&one.endpoint)).collect();
    let namespaces = namespaces.iter().map(|path| text(path)).collect();
    InventoryCause::PodListIncomplete { namespaces }.error(endpoints.join(", "))
}
