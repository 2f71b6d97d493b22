//! The pods' network after COMMAND: restored from memory, and verified.

use std::time::Duration;

use crate::context::Context;
use crate::gateways::{self, Verified};
use crate::inventory::prepare::{self, Source};
use crate::maintenance::Request;
use crate::maintenance::preflight::Baseline;
use crate::maintenance::signals::Signals;
use crate::model::problem::{Cause, WindowCause};
use crate::model::window::WindowPod;
use crate::model::{PodId, Problem};
use crate::refusal::Refusal;
use crate::restore::wait_nic::WaitLimit;
use crate::restore::{self, RestoreState, Restored, RestoredPod};

/// Restores from memory: the disk is not needed.
pub(crate) fn restore(
    baseline: &Baseline,
    request: &Request<'_>,
    wait: Duration,
    signals: &Signals,
    context: &mut Context,
) -> Restored {
    let in_memory = (baseline.stored.clone(), baseline.node.clone());
    let wanted = prepare::Request {
        selection: request.selection.clone(),
        source: Source::Memory(Box::new(in_memory)),
        parent: None,
        runtimes: request.runtimes.clone(),
    };
    let interrupted = || signals.interrupted();
    let limit = WaitLimit::new(wait, request.manager_grace, Some(&interrupted));
    let restored = restore::restore(wanted, limit, &context.store, context.progress.as_mut());
    restored.unwrap_or_else(|refusal| Restored {
        problems: refusal.problems,
        ..Restored::default()
    })
}

impl Restored {
    /// Whether every pod has its network back.
    pub(crate) fn is_complete(&self) -> bool {
        let has_errors = self.problems.iter().any(Problem::is_error);
        self.host.is_some() && !has_errors && self.broken().next().is_none()
    }

    /// Leaves out the pods that are not of the window: kubelet may just be creating them.
    pub(crate) fn retain(&mut self, window: &[WindowPod]) {
        let is_known = |id: &PodId| window.iter().any(|pod| pod.info.id == *id);
        self.pods.retain(|pod| is_known(&pod.pod.info.id));
        self.problems
            .retain(|problem| problem.pod.as_ref().is_none_or(is_known));
    }

    pub(crate) fn count(&self, state: RestoreState) -> usize {
        self.pods.iter().filter(|pod| pod.state == state).count()
    }

    /// The pods that are not as they were.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &RestoredPod> {
        self.pods.iter().filter(|pod| !pod.state.is_good())
    }
}

/// A gateway of a pod, or of the host, as problems name it.
pub(crate) type Gateway = (Option<PodId>, String);

/// Probes the gateways of every pod and of the host, from memory too.
pub(crate) fn verify(
    baseline: &Baseline,
    request: &Request<'_>,
    context: &mut Context,
) -> Result<Verified, Refusal> {
    gateways::verify(
        baseline.stored.clone(),
        baseline.node.as_ref(),
        &request.selection,
        request.timeout,
        context.progress.as_mut(),
    )
}

impl Verified {
    /// The gateways that did not answer.
    pub(crate) fn silent(self) -> Vec<Gateway> {
        self.problems
            .into_iter()
            .filter(|problem| matches!(*problem.cause, Cause::Gateway(_)))
            .map(|problem| (problem.pod, problem.object))
            .collect()
    }

    /// The window is not to blame for gateways that were silent before it.
    pub(crate) fn excuse(&mut self, silent: &[Gateway]) {
        for problem in &mut self.problems {
            let is_it =
                |(pod, gateway): &Gateway| problem.pod == *pod && problem.object == *gateway;
            if matches!(*problem.cause, Cause::Gateway(_)) && silent.iter().any(is_it) {
                let pod = problem.pod.take();
                *problem = WindowCause::SilentBefore.warning(std::mem::take(&mut problem.object));
                problem.pod = pod;
            }
        }
    }
}
