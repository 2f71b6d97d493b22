//! The pods' network after COMMAND: restored from memory, and verified.

use std::mem;
use std::time::Duration;

use crate::context::Context;
use crate::gateways::{self, Reachability, Verified};
use crate::inventory::Inventory;
use crate::model::problem::{Cause, Code, WindowCause};
use crate::model::window::WindowPod;
use crate::model::{PodId, Problem, Window};
use crate::records::contest::CNI_CACHE;
use crate::records::prepare::{RecordSource, SurveyRequest};
use crate::refusal::Refusal;
use crate::restore::{Limits, Permit, Restored, WaitLimit, session};
use crate::upgrade::Request;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::preflight::Baseline;
use crate::window::event::Reached;
use crate::window::signals::Signals;

/// Restores from memory: the disk is not needed.
pub(crate) fn restore(
    baseline: &Baseline,
    request: &Request<'_>,
    wait: Duration,
    permit: Permit<'_>,
    signals: &Signals,
    context: &mut Context,
) -> Restored {
    let in_memory = (baseline.stored.clone(), baseline.node.clone());
    let wanted = SurveyRequest {
        selection: request.selection.clone(),
        source: RecordSource::Memory(Box::new(in_memory)),
        parent: None,
        runtimes: request.runtimes.clone(),
        cni_cache: CNI_CACHE.into(),
    };
    let interrupted = || signals.interrupted();
    let limits = Limits {
        wait,
        manager_grace: request.manager_grace,
        settle: Duration::ZERO,
        pod_budget: request.pod_budget,
        conflict_probe: request.conflict_probe,
    };
    let limit = WaitLimit::new(limits, Some(&interrupted));
    let progress = context.progress.as_mut();
    let restored = session::carry_out(&wanted, limit, permit, &context.store, progress);
    let mut restored = restored.unwrap_or_else(|refusal| Restored {
        problems: refusal.problems,
        ..Restored::default()
    });
    context.pending.add(mem::take(&mut restored.pending));
    restored
}

impl Restored {
    /// Leaves out the pods that are not of the window: kubelet may just be creating them.
    pub(crate) fn retain(&mut self, window: &[WindowPod], left_out: &LeftOut) {
        let is_known = |id: &PodId| is_of_window(window, id) || left_out.had(id);
        self.pods.retain(|pod| is_known(&pod.pod.info.id));
        self.problems
            .retain(|problem| problem.pod.as_ref().is_none_or(is_known));
    }
}

/// The warnings of what did not answer before COMMAND, by the record of an open window: a netfix that takes it over must
/// know them.
pub(crate) fn silent_before(window: &Window) -> Vec<Problem> {
    let problems = window.problems.iter();
    problems
        .filter(|problem| is_silent_before(problem))
        .cloned()
        .collect()
}

/// Whether it is such a warning; the record of a window has no others with these codes while it is open.
pub(crate) fn is_silent_before(problem: &Problem) -> bool {
    let code = problem.code();
    (code.is_about_gateway() || code == Code::TargetUnreachable) && !problem.is_error()
}

/// Probes the gateways of every pod and of the host, and the targets; from memory too.
pub(crate) fn verify(
    inventory: Inventory,
    baseline: &Baseline,
    request: &Request<'_>,
    context: &mut Context,
) -> Result<Verified, Refusal> {
    gateways::verify(
        inventory,
        baseline.stored.clone(),
        baseline.node.as_ref(),
        &request.selection,
        &request.targets,
        request.timeout,
        context.progress.as_mut(),
    )
}

/// Whether a pod is one of the window.
pub(crate) fn is_of_window(window: &[WindowPod], id: &PodId) -> bool {
    window.iter().any(|pod| pod.info.id == *id)
}

impl Verified {
    /// Leaves out the pods that are not of the window.
    pub(crate) fn retain(&mut self, window: &[WindowPod]) {
        self.pods
            .retain(|pod| is_of_window(window, &pod.pod.info.id));
        let is_known = |id: &PodId| is_of_window(window, id);
        self.problems
            .retain(|problem| problem.pod.as_ref().is_none_or(is_known));
    }

    /// The host and the pods by their gateways' answers.
    pub(crate) fn reached(&self) -> Reached {
        let count = |state| {
            let pods = self.pods.iter();
            pods.filter(|one| one.answers.state == state).count()
        };
        Reached {
            host: self.host.gateways.clone(),
            total: self.pods.len(),
            reachable: count(Reachability::Reachable),
            without: count(Reachability::NoGateway),
            unknown: count(Reachability::Unknown),
            has_targets: self.pods.iter().any(|pod| !pod.targets.is_empty()),
        }
    }

    /// A warning for each gateway and target that did not answer: found before COMMAND, it is no error after it.
    pub(crate) fn silent(self) -> Vec<Problem> {
        let warning = |problem: Problem| {
            let cause = match problem.code() {
                Code::TargetUnreachable => WindowCause::TargetSilentBefore,
                Code::GatewayUnknown => WindowCause::NotProbedBefore,
                _ => WindowCause::SilentBefore,
            };
            let mut warning = cause.warning(problem.object);
            warning.pod = problem.pod;
            warning
        };
        let is_silence = |problem: &Problem| matches!(*problem.cause, Cause::Gateway(_));
        let problems = self.problems.into_iter();
        problems.filter(is_silence).map(warning).collect()
    }

    /// The window is not to blame for gateways and targets that were silent before it.
    pub(crate) fn excuse(&mut self, silent: &[Problem]) {
        for problem in &mut self.problems {
            let is_it = |before: &&Problem| {
                before.code() == problem.code()
                    && before.pod == problem.pod
                    && before.object == problem.object
            };
            if matches!(*problem.cause, Cause::Gateway(_))
                && let Some(before) = silent.iter().find(is_it)
            {
                problem.clone_from(before);
            }
        }
    }
}
