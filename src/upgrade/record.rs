//! Facts into the window's record.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::gateways::Verified;
use crate::inventory::nics;
use crate::model::net::nic;
use crate::model::problem::RebuildCause;
use crate::model::window::{Phase, PhaseName};
use crate::model::{IfName, PodId, Problem, Window, WindowNic};
use crate::restore::Restored;
use crate::upgrade::preflight::Baseline;
use crate::window::clock::boottime;
use crate::window::rebuild_check;
use crate::window::rebuild_check::{After, PodBefore, Verdict};

/// Notes when each pod lost the first of its links, as far as the present run of COMMAND has lost any. A pod that lost it
/// in an earlier run of this window, and has not reached a gateway since, keeps that moment.
pub(crate) fn losses(window: &mut Window, lost: &BTreeMap<IfName, u64>, baseline: &Baseline) {
    let began = window.started_boottime;
    // No run has seen a loss that happened after the watching run was killed.
    let is_command = |phase: &&Phase| phase.name == PhaseName::Command;
    let mut earlier = window.phases.iter().filter(is_command).rev().skip(1);
    let is_unseen = earlier.any(|phase| phase.to.is_none());
    for pod in &mut window.pods {
        let stored = baseline.stored.checkpoints.iter();
        let extension = stored
            .filter(|(info, _)| info.id == pod.info.id)
            .find_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        let links = extension.into_iter().flat_map(|extension| &extension.stack);
        let moments = links.filter_map(|link| lost.get(&link.name));
        let Some(at) = moments.min() else { continue };
        let is_back = pod.answered.take().is_some();
        if is_back || pod.lost.is_none() && !is_unseen {
            pod.lost = Some(at.saturating_sub(began));
        }
    }
}

/// Notes how a restore left each pod.
pub(crate) fn restored(window: &mut Window, restored: &Restored) {
    for pod in &mut window.pods {
        let mut all = restored.pods.iter();
        if let Some(left) = all.find(|left| left.pod.info.id == pod.info.id) {
            pod.steps += left.done.len();
            pod.state = Some(left.state.after(pod.steps > 0).into());
        }
    }
}

/// Notes each pod's interfaces, and what its gateways and targets answered.
pub(crate) fn verified(window: &mut Window, verified: &Verified) {
    let (now, now_ms) = (Instant::now(), boottime());
    let began = window.started_boottime;
    let moment = |at: Instant| {
        let ago = u64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or_default();
        now_ms.saturating_sub(ago).saturating_sub(began)
    };
    for found in &verified.pods {
        let mut pods = window.pods.iter_mut();
        let Some(pod) = pods.find(|pod| pod.info.id == found.pod.info.id) else {
            continue;
        };
        pod.answered = pod.answered.or_else(|| found.answers.first.map(moment));
        pod.after = Some(found.pod.interfaces.clone());
        pod.gateways.clone_from(&found.answers.gateways);
        pod.targets.clone_from(&found.targets);
    }
}

/// The host's NICs before COMMAND; `None` where they cannot be read: nothing else depends on that.
pub(crate) fn nics_before(baseline: &Baseline) -> Option<Vec<WindowNic>> {
    let nics = nics::read(&baseline.devices()).ok()?;
    Some(nics.into_iter().map(WindowNic::new).collect())
}

/// Notes the host's NICs as they are now.
pub(crate) fn nics_after(window: &mut Window, baseline: &Baseline) {
    if let Some(known) = &mut window.nics {
        nic::update(known, nics::read(&baseline.devices()).ok());
    }
}

/// Notes whether each pod was rebuilt; returns the problems of those that were, or may have been.
pub(crate) fn rebuilt(window: &mut Window, after: &After, baseline: &Baseline) -> Vec<Problem> {
    let identities: BTreeMap<&PodId, _> = baseline
        .stored
        .checkpoints
        .iter()
        .filter_map(|(info, checkpoint)| Some((&info.id, &checkpoint.netfix.as_ref()?.identity)))
        .collect();
    let mut problems = Vec::new();
    for pod in &mut window.pods {
        let before = PodBefore {
            info: &pod.info,
            fingerprint: pod.fingerprint_before.as_ref(),
            namespace: identities.get(&pod.info.id).copied(),
        };
        let checked = rebuild_check::check(&before, after);
        pod.fingerprint_after = checked.fingerprint;
        let (rebuilt, cause) = match checked.verdict {
            Verdict::Same => (Some(false), None),
            Verdict::Rebuilt(cause) => (Some(true), Some(cause)),
            // The runtime that does not answer is a separate problem.
            Verdict::Unknown if after.sandboxes.is_none() => (None, None),
            Verdict::Unknown => (None, Some(RebuildCause::Unknown)),
        };
        pod.rebuilt = rebuilt;
        problems.extend(cause.map(|cause| cause.error(pod.info.title()).of(&pod.info.id)));
    }
    problems
}
