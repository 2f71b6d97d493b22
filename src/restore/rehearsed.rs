//! A restore in namespaces that no pod has: the same plans, steps and rounds, without a wait, a probe, an announcement or a log.

use std::thread;
use std::time::{Duration, Instant};

use crate::inventory::observe::Host;
use crate::kernel::Error;
use crate::matching::host_baseline::HostBaseline;
use crate::model::{ConflictProbe, Problem};
use crate::plan::{AwaitedEvent, HostLinks};
use crate::progress::{Listener, Progress};
use crate::records::matched::Matched;
use crate::restore::apply::remaining;
use crate::restore::facts::Limits;
use crate::restore::host::links::HostJob;
use crate::restore::host::wait_nic::WaitLimit;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::PodJob;
use crate::restore::pods::{batch, round};
use crate::restore::turns::Turn;

const LIMITS: Limits = Limits {
    wait: Duration::ZERO,
    awaits_carrier: false,
    manager_grace: Duration::ZERO,
    settle: Duration::ZERO,
    reads_long: true,
    pod_budget: Duration::from_secs(60),
    conflict_probe: ConflictProbe::Off,
    probe_rate: None,
};

/// Nobody watches.
struct Unwatched;

impl Listener for Unwatched {
    fn notice(&mut self, _: Progress) {}
}

/// Restores the links of a host, and returns what is left, but for devices that are missing: a twin lacks them because the node does.
///
/// # Errors
/// The namespace cannot be read.
pub(crate) fn restore_host(
    host: &mut Host,
    baseline: &mut HostBaseline,
) -> Result<(HostLinks, Vec<Problem>), Error> {
    let limit = WaitLimit::new(LIMITS, None);
    let mut job = HostJob::new(host, baseline, limit, Permit::Rehearsal);
    let links = job.restore(&mut Unwatched)?;
    let missing = job.devices().missing;
    let (_, mut problems) = job.finish();
    problems.retain(|one| one.object.link().is_none_or(|name| !missing.contains(name)));
    Ok((links, problems))
}

/// A pod in which a record was restored.
pub(crate) struct RehearsedPod {
    pub matched: Matched,
    /// What is left.
    pub problems: Vec<Problem>,
}

/// Restores pods on the links of a host; in their order.
///
/// # Errors
/// The namespace of the host cannot be read.
pub(crate) fn restore_pods(
    pods: Vec<Matched>,
    host: &mut Host,
    links: &HostLinks,
) -> Result<Vec<RehearsedPod>, Error> {
    let mut jobs: Vec<PodJob> = pods.into_iter().map(PodJob::in_rehearsal).collect();
    for turn in Turn::all(LIMITS.pod_budget) {
        let mut taken = turn.take(&mut jobs);
        batch::visit(&mut taken, None, |pod| {
            round::survey(pod, host, links, ConflictProbe::Off)
        });
        let permit = Permit::Rehearsal;
        batch::restore(&mut taken, turn, host, links, permit, &mut Unwatched)?;
        finish_with_carrier(&mut taken, host, links);
    }
    Ok(jobs.into_iter().map(rehearsed).collect())
}

/// The steps that need carrier, which comes a moment after the link is up.
fn finish_with_carrier(pods: &mut [&mut PodJob], host: &Host, links: &HostLinks) {
    const MOMENT: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(20);
    let deadline = Instant::now() + MOMENT;
    while pods.iter().any(|pod| pod.waits(AwaitedEvent::Carrier)) && Instant::now() < deadline {
        for pod in pods.iter_mut() {
            pod.reopen(AwaitedEvent::Carrier);
        }
        batch::visit(pods, None, |pod| {
            round::resume(pod, host, links, Permit::Rehearsal)
        });
        thread::sleep(PAUSE);
    }
}

fn rehearsed(job: PodJob) -> RehearsedPod {
    let problems = match (job.broken(), job.view()) {
        (Some(problem), _) => vec![problem.clone()],
        (None, Some(view)) => remaining(&view.plan, &job.failures, job.owner.as_ref()),
        (None, None) => Vec::new(),
    };
    RehearsedPod {
        matched: job.matched,
        problems,
    }
}
