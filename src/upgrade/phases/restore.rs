//! The restore of the pods' network after COMMAND.

use std::mem;
use std::time::Duration;

use crate::context::Context;
use crate::model::PodId;
use crate::model::window::WindowPod;
use crate::records::contest::CNI_CACHE;
use crate::records::prepare::{RecordSource, SurveyRequest};
use crate::restore::{Limits, Permit, RestoreState, Restored, WaitLimit, session};
use crate::upgrade::baseline::Baseline;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::signals::Signals;
use crate::window::event::Event;
use crate::window::session::WindowSession;

/// Restores from memory: the disk is not needed.
pub(crate) fn run(
    baseline: &Baseline,
    request: &UpgradeRequest<'_>,
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

/// Leaves out the pods that are not of the window: kubelet may just be creating them.
pub(crate) fn retain(restored: &mut Restored, window: &[WindowPod], left_out: &LeftOut) {
    let is_known = |id: &PodId| {
        let mut pods = window.iter();
        pods.any(|pod| pod.info.id == *id) || left_out.had(id)
    };
    restored.pods.retain(|pod| is_known(&pod.pod.info.id));
    restored
        .problems
        .retain(|problem| problem.pod.as_ref().is_none_or(is_known));
}

/// Logs what a restore did.
pub(crate) fn log(restored: &Restored, window: &WindowSession) {
    if restored.is_unknown() {
        for problem in &restored.problems {
            window.log(&Event::Failed(problem.clone()));
        }
    } else {
        window.log(&Event::Restored {
            restored: restored.count(RestoreState::Restored),
            correct: restored.count(RestoreState::InSync),
            failed: restored.broken().count(),
        });
    }
}

/// Logs the pods that are not restored: the start of kubelet rebuilds a pod without an address. Returns whether there are any.
pub(crate) fn log_broken(restored: &Restored, window: &WindowSession) -> bool {
    let pods = restored.broken().count();
    if pods > 0 {
        window.log(&Event::Unrestored { pods });
    }
    for pod in restored.broken() {
        window.log(&Event::UnrestoredPod {
            title: pod.pod.info.title(),
            state: pod.state.into(),
            is_bare: pod.after.as_ref().is_none_or(Vec::is_empty),
        });
    }
    pods > 0
}
