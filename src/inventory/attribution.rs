//! Names pods after the sandboxes that container runtimes report, and refuses a report that cannot be true.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::Inventory;
use crate::inventory::observe::Pod;
use crate::inventory::sandbox_match::{Introduction, Unfound};
use crate::kernel::netns;
use crate::matching::Selection;
use crate::model::problem::InventoryCause;
use crate::model::{Link, Parent, Problem};
use crate::refusal::Refusal;
use crate::runtime::{self, Answer, Asked, names};

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
        let until = Instant::now() + runtime::LIMIT;
        let mut last = self.compare(config, selection, until)?;
        let mut unfound_before: Option<Vec<Unfound>> = None;
        for _ in 0..RETRIES {
            let agrees = last.unfound.is_empty() && last.suspects.is_empty();
            if agrees || Instant::now() + PAUSE >= until {
                break;
            }
            thread::sleep(PAUSE);
            *self = Self::open(selection)?;
            let next = self.compare(config, selection, until)?;
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
        let twice = |now: &Unfound| {
            let is_it = |then: &Unfound| then.info.sandbox == now.info.sandbox;
            let before = unfound_before.as_ref();
            before.is_none_or(|before| before.iter().any(is_it))
        };
        unfound.retain(twice);
        self.problems.extend(problems);
        self.problems.extend(unfound.iter().map(Unfound::problem));
        self.answer = Some(answer);
        Ok(())
    }

    fn compare(
        &mut self,
        config: &runtime::Config,
        selection: &Selection,
        until: Instant,
    ) -> Result<Comparison, Refusal> {
        let answer = runtime::ask_until(config, until)?;
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
            answer.asked.iter().any(|asked| asked.kind.is_some()) && answer.sandboxes.is_empty();
        let incomplete = answer.asked.iter().any(|asked| asked.kind.is_none());
        let is_doubtful = |pod: &Pod| {
            let unclaimed_container = pod.info.source == names::SOURCE_CGROUP;
            (none_known && pod.netns.holder.is_some()) || (incomplete && unclaimed_container)
        };
        let mut pods: Vec<&mut Pod> = pods
            .iter_mut()
            .filter(|pod| is_doubtful(pod) && selection.wants_pod(&pod.info))
            .collect();
        let on_host = |link: &Link| matches!(link.parent, Some(Parent::Host(_)));
        let stands = netns::visit(
            &mut pods,
            |pod| &pod.netns,
            |pod| {
                pod.observe_links_inside(host)
                    .is_ok_and(|state| state.links.iter().any(on_host))
            },
        );
        let paths = pods.iter().map(|pod| pod.netns.path.clone());
        paths
            .zip(stands)
            .filter(|(_, stands)| matches!(stands, Ok(true)))
            .map(|(path, _)| path)
            .collect()
    }
}

/// The problem of such namespaces: the answer proves nothing.
fn contradicted(answer: &Answer, namespaces: &[PathBuf]) -> Problem {
    let text = |path: &PathBuf| path.display().to_string();
    let silent = |asked: &&Asked| asked.kind.is_none() || answer.sandboxes.is_empty();
    let endpoints = answer.asked.iter().filter(silent);
    let endpoints: Vec<String> = endpoints.map(|asked| text(&asked.endpoint)).collect();
    let namespaces = namespaces.iter().map(text).collect();
    InventoryCause::PodListIncomplete { namespaces }.error(endpoints.join(", "))
}
