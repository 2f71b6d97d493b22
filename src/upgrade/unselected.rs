//! The running pods that COMMAND cuts off and that the user did not select: the window does not restore them, and no word about it
//! may leave them out.

use std::collections::BTreeSet;

use crate::inventory::Inventory;
use crate::inventory::pods::{observe_at_least_claims, observe_pods};
use crate::matching::Selection;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::problem::WindowCause;
use crate::model::text::join;
use crate::model::window::WindowPod;
use crate::model::{
    HostSide, IfName, Interface, NetState, NetnsIdentity, NodeIdentity, PodInfo, Problem,
    StackLink, State, Window, interfaces, stack,
};
use crate::plan::snapshot_quality::{BesideState, pod_loss};
use crate::records::stored::{Stored, load};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::upgrade::request::UpgradeRequest;
use crate::window::facts::extension_of;

/// The pods at risk that are not selected.
#[derive(Debug, Default)]
pub(crate) struct Unselected {
    pods: Vec<UnselectedPod>,
    /// The devices of the host under them.
    devices: BTreeSet<IfName>,
}

/// A namespace, what it is to have, and the host's links that were under it.
type KnownPod = (NetnsIdentity, NetState, Vec<StackLink>);

#[derive(Debug)]
struct UnselectedPod {
    info: PodInfo,
    interfaces: Vec<Interface>,
    /// Its namespace and what it is to have; `None` where that is not known.
    known: Option<KnownPod>,
    /// As it was observed last after COMMAND.
    state: Option<State>,
}

impl Unselected {
    /// Compares the selected pods with all that run. A pod that has lost its network already is at risk by its checkpoint.
    pub(crate) fn find(
        request: &UpgradeRequest<'_>,
        selected: &mut Inventory,
        store: &Store,
    ) -> Result<Self, Refusal> {
        if request.selection.is_everything() {
            return Ok(Self::default());
        }
        let everything = Selection::everything();
        let stored = load(store, &everything)?;
        let mut all = Inventory::named(&everything, &request.runtimes, &stored.records())?;
        let is_selected = |identity: &NetnsIdentity| {
            let mut pods = selected.pods.iter();
            pods.any(|pod| pod.identity.is_same(identity))
        };
        all.pods.retain(|pod| !is_selected(&pod.identity));
        let host = &HostSide::new(&all.host.state);
        let states = observe_at_least_claims(&mut selected.pods, &selected.host);
        let graph = &host.graph;
        let own = states.iter().flatten();
        let own: Vec<_> = own.map(|state| PodDrivers::of(state, graph)).collect();
        let reloaded = at_risk::reloaded(&own, &request.devices, graph)?;
        let states = observe_at_least_claims(&mut all.pods, &all.host);
        let mut found = Self::default();
        for (pod, state) in all.pods.iter().zip(states) {
            let Ok(state) = state else {
                found.pods.push(UnselectedPod {
                    info: pod.info.clone(),
                    interfaces: Vec::new(),
                    known: None,
                    state: None,
                });
                continue;
            };
            let (good, stack) = good(&stored, &all.node, &pod.identity, &pod.info, (&state, host))
                .unwrap_or_else(|| (state.clone(), graph.under(&state.links)));
            if PodDrivers::new(&good, &stack, graph).may_be_of(&reloaded) {
                found.devices.extend(stack::devices(&stack).cloned());
                found.pods.push(UnselectedPod {
                    info: pod.info.clone(),
                    interfaces: interfaces(&good),
                    known: Some((pod.identity.clone(), good, stack)),
                    state: None,
                });
            }
        }
        Ok(found)
    }

    /// Those of an interrupted window, with what their checkpoints have.
    pub(crate) fn of_window(window: &Window, stored: &Stored) -> Self {
        let pod = |pod: &WindowPod| UnselectedPod {
            info: pod.info.clone(),
            interfaces: pod.before.clone(),
            known: extension_of(&pod.info.id, stored)
                .cloned()
                .map(|own| (own.identity, own.state, own.stack)),
            state: pod.state,
        };
        Self {
            pods: window.unselected.iter().map(pod).collect(),
            devices: BTreeSet::new(),
        }
    }

    /// What stands against the window.
    pub(crate) fn problem(&self) -> Option<Problem> {
        let pods: Vec<PodInfo> = self.pods.iter().map(|pod| pod.info.clone()).collect();
        let devices = join(&self.devices, ", ");
        (!pods.is_empty()).then(|| WindowCause::NotSelected { pods }.error(devices))
    }

    /// For the record of the window.
    pub(crate) fn recorded(&self) -> Vec<WindowPod> {
        let pod = |pod: &UnselectedPod| WindowPod {
            state: pod.state,
            ..WindowPod::new(pod.info.clone(), pod.interfaces.clone())
        };
        self.pods.iter().map(pod).collect()
    }

    /// Observes what they have now. One that had lost something before it went still counts as lost.
    pub(crate) fn observe(&mut self) -> Result<(), Refusal> {
        if self.pods.is_empty() {
            return Ok(());
        }
        let mut now = Inventory::open(&Selection::everything())?;
        let states = observe_pods(&mut now.pods, &now.host);
        let host = HostSide::new(&now.host.state);
        for pod in &mut self.pods {
            let Some((identity, good, stack)) = &pod.known else {
                pod.state = Some(State::Unknown);
                continue;
            };
            let mut running = now.pods.iter().zip(&states);
            let state = running.find(|(running, _)| running.identity.is_same(identity));
            pod.state = Some(match state {
                None if pod.state == Some(State::Degraded) => State::Degraded,
                None => State::Gone,
                Some((_, Err(_))) => State::Unknown,
                Some((_, Ok(state))) => {
                    let beside = BesideState {
                        stack,
                        ..BesideState::default()
                    };
                    match pod_loss(good, beside, state, &host) {
                        Some(_) => State::Degraded,
                        None => State::InSync,
                    }
                }
            });
        }
        Ok(())
    }

    /// Those that lack something now.
    pub(crate) fn lost(&self) -> Option<Problem> {
        let lost = self.pods.iter();
        let lost = lost.filter(|pod| pod.state == Some(State::Degraded));
        let pods: Vec<PodInfo> = lost.map(|pod| pod.info.clone()).collect();
        let at_risk = self.pods.len();
        (!pods.is_empty()).then(|| WindowCause::LostUnselected { pods, at_risk }.error("upgrade"))
    }
}

/// What a pod had by its newest checkpoint, with the host's links under that, if it has lost some of it.
fn good(
    stored: &Stored,
    node: &NodeIdentity,
    identity: &NetnsIdentity,
    info: &PodInfo,
    (now, host): (&NetState, &HostSide<'_>),
) -> Option<(NetState, Vec<StackLink>)> {
    let extensions = stored.checkpoints.iter();
    let extensions = extensions.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
    let own = extensions.filter(|one| one.is_about(node, identity, info));
    let newest = own.max_by_key(|one| one.rank())?;
    pod_loss(&newest.state, newest.beside(&[]), now, host)?;
    Some((newest.state.clone(), newest.stack.clone()))
}
