//! Names pods after the sandboxes that container runtimes report, and refuses a report that cannot be true.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::Inventory;
use crate::inventory::cgroup::Owner;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::sandbox_match::{Introduction, Unfound};
use crate::inventory::visit::visit;
use crate::inventory::{kubelet_endpoint, private};
use crate::matching::Selection;
use crate::model::problem::InventoryCause;
use crate::model::{Bytes, Link, PodInfo, Problem};
use crate::refusal::Refusal;
use crate::runtime::{self, Answer, Queried, names};

/// How often, and after which pause, the machine is observed and the runtimes are queried again when the two do not
/// agree: pods come and go meanwhile, and a runtime that is starting may not have its pods yet.
const RETRIES: usize = 2;
const PAUSE: Duration = Duration::from_millis(400);

/// The runtimes' answer beside the kernel's.
struct Comparison {
    answer: Answer,
    /// Selected sandboxes whose namespace does not exist.
    unfound: Vec<Unfound>,
    /// Selected namespaces that cannot exist if the answer is true.
    suspects: Vec<PathBuf>,
    problems: Vec<Problem>,
}

impl Inventory {
    /// Queries the container runtimes for the pods' names. One that cannot be queried ends the command, and so does an
    /// answer that cannot be true; before that, machine and runtimes are queried again.
    pub(crate) fn attribute(
        &mut self,
        config: &runtime::Config,
        selection: &Selection,
    ) -> Result<(), Refusal> {
        let mut last = self.compare(config, selection)?;
        let mut unfound_before: Option<Vec<Unfound>> = None;
        for _ in 0..RETRIES {
            let agrees = last.unfound.is_empty() && last.suspects.is_empty();
            if agrees {
                break;
            }
            thread::sleep(PAUSE);
            *self = Self::open(selection)?;
            let next = self.compare(config, selection)?;
            unfound_before = Some(std::mem::replace(&mut last, next).unfound);
        }
        let Comparison {
            answer,
            mut unfound,
            suspects,
            problems,
        } = last;
        if !suspects.is_empty() {
            return Err(contradicted(&answer, &suspects).into());
        }
        let left_over = self.left_over(&answer, selection)?;
        let twice = |now: &Unfound| {
            let is_it = |then: &Unfound| then.info.sandbox == now.info.sandbox;
            let before = unfound_before.as_ref();
            before.is_none_or(|before| before.iter().any(is_it))
        };
        unfound.retain(twice);
        self.problems.extend(problems.into_iter().chain(left_over));
        self.problems.extend(unfound.iter().map(Unfound::problem));
        self.answer = Some(answer);
        Ok(())
    }

    fn compare(
        &mut self,
        config: &runtime::Config,
        selection: &Selection,
    ) -> Result<Comparison, Refusal> {
        let answer = kubelet_endpoint::query(config)?;
        let Introduction {
            mut unfound,
            problems,
        } = answer.introduce(&mut self.pods);
        unfound.retain(|sandbox| {
            let inode = sandbox.inode.unwrap_or_default();
            selection.wants_netns(&sandbox.paths, inode) && selection.wants_pod(&sandbox.info)
        });
        let suspects = self.suspects(&answer, selection);
        Ok(Comparison {
            answer,
            unfound,
            suspects,
            problems,
        })
    }

    /// The selected namespaces that contradict the runtimes' answers: those with a link on a host link and with processes
    /// although no runtime reports any pod, or in an unknown container's cgroup although one runtime did not report its
    /// containers.
    fn suspects(&mut self, answer: &Answer, selection: &Selection) -> Vec<PathBuf> {
        let Self { pods, host, .. } = self;
        let none_known =
            answer.queried.iter().any(|one| one.kind.is_some()) && answer.sandboxes.is_empty();
        let incomplete = answer.queried.iter().any(|one| one.kind.is_none());
        let is_doubtful = |pod: &Pod| {
            let unclaimed_container = pod.info.source == names::SOURCE_CGROUP;
            (none_known && pod.netns.holder.is_some()) || (incomplete && unclaimed_container)
        };
        let mut pods: Vec<&mut Pod> = pods
            .iter_mut()
            .filter(|pod| is_doubtful(pod) && selection.wants_pod(&pod.info))
            .collect();
        let on_host = are_on_host(&mut pods, host);
        let paths = pods.iter().map(|pod| pod.netns.path.clone());
        let on_host = on_host.into_iter().map(|on_host| on_host == Some(true));
        with(paths, on_host)
    }

    /// A note for each socket on which no process listens, if the runtimes that answered report every pod.
    /// Refuses where one may have been of such a runtime.
    fn left_over(
        &mut self,
        answer: &Answer,
        selection: &Selection,
    ) -> Result<Vec<Problem>, Refusal> {
        let Some(other) = answer.answering().filter(|_| !answer.refused.is_empty()) else {
            return Ok(Vec::new());
        };
        let unreported = self.unreported(answer, selection);
        let refused = answer.refused.iter();
        if !unreported.is_empty() {
            let refusal = |(socket, error): &(PathBuf, String)| {
                runtime::refusal(socket, error.clone(), other, &unreported)
            };
            return Err(refused.map(refusal).collect::<Vec<_>>().into());
        }
        let note = |(socket, error): &(PathBuf, String)| {
            let (error, other) = (error.clone(), names::plain(&other.display().to_string()));
            let cause = InventoryCause::RuntimeLeftOver { error, other };
            cause.info(socket.display().to_string())
        };
        Ok(refused.map(note).collect())
    }

    /// The selected pods that no runtime reports: containers, and namespaces with a link on a host link.
    fn unreported(&mut self, answer: &Answer, selection: &Selection) -> Vec<PathBuf> {
        let Self { pods, host, .. } = self;
        let is_reported = |pod: &&mut Pod| private::reported(Some(answer), &pod.info).is_some();
        let (reported, mut others): (Vec<_>, Vec<_>) = pods.iter_mut().partition(is_reported);
        let known: Vec<&PodInfo> = reported.iter().map(|pod| &pod.info).collect();
        others.retain(|pod| selection.wants_pod(&pod.info));
        let is_container = |pod: &&mut Pod| match &pod.owner {
            Owner::Container { id, uid } => !private::is_inside_another(id, uid.as_deref(), &known),
            Owner::System | Owner::Unknown => false,
        };
        let containers: Vec<bool> = others.iter().map(is_container).collect();
        let on_host = are_on_host(&mut others, host).into_iter().zip(&others);
        // A namespace that cannot be read may be a pod's.
        let on_host = on_host.map(|(on_host, pod)| on_host.unwrap_or(!pod.netns.is_foreign));
        let on_host: Vec<bool> = on_host.collect();
        let is_pod = containers.into_iter().zip(on_host);
        let paths = others.iter().map(|pod| pod.netns.path.clone());
        with(paths, is_pod.map(|(a, b)| a || b))
    }
}

/// Whether each of these has a link on a link of the host; `None` where it cannot be read.
fn are_on_host(pods: &mut [&mut Pod], host: &Host) -> Vec<Option<bool>> {
    let found = visit(pods, |pod| {
        let state = pod.observe_links_inside(host).ok()?;
        Some(state.links.iter().any(Link::is_on_host))
    });
    found
        .into_iter()
        .map(|found| found.ok().flatten())
        .collect()
}

/// Those for which the value is true.
fn with<T>(all: impl Iterator<Item = T>, wanted: impl Iterator<Item = bool>) -> Vec<T> {
    let wanted = all.zip(wanted).filter(|(_, wanted)| *wanted);
    wanted.map(|(one, _)| one).collect()
}

/// The problem of such namespaces: the answer proves nothing.
fn contradicted(answer: &Answer, namespaces: &[PathBuf]) -> Problem {
    let text = |path: &PathBuf| Bytes::from(path.as_path()).to_string();
    let silent = |one: &&Queried| one.kind.is_none() || answer.sandboxes.is_empty();
    let endpoints = answer.queried.iter().filter(silent);
    let endpoints: Vec<String> = endpoints.map(|one| text(&one.endpoint)).collect();
    let namespaces = namespaces.iter().map(text).collect();
    InventoryCause::PodListIncomplete { namespaces }.error(endpoints.join(", "))
}
