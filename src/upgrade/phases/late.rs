//! The pods that get their network between the snapshot and the pause: a sandbox that was being set up, a namespace that is new.
//! What was empty at the snapshot proves nothing.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::look::Look;
use crate::inventory::pods::observe_claims;
use crate::matching::Selection;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::pod::empty::EmptyNetns;
use crate::model::window::WindowPod;
use crate::model::{Link, LinkGraph, NetnsIdentity, PodId, PodInfo, Problem};
use crate::records::stored::Stored;
use crate::refusal::Refusal;
use crate::runtime::Sandbox;
use crate::snapshot::{Accept, capture};
use crate::store::Guard;
use crate::upgrade::baseline::{LeftOut, read_back};
use crate::upgrade::phases::check::Blockers;
use crate::upgrade::phases::restore::PodNetwork;
use crate::upgrade::phases::snapshot;
use crate::upgrade::request::UpgradeRequest;
use crate::window::fates;
use crate::window::rebuild_check::query;

/// The namespaces of a snapshot, with the names that runtimes reported.
pub(crate) type Named = Vec<(NetnsIdentity, PodInfo)>;

/// What a second observation found.
#[derive(Default)]
pub(crate) struct Late {
    pub pods: Vec<WindowPod>,
    /// Pods of the snapshot that went meanwhile.
    pub gone: BTreeSet<PodId>,
    /// What --force has accepted.
    pub problems: Vec<Problem>,
}

/// Saves the selected pods that have interfaces now and no checkpoint, in the state directory and in the window's memory.
pub(crate) fn save(
    network: &mut PodNetwork,
    named: &Named,
    guard: Option<&Guard>,
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Late, Refusal> {
    let mut inventory = Inventory::open(&request.selection)?;
    let present = inventory.pods.iter().map(|pod| &pod.identity);
    let gone = fates::absent(&network.baseline.stored, present.chain(&inventory.closed));
    let bare = leave_uncovered(&mut inventory, &network.baseline.stored, named, request)?;
    if inventory.pods.is_empty() {
        note_bare(network, bare);
        return Ok(Late {
            gone,
            ..Late::default()
        });
    }
    let (store, progress) = (&context.store, context.progress.as_mut());
    let late = Selection::of_inodes(inventory.pods.iter().map(|pod| pod.identity.inode));
    let look = Look::of(inventory, store)?;
    let (captured, inventory) = capture(look, &late, (Accept::default(), request.index), store)?;
    let written = snapshot::write(captured, guard, request, &LeftOut::default(), progress);
    let mut found = Blockers::default();
    found.add_of_snapshot(written.problems);
    let problems = found.gate(request)?;
    let stored = read_back(&request.selection, store)?;
    (network.baseline.stored, network.baseline.node) = (stored.stored, stored.node);
    note_bare(network, bare);
    let others = on_other_devices(&network.baseline.stored, request, &inventory);
    let mut pods = written.pods;
    pods.retain(|pod| !others.contains(&pod.info.id));
    // A runtime may have stopped with kubelet.
    let sandboxes = query::before(&request.runtimes).map(|answer| answer.sandboxes);
    for pod in &mut pods {
        let mut own = sandboxes.iter().flatten();
        let own = own.find(|one| pod.info.sandbox.as_ref() == Some(&one.id));
        pod.fingerprint_before = own.map(Sandbox::fingerprint);
    }
    network.left_out.add(others);
    Ok(Late {
        pods,
        gone,
        problems,
    })
}

/// COMMAND takes nothing from a namespace without an interface.
fn note_bare(network: &mut PodNetwork, bare: Vec<NetnsIdentity>) {
    if let Some(node) = &mut network.baseline.node {
        let is_known = |one: &EmptyNetns| bare.iter().any(|bare| bare.is_same(&one.identity));
        node.empty.retain(|one| one.accepted || !is_known(one));
        let bare = bare.into_iter();
        node.empty.extend(bare.map(|identity| EmptyNetns {
            identity,
            accepted: false,
        }));
    }
}

/// Leaves the selected pods that have interfaces and that no checkpoint describes; returns the namespaces without an interface.
fn leave_uncovered(
    inventory: &mut Inventory,
    stored: &Stored,
    named: &Named,
    request: &UpgradeRequest<'_>,
) -> Result<Vec<NetnsIdentity>, Refusal> {
    let node = inventory.node.clone();
    inventory
        .pods
        .retain(|pod| stored.record_of(&node, &pod.identity, &pod.info).is_none());
    let states = observe_claims(&mut inventory.pods, &inventory.host);
    let (mut late, mut bare) = (Vec::new(), Vec::new());
    for (pod, state) in inventory.pods.iter().zip(&states) {
        match state {
            Ok(state) if state.links_but_loopback().next().is_none() => {
                bare.push(pod.identity.clone());
            }
            // Why one cannot be read is reported where it is captured.
            state => {
                let mut links = state.iter().flat_map(|state| &state.links);
                late.push((pod.identity.clone(), links.any(Link::is_on_host)));
            }
        }
    }
    // A runtime that has stopped with kubelet does not name them, nor tell which of them are pods.
    let is_named = !late.is_empty()
        && inventory
            .attribute(&request.runtimes, &request.selection)
            .is_ok();
    if !is_named {
        *inventory = Inventory::open(&request.selection)?;
    }
    let is_late = |identity: &NetnsIdentity| {
        let mut late = late.iter();
        late.any(|(one, is_on_host)| one.is_same(identity) && (is_named || *is_on_host))
    };
    inventory.pods.retain(|pod| is_late(&pod.identity));
    for pod in &mut inventory.pods {
        let mut known = named.iter();
        if let Some((_, info)) = known.find(|(identity, _)| identity.is_same(&pod.identity)) {
            pod.info.learn(info.clone());
        }
    }
    inventory
        .pods
        .retain(|pod| request.selection.wants_pod(&pod.info));
    Ok(bare)
}

/// The pods that a reload of the drivers of this window does not affect.
fn on_other_devices(
    stored: &Stored,
    request: &UpgradeRequest<'_>,
    inventory: &Inventory,
) -> BTreeSet<PodId> {
    let graph = LinkGraph::new(&inventory.host.state.links);
    let drivers = stored.checkpoints.iter().filter_map(|(info, checkpoint)| {
        let extension = checkpoint.netfix.as_ref()?;
        let drivers = PodDrivers::new(&extension.state, &extension.stack, &graph);
        Some((&info.id, drivers))
    });
    let drivers: Vec<_> = drivers.collect();
    at_risk::left_out(&drivers, &request.devices, &graph).unwrap_or_default()
}
