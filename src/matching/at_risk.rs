//! Which pods a driver reload does not affect: those with interfaces only on devices of other drivers.
//!
//! The window's verdict and counts leave them out. The restore still repairs one that loses its network.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::observe::observe_pods;
use crate::inventory::stored::{Stored, load};
use crate::kernel;
use crate::maintenance::Request;
use crate::maintenance::network::is_of_window;
use crate::model::problem::{Cause, SnapshotCause, WindowCause};
use crate::model::text::join;
use crate::model::window::WindowPod;
use crate::model::{IfName, LinkKind, NetState, PodId, Problem, StackLink, stack};
use crate::refusal::Refusal;
use crate::restore::{RestoreState, Restored};

/// The pods that are left out of a window.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    pods: BTreeSet<PodId>,
    /// Those that lost their network: the window includes them again.
    lost: BTreeSet<PodId>,
}

/// The drivers of the devices under a pod; `None` for one whose driver is not known.
type Drivers = BTreeSet<Option<String>>;

impl LeftOut {
    /// Finds them. Without `--device`, COMMAND reloads the drivers of all devices of the host under the pods; then only a pod
    /// with a device inside can be left out.
    pub(crate) fn find(
        blockers: &[Problem],
        request: &Request<'_>,
        context: &Context,
    ) -> Result<Self, Refusal> {
        if request.devices.is_empty() && !blockers.iter().any(is_device_in_pod) {
            return Ok(Self::default());
        }
        let records = load(&context.store, &request.selection)?.records();
        let mut inventory = Inventory::named(&request.selection, &request.runtimes, &records)?;
        let states = observe_pods(&mut inventory.pods, &inventory.host);
        Ok(Self::of(&inventory, &states, &request.devices)?)
    }

    /// Those of an observed machine. A pod that cannot be read stays in.
    pub(crate) fn of(
        inventory: &Inventory,
        states: &[Result<NetState, kernel::Error>],
        devices: &[IfName],
    ) -> Result<Self, Problem> {
        let pods = inventory.pods.iter().zip(states);
        let pods = pods.filter_map(|(pod, state)| Some((&pod.info.id, state.as_ref().ok()?)));
        let pods: Vec<(&PodId, &NetState)> = pods.collect();
        among(&pods, devices, &inventory.host.state)
    }

    /// Those of an interrupted window: pods that had a checkpoint and are not in its record.
    pub(crate) fn of_window(pods: &[WindowPod], stored: &Stored) -> Self {
        let ids = stored.checkpoints.iter().map(|(info, _)| &info.id);
        Self::new(ids.filter(|id| !is_of_window(pods, id)))
    }

    fn new<'a>(ids: impl Iterator<Item = &'a PodId>) -> Self {
        Self {
            pods: ids.cloned().collect(),
            lost: BTreeSet::new(),
        }
    }

    pub(crate) fn has(&self, id: &PodId) -> bool {
        self.pods.contains(id)
    }

    /// Whether it was left out until it was lost.
    pub(crate) fn had(&self, id: &PodId) -> bool {
        self.lost.contains(id)
    }

    /// Removes them from what a restore did, but those that it found lost.
    pub(crate) fn leave(&mut self, restored: &mut Restored) {
        let touched = restored.pods.iter();
        let touched = touched.filter(|pod| pod.state != RestoreState::InSync);
        for id in touched.map(|pod| &pod.pod.info.id) {
            if let Some(id) = self.pods.take(id) {
                self.lost.insert(id);
            }
        }
        restored.pods.retain(|pod| !self.has(&pod.pod.info.id));
        restored.problems.retain(|problem| !self.is_about(problem));
    }

    /// Whether a problem is about one of them.
    pub(crate) fn is_about(&self, problem: &Problem) -> bool {
        problem.pod.as_ref().is_some_and(|id| self.has(id))
    }
}

fn is_device_in_pod(problem: &Problem) -> bool {
    matches!(*problem.cause, Cause::Snapshot(SnapshotCause::DeviceInPod))
}

/// The pods with interfaces only on devices of other drivers than those of `devices`.
fn among(
    pods: &[(&PodId, &NetState)],
    devices: &[IfName],
    host: &NetState,
) -> Result<LeftOut, Problem> {
    let below = |state: &NetState| drivers(&stack::under(state, host));
    let reloaded: Drivers = if devices.is_empty() {
        pods.iter().flat_map(|(_, state)| below(state)).collect()
    } else {
        named(devices, host)?
    };
    if !devices.is_empty()
        && pods
            .iter()
            .all(|(_, state)| below(state).is_disjoint(&reloaded))
    {
        return Err(WindowCause::NoPodOnDevice.error(join(devices, ", ")));
    }
    let is_left = |state: &NetState| {
        let mut all = below(state);
        all.extend(inside(state));
        !all.is_empty() && !all.contains(&None) && all.is_disjoint(&reloaded)
    };
    // Where no pod has an interface on a device of the host, the only devices are those inside pods.
    let left = pods
        .iter()
        .filter(|(_, state)| !reloaded.is_empty() && is_left(state));
    Ok(LeftOut::new(left.map(|(id, _)| *id)))
}

/// The drivers of the named devices, or of the devices below a bond or VLAN.
fn named(devices: &[IfName], host: &NetState) -> Result<Drivers, Problem> {
    let mut all = Drivers::new();
    for name in devices {
        let found = drivers(&stack::from(name, host));
        if found.is_empty() {
            return Err(WindowCause::NoSuchDevice.error(name));
        }
        all.extend(found);
    }
    Ok(all)
}

/// The drivers of the devices at the bottom of a stack.
fn drivers(stack: &[StackLink]) -> Drivers {
    let driver = |link: &StackLink| match &link.hardware {
        Some(hardware) => hardware.driver.clone(),
        None => Some(link.kind.clone()),
    };
    stack::bottoms(stack).map(driver).collect()
}

/// The drivers of the devices inside a pod.
fn inside(state: &NetState) -> impl Iterator<Item = Option<String>> {
    let devices = state
        .links
        .iter()
        .filter(|link| link.kind == LinkKind::Physical);
    devices.map(|link| link.hardware.as_ref()?.driver.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::link::{Macvlan, MacvlanMode};
    use crate::model::{Hardware, Link, Parent};

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    fn state(links: Vec<Link>) -> NetState {
        NetState {
            links,
            ..NetState::default()
        }
    }

    fn nic(called: &str, driver: Option<&str>) -> Link {
        let driver = driver.map(str::to_owned);
        Link {
            hardware: Some(Hardware {
                driver,
                ..Hardware::default()
            }),
            ..Link::plain(name(called), LinkKind::Physical)
        }
    }

    fn macvlan(parent: &str) -> Link {
        let kind = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
        Link {
            parent: Some(Parent::Host(name(parent))),
            ..Link::plain(name("eth0"), kind)
        }
    }

    /// `web` is on the i40e `eth0`, `db` on the ixgbe `eth1`, `veth` on no device, and `lost` has no interface.
    fn left_out(others: &[(&str, NetState)], devices: &[&str]) -> Result<Vec<String>, Problem> {
        let host = state(vec![nic("eth0", Some("i40e")), nic("eth1", Some("ixgbe"))]);
        let veth = Link::plain(
            name("eth0"),
            LinkKind::Other {
                driver: "veth".to_owned(),
            },
        );
        let mut pods = vec![
            ("web", state(vec![macvlan("eth0")])),
            ("db", state(vec![macvlan("eth1")])),
            ("veth", state(vec![veth])),
            ("lost", state(Vec::new())),
        ];
        pods.extend(others.iter().cloned());
        let ids: Vec<_> = pods.iter().map(|(id, _)| PodId::from_text(id)).collect();
        let pods: Vec<_> = ids
            .iter()
            .zip(pods.iter().map(|(_, state)| state))
            .collect();
        let devices: Vec<_> = devices.iter().map(|device| name(device)).collect();
        let left = among(&pods, &devices, &host)?;
        Ok(left.pods.iter().map(|id| id.as_str().to_owned()).collect())
    }

    #[test]
    fn by_default_only_a_device_inside_a_pod_can_be_left_out() {
        let router = |driver| ("router", state(vec![nic("eth5", driver)]));
        assert!(left_out(&[], &[]).unwrap().is_empty());
        assert_eq!(left_out(&[router(Some("igc"))], &[]).unwrap(), ["router"]);
        for at_risk in [Some("i40e"), None] {
            assert!(left_out(&[router(at_risk)], &[]).unwrap().is_empty());
        }
    }

    #[test]
    fn a_router_with_an_interface_on_the_host_too_stays_in() {
        let links = vec![nic("eth5", Some("igc")), macvlan("eth1")];
        let both = [("both", state(links))];
        assert!(left_out(&both, &[]).unwrap().is_empty());
        assert_eq!(left_out(&both, &["eth0"]).unwrap(), ["both", "db"]);
    }

    #[test]
    fn a_device_leaves_out_the_pods_on_other_drivers() {
        assert_eq!(left_out(&[], &["eth0"]).unwrap(), ["db"]);
        assert_eq!(left_out(&[], &["eth1"]).unwrap(), ["web"]);
        assert!(left_out(&[], &["eth0", "eth1"]).unwrap().is_empty());
        let missing = left_out(&[], &["eth9"]).unwrap_err();
        assert_eq!(missing.object, "eth9");
    }
}
