//! Which pods a driver reload does not affect: those with interfaces only on devices of other drivers.

use std::collections::BTreeSet;

use crate::model::problem::WindowCause;
use crate::model::text::join;
use crate::model::{
    Hardware, IfName, LinkGraph, LinkKind, NetState, PodId, Problem, StackLink, stack,
};

/// Drivers of devices; `None` for a device whose driver is not known.
pub(crate) type Drivers = BTreeSet<Option<String>>;

/// The drivers of a pod's devices.
#[derive(Debug, Default)]
pub(crate) struct PodDrivers {
    /// Of the host's devices under its links.
    below: Drivers,
    /// Of the devices inside the pod.
    inside: Drivers,
}

impl PodDrivers {
    pub(crate) fn of(pod: &NetState, host: &LinkGraph<'_>) -> Self {
        Self::new(pod, &host.under(&pod.links), host)
    }

    /// Of a pod, with the host's links under it.
    pub(crate) fn new(pod: &NetState, under: &[StackLink], host: &LinkGraph<'_>) -> Self {
        let below = stack::bottoms(under);
        let below = below.flat_map(|link| with_physical(own(link), link.hardware.as_ref(), host));
        let inside = pod.links.iter();
        let inside = inside.filter(|link| link.kind == LinkKind::Physical);
        let inside = inside.flat_map(|link| {
            let device = link.hardware.as_ref();
            let own = device.and_then(|device| device.driver.clone());
            with_physical(own, device, host)
        });
        Self {
            below: below.collect(),
            inside: inside.collect(),
        }
    }

    /// Whether one of its devices is or may be of these drivers. If none is known, that is any device of the host.
    pub(crate) fn may_be_of(&self, reloaded: &Drivers) -> bool {
        let may_be = |driver: &Option<String>| driver.is_none() || reloaded.contains(driver);
        if reloaded.is_empty() {
            return !self.below.is_empty();
        }
        self.below.iter().chain(&self.inside).any(may_be)
    }

    /// Whether it has devices, and none of them is or may be of these drivers.
    fn are_others_than(&self, reloaded: &Drivers) -> bool {
        let all = || self.below.iter().chain(&self.inside);
        all().next().is_some() && all().all(|driver| driver.is_some() && !reloaded.contains(driver))
    }
}

/// The pods that a reload of the drivers of `devices` does not affect. Without `devices`, the drivers of all devices of the host
/// under the pods are reloaded; then only a pod with a device inside can be left out.
pub(crate) fn left_out(
    pods: &[(&PodId, PodDrivers)],
    devices: &[IfName],
    host: &LinkGraph<'_>,
) -> Result<BTreeSet<PodId>, Problem> {
    let mut below = pods.iter().flat_map(|(_, drivers)| &drivers.below);
    let reloaded = reloaded(pods.iter().map(|(_, drivers)| drivers), devices, host)?;
    if !devices.is_empty() && !below.any(|driver| reloaded.contains(driver)) {
        return Err(WindowCause::NoPodOnDevice.error(join(devices, ", ")));
    }
    if reloaded.is_empty() {
        // No pod has an interface on a device of the host: the only devices are those inside pods.
        return Ok(BTreeSet::new());
    }
    let others = pods
        .iter()
        .filter(|(_, drivers)| drivers.are_others_than(&reloaded));
    Ok(others.map(|(id, _)| (*id).clone()).collect())
}

/// The drivers that are reloaded: those of `devices`, or without them those of all devices of the host under the pods.
pub(crate) fn reloaded<'a>(
    pods: impl IntoIterator<Item = &'a PodDrivers>,
    devices: &[IfName],
    host: &LinkGraph<'_>,
) -> Result<Drivers, Problem> {
    if devices.is_empty() {
        let below = pods.into_iter().flat_map(|pod| &pod.below);
        Ok(below.cloned().collect())
    } else {
        named(devices, host)
    }
}

/// The drivers of the named devices, or of the devices below a bond or VLAN.
fn named(devices: &[IfName], host: &LinkGraph<'_>) -> Result<Drivers, Problem> {
    let mut all = Drivers::new();
    for name in devices {
        let under = host.stack(name);
        if under.is_empty() {
            return Err(WindowCause::NoSuchDevice.error(name));
        }
        all.extend(stack::bottoms(&under).map(own));
    }
    Ok(all)
}

/// The devices of the host that go when these drivers are reloaded. If no driver is known, that is every one.
pub(crate) fn devices(reloaded: &Drivers, host: &LinkGraph<'_>) -> BTreeSet<IfName> {
    let mut names = host.devices();
    names.retain(|name| {
        let under = host.stack(name);
        let drivers = under
            .iter()
            .flat_map(|link| with_physical(own(link), link.hardware.as_ref(), host));
        let mut drivers = drivers.peekable();
        reloaded.is_empty() || drivers.any(|driver| driver.is_none() || reloaded.contains(&driver))
    });
    names
}

/// The driver of a device at the bottom of a stack.
fn own(link: &StackLink) -> Option<String> {
    match &link.hardware {
        Some(hardware) => hardware.driver.clone(),
        None => Some(link.kind.clone()),
    }
}

/// A device goes with its own driver, and a virtual function also with that of its physical function, which may be unknown.
fn with_physical(own: Option<String>, device: Option<&Hardware>, host: &LinkGraph<'_>) -> Drivers {
    let is_function = device.is_some_and(|device| device.function.is_some());
    let physical = is_function.then(|| {
        let physical = host.physical(device).first().copied();
        physical.and_then(|link| link.hardware.as_ref()?.driver.clone())
    });
    [own].into_iter().chain(physical).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::nic::FunctionOf;
    use crate::model::net::link::{Macvlan, MacvlanMode};
    use crate::model::{Link, Parent};

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
        let veth = Link::plain(name("eth0"), LinkKind::other("veth"));
        let mut pods = vec![
            ("web", state(vec![macvlan("eth0")])),
            ("db", state(vec![macvlan("eth1")])),
            ("veth", state(vec![veth])),
            ("lost", state(Vec::new())),
        ];
        pods.extend(others.iter().cloned());
        let ids: Vec<_> = pods.iter().map(|(id, _)| PodId::from_text(id)).collect();
        let graph = LinkGraph::new(&host.links);
        let drivers = pods.iter().map(|(_, state)| PodDrivers::of(state, &graph));
        let pods: Vec<_> = ids.iter().zip(drivers).collect();
        let devices: Vec<_> = devices.iter().map(|device| name(device)).collect();
        let left = super::left_out(&pods, &devices, &graph)?;
        Ok(left.iter().map(|id| id.as_str().to_owned()).collect())
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
    fn a_pod_with_a_virtual_function_goes_with_the_driver_of_the_physical_one() {
        let at = |link: Link, bus: &str, of: Option<&str>| {
            let of = of.map(str::to_owned);
            let hardware = link.hardware.clone().unwrap_or_default();
            Link {
                hardware: Some(Hardware {
                    bus: Some(bus.to_owned()),
                    function: of.map(|of| FunctionOf { of, index: 0 }),
                    ..hardware
                }),
                ..link
            }
        };
        let host = state(vec![at(nic("eth0", Some("igb")), "0000:01:00.0", None)]);
        let left_out = |of: Option<&str>| {
            let ids = [PodId::from_text("web"), PodId::from_text("fast")];
            let function = at(nic("net1", Some("igbvf")), "0000:01:10.0", of);
            let states = [state(vec![macvlan("eth0")]), state(vec![function])];
            let graph = LinkGraph::new(&host.links);
            let drivers = states.iter().map(|state| PodDrivers::of(state, &graph));
            let pods: Vec<_> = ids.iter().zip(drivers).collect();
            super::left_out(&pods, &[], &graph).unwrap().len()
        };
        assert_eq!(left_out(Some("0000:01:00.0")), 0);
        // The physical function is in another namespace, or has no network device.
        assert_eq!(left_out(Some("0000:02:00.0")), 0);
        assert_eq!(left_out(None), 1);
    }

    #[test]
    fn a_router_with_an_interface_on_the_host_too_stays_in() {
        let links = vec![nic("eth5", Some("igc")), macvlan("eth1")];
        let both = [("both", state(links))];
        assert!(left_out(&both, &[]).unwrap().is_empty());
        assert_eq!(left_out(&both, &["eth0"]).unwrap(), ["both", "db"]);
    }
}
