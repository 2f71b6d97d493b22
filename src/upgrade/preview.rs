//! What a window would do, which pods it may cut off, and whether it would begin; changes nothing.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::observe;
use crate::kernel;
use crate::kubelet::unit;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::problem::WindowCause;
use crate::model::{
    IfName, Link, NetState, NodeIdentity, PodId, PodSummary, Problem, Window, interfaces,
};
use crate::refusal::Refusal;
use crate::upgrade::baseline;
use crate::upgrade::left_out::LeftOut;
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

/// Runs what precedes the pause, with the snapshot in memory: the problems are those of the window.
pub(crate) fn rehearse(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preview, Refusal> {
    let rehearsed = begin(request, context);
    let seen = run(request, context);
    match (rehearsed, seen) {
        (Err(refusal), Err(_)) => Err(refusal),
        (Err(refusal), Ok(preview)) => Ok(Preview {
            problems: refusal.problems,
            is_refused: true,
            ..preview
        }),
        (Ok((accepted, left_out)), seen) => {
            let mut preview = seen?;
            preview
                .problems
                .retain(|problem| !left_out.is_about(problem) && !accepted.contains(problem));
            preview.problems.extend(accepted);
            Ok(preview)
        }
    }
}

/// The same steps as in a window, up to the pause; `Ok` has the problems that do not prevent it.
fn begin(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    context.store.refuse_if_locked()?;
    let bus = bus::connect()?;
    let interrupted = match find_earlier(&context.store)? {
        EarlierWindow::Interrupted(window) => Some(window),
        EarlierWindow::Nothing | EarlierWindow::Finished(_) => None,
    };
    let accepted = match interrupted.as_ref().filter(|window| window.has_begun()) {
        Some(window) => recover(window, request, context)?,
        None => check_and_snapshot(request, context)?,
    };
    unit::find_for_upgrade(bus.as_ref(), request.pause, interrupted.as_ref())?;
    Ok(accepted)
}

fn recover(
    window: &Window,
    request: &UpgradeRequest<'_>,
    context: &Context,
) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    let baseline = baseline::recover(window, &request.selection, &context.store)?;
    let left_out = LeftOut::of_window(window, &baseline.stored);
    let is_rolled_back = window.rollback.is_some();
    let accepted = is_rolled_back.then(|| already_rolled_back().demoted());
    Ok((accepted.into_iter().collect(), left_out))
}

fn check_and_snapshot(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    let check::Preflight {
        mut blockers,
        left_out,
        captured,
        inventory: _,
    } = check::run(request, context)?;
    let progress = context.progress.as_mut();
    let written = snapshot::write(captured, None, request, &left_out, progress);
    blockers.add_of_snapshot(written.problems);
    query::before(&request.runtimes)?;
    Ok((blockers.gate(request.force)?, left_out))
}

/// Reads the state of the pods, kubelet and the state directory.
pub(crate) fn run(request: &UpgradeRequest<'_>, context: &Context) -> Result<Preview, Refusal> {
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
    let states = observe::observe_pods(&mut inventory.pods, &inventory.host);
    let left_out = left_out(&inventory, &states, &request.devices)?;
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

/// The pods that a window would leave out. One that cannot be read stays in.
fn left_out(
    inventory: &Inventory,
    states: &[Result<NetState, kernel::Error>],
    devices: &[IfName],
) -> Result<BTreeSet<PodId>, Problem> {
    let host = &inventory.host.state;
    let pods = inventory.pods.iter().zip(states);
    let pods = pods.filter_map(|(pod, state)| {
        let drivers = PodDrivers::of(state.as_ref().ok()?, host);
        Some((&pod.info.id, drivers))
    });
    at_risk::left_out(&pods.collect::<Vec<_>>(), devices, host)
}
