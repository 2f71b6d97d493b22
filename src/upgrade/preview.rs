//! What a window would do, and which pods it may cut off; changes nothing.

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::pods::observe_pods;
use crate::kubelet::unit;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::problem::WindowCause;
use crate::model::{Link, NodeIdentity, PodSummary, Problem, interfaces};
use crate::refusal::Refusal;
use crate::upgrade::baseline::{self, LeftOut};
use crate::upgrade::phases::rollback::already_rolled_back;
use crate::upgrade::phases::{check, snapshot};
use crate::upgrade::request::UpgradeRequest;
use crate::window::bus;
use crate::window::rebuild_check::query;
use crate::window::records::{EarlierWindow, find_earlier, still_open};

/// What a window would find.
pub(crate) struct Preview {
    pub node: NodeIdentity,
    /// The unit that it would pause.
    pub unit: Option<String>,
    /// The pods with a link on one of the host's.
    pub pods: Vec<PodSummary>,
    pub problems: Vec<Problem>,
    /// Whether the window would be refused, as far as that is known.
    pub is_refused: bool,
}

/// Reads the state of the pods, kubelet and the state directory.
pub(crate) fn observe(request: &UpgradeRequest<'_>, context: &Context) -> Result<Preview, Refusal> {
    let bus = bus::connect()?;
    let interrupted = match find_earlier(&context.store) {
        Ok(EarlierWindow::Interrupted(window)) => Some(window),
        _ => None,
    };
    let (unit, note) = unit::find_for_upgrade(bus.as_ref(), request.pause, interrupted.as_ref())?;
    let mut inventory = Inventory::open(&request.selection)?;
    inventory.attribute(&request.runtimes, &request.selection)?;
    inventory
        .pods
        .retain(|pod| request.selection.wants_pod(&pod.info));
    let mut problems = std::mem::take(&mut inventory.problems);
    problems.extend(note);
    let open = context.store.open_window()?;
    problems.extend(open.map(|open| still_open(&open).demoted()));
    let states = observe_pods(&mut inventory.pods, &inventory.host);
    let drivers = inventory.pods.iter().zip(&states);
    let drivers: Vec<_> = drivers
        .filter_map(|(pod, state)| {
            // A pod that cannot be read stays in.
            let drivers = PodDrivers::of(state.as_ref().ok()?, &inventory.host.state);
            Some((&pod.info.id, drivers))
        })
        .collect();
    let left_out = at_risk::left_out(&drivers, &request.devices, &inventory.host.state)?;
    let mut pods = Vec::new();
    for (pod, state) in inventory.pods.iter().zip(states) {
        match state {
            Ok(state)
                if state.links.iter().any(Link::is_on_host) && !left_out.contains(&pod.info.id) =>
            {
                pods.push(PodSummary {
                    interfaces: interfaces(&state),
                    ..PodSummary::bare(&pod.info, Some(&pod.netns.path))
                });
            }
            Ok(_) => {}
            Err(error) => {
                let error = error.to_string();
                let cause = WindowCause::NamespaceUnreadable { error };
                problems.push(cause.error(pod.netns.shown()).of(&pod.info.id));
            }
        }
    }
    pods.sort_by(|a: &PodSummary, b| a.info.id.cmp(&b.info.id));
    Ok(Preview {
        node: inventory.node,
        unit,
        pods,
        problems,
        is_refused: false,
    })
}

/// The preview with the problems that the window would report, by a dry run of what precedes the pause in it.
pub(crate) fn rehearse(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preview, Refusal> {
    let rehearsed = run_to_pause(request, context);
    match (rehearsed, observe(request, context)) {
        (Err(refusal), Err(_)) => Err(refusal),
        (Err(refusal), Ok(preview)) => Ok(Preview {
            problems: refusal.problems,
            is_refused: true,
            ..preview
        }),
        (Ok((accepted, left_out)), preview) => {
            let mut preview = preview?;
            preview
                .problems
                .retain(|problem| !left_out.is_about(problem) && !accepted.contains(problem));
            preview.problems.extend(accepted);
            Ok(preview)
        }
    }
}

/// Carries out the steps of a window up to the pause, with the snapshot in memory; returns the problems that do not prevent it,
/// and the pods that it leaves out.
fn run_to_pause(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    context.store.refuse_if_locked()?;
    let bus = bus::connect()?;
    let interrupted = match find_earlier(&context.store)? {
        EarlierWindow::Interrupted(window) => Some(window),
        EarlierWindow::Nothing | EarlierWindow::Finished(_) => None,
    };
    let rehearsed = if let Some(window) = interrupted.as_ref().filter(|one| one.has_begun()) {
        let (_, left_out) = baseline::recover(window, &request.selection, &context.store)?;
        let is_rolled_back = window.rollback.is_some();
        let accepted = is_rolled_back.then(|| already_rolled_back().demoted());
        (accepted.into_iter().collect(), left_out)
    } else {
        let mut found = check::run(request, context)?;
        let progress = context.progress.as_mut();
        let written = snapshot::write(found.captured, None, request, &found.left_out, progress);
        found.blockers.add_of_snapshot(written.problems);
        query::before(&request.runtimes)?;
        (found.blockers.gate(request.force)?, found.left_out)
    };
    unit::find_for_upgrade(bus.as_ref(), request.pause, interrupted.as_ref())?;
    Ok(rehearsed)
}
