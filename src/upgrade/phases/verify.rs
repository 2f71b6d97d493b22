//! The probe of every gateway and target.

use std::collections::BTreeMap;

use crate::context::Context;
use crate::gateways::{self, Verified};
use crate::inventory::Inventory;
use crate::model::window::WindowPod;
use crate::model::{PodId, Problem};
use crate::refusal::Refusal;
use crate::store::Guard;
use crate::upgrade::baseline::Baseline;
use crate::upgrade::request::UpgradeRequest;
use crate::window::facts::{Silence, excuse};

/// Probes the gateways of every pod and of the host, and the targets, from memory: the disk is not needed.
fn run(
    inventory: Inventory,
    baseline: &Baseline,
    request: &UpgradeRequest<'_>,
    is_lost: Option<&dyn Fn() -> bool>,
    context: &mut Context,
) -> Result<Verified, Refusal> {
    gateways::verify(
        inventory,
        baseline.stored.clone(),
        baseline.node.as_ref(),
        &request.selection,
        &request.targets,
        gateways::ProbeLimits {
            is_lost,
            ..gateways::ProbeLimits::within(request.pod_budget, request.timeout)
        },
        context.progress.as_mut(),
    )
}

/// What of the window does not answer before COMMAND, and why the answers could not be recorded; `None` where nothing could be probed.
pub(crate) fn before(
    inventory: Inventory,
    window: &[WindowPod],
    baseline: &mut Baseline,
    guard: Option<&Guard>,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Option<(Vec<Silence>, Option<Problem>)> {
    let mut verified = run(inventory, baseline, request, None, context).ok()?;
    retain(&mut verified, window);
    let unrecorded = baseline.note_answers(verified.for_record(true), guard);
    let silent = verified.unanswered.iter().map(Silence::of);
    Some((silent.collect(), unrecorded))
}

/// Probes after COMMAND: the window is not to blame for what was silent before it. Where the network `is_lost` meanwhile, no answer is
/// waited for. `None` where nothing could be probed.
pub(crate) fn after(
    window: &[WindowPod],
    baseline: &Baseline,
    request: &UpgradeRequest<'_>,
    is_lost: Option<&dyn Fn() -> bool>,
    context: &mut Context,
) -> (Option<Verified>, Vec<Problem>) {
    let verified = Inventory::open(&request.selection)
        .and_then(|inventory| run(inventory, baseline, request, is_lost, context));
    match verified {
        Ok(mut verified) => {
            retain(&mut verified, window);
            let problems = excuse(&mut verified, &baseline.silent);
            (Some(verified), problems)
        }
        Err(refusal) => (None, refusal.problems),
    }
}

/// Leaves out the pods that are not of the window, or gone: those have no gateway to answer.
pub(crate) fn retain(verified: &mut Verified, window: &[WindowPod]) {
    let mut window: BTreeMap<_, _> = window.iter().map(|pod| (&pod.info.id, pod)).collect();
    window.retain(|_, pod| !pod.is_gone());
    let is_of_window = |id: &PodId| window.contains_key(id);
    verified.pods.retain(|one| is_of_window(&one.pod.info.id));
    verified
        .problems
        .retain(|problem| problem.pod.as_ref().is_none_or(is_of_window));
    verified
        .unanswered
        .retain(|one| one.pod.as_ref().is_none_or(is_of_window));
}
