//! The snapshot: everything that a restore of this window needs, on disk and in memory.

use crate::context::Context;
use crate::inventory::observe::Host;
use crate::inventory::{Inventory, nics};
use crate::model::problem::RestoreCause;
use crate::model::window::WindowPod;
use crate::model::{AddressProxy, Problem, WindowNic};
use crate::progress::Listener;
use crate::refusal::Refusal;
use crate::restore::{Restored, answering};
use crate::runtime::Sandbox;
use crate::snapshot::{Captured, PodSnapshot, SnapshotState};
use crate::store::Guard;
use crate::upgrade::baseline::{Baseline, LeftOut, read_back};
use crate::upgrade::phases::verify;
use crate::upgrade::request::UpgradeRequest;
use crate::window::rebuild_check::query;

/// The snapshot as it was written.
pub(crate) struct WrittenSnapshot {
    /// What a restore starts from.
    pub restored: Restored,
    /// The pods of the window.
    pub pods: Vec<WindowPod>,
    /// The problems of pods that are not left out.
    pub problems: Vec<Problem>,
}

/// Writes the snapshot under the window's lock, or without a lock nothing.
pub(crate) fn write(
    captured: Captured,
    guard: Option<&Guard>,
    request: &UpgradeRequest<'_>,
    left_out: &LeftOut,
    progress: &mut dyn Listener,
) -> WrittenSnapshot {
    let taken = match guard {
        Some(guard) => captured.write(guard, request.keep, progress),
        None => captured.unwritten(),
    };
    let mut problems = taken.problems;
    problems.retain(|problem| !left_out.is_about(problem));
    let recorded =
        |one: &PodSnapshot| one.state != SnapshotState::Empty && !left_out.has(&one.pod.info.id);
    WrittenSnapshot {
        restored: Restored {
            node: taken.node,
            recorded: taken.recorded,
            ..Restored::default()
        },
        pods: taken.pods.into_iter().filter(recorded).map(pod).collect(),
        problems,
    }
}

/// What answers now for addresses of pods: it is no other owner of them after the loss.
pub(crate) fn find_proxies(
    captured: &Captured,
    host: &Host,
    request: &UpgradeRequest<'_>,
) -> Option<Vec<AddressProxy>> {
    let (mode, rate) = (request.conflict_probe, request.probe_rate);
    answering::look(captured.whole(), host, mode, rate)
}

/// What a switch may not like about the restore of these pods.
pub(crate) fn burst(captured: &Captured, request: &UpgradeRequest<'_>) -> Option<Problem> {
    let (mode, rate) = (request.conflict_probe, request.probe_rate);
    let frames = answering::burst(captured.whole(), captured.node(), mode, rate)?;
    Some(RestoreCause::Burst { frames }.info("restore"))
}

fn pod(PodSnapshot { pod, .. }: PodSnapshot) -> WindowPod {
    WindowPod::new(pod.info, pod.interfaces)
}

/// The machine before COMMAND.
pub(crate) struct Before {
    pub baseline: Baseline,
    pub sandboxes: Vec<Sandbox>,
    /// The host's NICs; `None` where they cannot be read: nothing else depends on that.
    pub nics: Option<Vec<WindowNic>>,
    /// Why the answers could not be recorded.
    pub problems: Vec<Problem>,
}

/// Reads the snapshot back, and observes what it does not have; `pods` are those of the window.
pub(crate) fn observe(
    inventory: Inventory,
    pods: &[WindowPod],
    guard: Option<&Guard>,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Before, Refusal> {
    let mut baseline = read_back(&request.selection, &context.store)?;
    let answer = query::before(&request.runtimes)?;
    baseline.runtimes = query::answered(&answer).cloned().collect();
    let nics = nics::read(&baseline.devices()).ok();
    let mut problems = Vec::new();
    // Without an answer every silent gateway counts against the window.
    let probed = verify::before(inventory, pods, &mut baseline, guard, request, context);
    if let Some((silent, unrecorded)) = probed {
        baseline.silent = silent;
        problems.extend(unrecorded);
    }
    Ok(Before {
        baseline,
        sandboxes: answer.sandboxes,
        problems,
        nics: nics.map(|nics| nics.into_iter().map(WindowNic::new).collect()),
    })
}
