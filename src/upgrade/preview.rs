//! What a window would do, and which pods it may cut off: a dry run of what precedes the pause in it. Changes nothing.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inventory::pods::observe_at_least_claims;
use crate::inventory::sockets::connections::Translated;
use crate::inventory::sockets::named::IndexLook;
use crate::inventory::sockets::{self, Suspects};
use crate::inventory::{Inventory, nics};
use crate::kubelet::unit;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::problem::WindowCause;
use crate::model::{
    IfName, Link, LinkGraph, Nic, NodeIdentity, PodId, PodSummary, Problem, Rehearsal, Window,
    interfaces, stack,
};
use crate::refusal::Refusal;
use crate::upgrade::baseline;
use crate::upgrade::device_loss::DeviceLoss;
use crate::upgrade::phases::rollback::already_rolled_back;
use crate::upgrade::phases::{check, snapshot};
use crate::upgrade::request::UpgradeRequest;
use crate::window::bus;
use crate::window::observed::still_open;
use crate::window::rebuild_check::query;
use crate::window::records::{EarlierWindow, find_earlier};

/// What a window would find.
pub(crate) struct Preview {
    pub node: NodeIdentity,
    /// The unit that it would pause.
    pub unit: Option<String>,
    /// The pods with a link on one of the host's, or with a device inside.
    pub pods: Vec<PodSummary>,
    /// The devices of the host under them.
    pub nics: Vec<Nic>,
    /// What the host loses, by device.
    pub devices: Vec<DeviceLoss>,
    /// The rehearsal of the restore, where it took place.
    pub rehearsal: Option<Rehearsal>,
    pub problems: Vec<Problem>,
    /// Whether the window would be refused, as far as that is known.
    pub is_refused: bool,
}

/// Carries out the steps of a window up to the pause, with the snapshot in memory.
pub(crate) fn preview(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preview, Refusal> {
    context.store.refuse_if_locked()?;
    let bus = bus::connect()?;
    let interrupted = match find_earlier(&context.store)? {
        EarlierWindow::Interrupted(window) => Some(window),
        EarlierWindow::Nothing | EarlierWindow::Finished(_) => None,
    };
    let begun = interrupted.as_ref().filter(|window| window.has_begun());
    let mut preview = match begun {
        Some(window) => resumed(window, request, context)?,
        None => observed(request, context)?,
    };
    if !preview.is_refused {
        let (unit, note) =
            unit::find_for_upgrade(bus.as_ref(), request.pause, interrupted.as_ref())?;
        let open = context.store.open_window()?;
        preview.unit = unit;
        preview.problems.extend(note);
        preview
            .problems
            .extend(open.map(|open| still_open(&open, &context.store).demoted()));
    }
    Ok(preview)
}

/// The check and the snapshot of a new window.
fn observed(request: &UpgradeRequest<'_>, context: &mut Context) -> Result<Preview, Refusal> {
    let mut found = check::run(request, context)?;
    let progress = context.progress.as_mut();
    let burst = snapshot::burst(&found.captured, request);
    let written = snapshot::write(found.captured, None, request, &found.left_out, progress);
    found.blockers.add_of_snapshot(written.problems);
    query::before(&request.runtimes)?;
    let mut preview = seen(found.inventory, request, |pod| found.left_out.has(pod));
    preview.rehearsal = found.rehearsal;
    preview.problems.extend(burst);
    match found.blockers.gate(request) {
        Ok(accepted) => preview.problems.extend(accepted),
        Err(Refusal { problems, .. }) => (preview.problems, preview.is_refused) = (problems, true),
    }
    Ok(preview)
}

/// An interrupted window, which takes no snapshot.
fn resumed(
    window: &Window,
    request: &UpgradeRequest<'_>,
    context: &Context,
) -> Result<Preview, Refusal> {
    let (_, left_out) = baseline::recover(window, &request.selection, &context.store)?;
    let mut inventory = Inventory::open(&request.selection)?;
    inventory.attribute(&request.runtimes, &request.selection)?;
    inventory
        .pods
        .retain(|pod| request.selection.wants_pod(&pod.info));
    let mut preview = seen(inventory, request, |pod| left_out.has(pod));
    preview
        .problems
        .retain(|problem| !left_out.is_about(problem));
    let is_rolled_back = window.rollback.is_some();
    let rolled_back = is_rolled_back.then(|| already_rolled_back().demoted());
    preview.problems.extend(rolled_back);
    Ok(preview)
}

/// The pods on the host's links or behind a bridge with an uplink, and the devices that go.
fn seen(
    mut inventory: Inventory,
    request: &UpgradeRequest<'_>,
    is_left_out: impl Fn(&PodId) -> bool,
) -> Preview {
    let host = &inventory.host;
    let states = observe_at_least_claims(&mut inventory.pods, host);
    let graph = LinkGraph::new(&host.state.links);
    let (mut pods, mut devices) = (Vec::new(), BTreeSet::<IfName>::new());
    let (mut suspects, mut drivers, mut at_risk) = (Vec::new(), Vec::new(), Vec::new());
    let mut problems = std::mem::take(&mut inventory.problems);
    for (pod, state) in inventory.pods.iter().zip(states) {
        match state {
            Ok(state) if !is_left_out(&pod.info.id) => {
                let under = graph.under(&state.links);
                if under.is_empty() && !state.links.iter().any(Link::is_lost_with_host) {
                    continue;
                }
                devices.extend(stack::devices(&under).cloned());
                drivers.push(PodDrivers::new(&state, &under, &graph));
                suspects.push(Suspects::of_pod(pod, state.sockets_at_risk(), Vec::new()));
                pods.push(PodSummary {
                    interfaces: interfaces(&state),
                    ..PodSummary::bare(&pod.info, Some(&pod.netns.path))
                });
                at_risk.push((pod, state));
            }
            Ok(_) => {}
            Err(error) => {
                let cause = WindowCause::NamespaceUnreadable {
                    error: error.to_string(),
                };
                problems.push(cause.error(pod.netns.shown()).of(&pod.info.id));
            }
        }
    }
    let of_host = host.state.host_sockets_at_risk(&devices);
    suspects.push(Suspects::of_host(host, of_host, Vec::new()));
    let found = sockets::find(&suspects).into_iter();
    problems.extend(found.flat_map(|one| one.problems));
    let indexes = IndexLook::with_risk(&host.state, None, &devices);
    problems.extend(indexes.named(request.index));
    // The check has found devices that do not exist.
    let reloaded = at_risk::reloaded(&drivers, &request.devices, &graph).unwrap_or_default();
    let lost = &at_risk::devices(&reloaded, &graph) | &devices;
    let at_risk = at_risk.iter().map(|(pod, state)| (*pod, state));
    problems.extend(Translated::read(&host.state, &lost, at_risk).problems());
    let of_device = |device| DeviceLoss::of(device, &host.state, &graph);
    pods.sort_by(|a: &PodSummary, b| a.info.id.cmp(&b.info.id));
    Preview {
        node: inventory.node,
        unit: None,
        pods,
        nics: nics::named(&devices).unwrap_or_default(),
        devices: lost.into_iter().map(of_device).collect(),
        rehearsal: None,
        problems,
        is_refused: false,
    }
}
