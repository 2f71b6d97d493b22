//! Which pods a driver reload does not affect: those with interfaces only on devices of other drivers.

use std::collections::BTreeSet;

use crate::model::net::stack;
use crate::model::problem::WindowCause;
use crate::model::text::join;
use crate::model::{IfName, LinkKind, NetState, PodId, Problem, StackLink};

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
    pub(crate) fn of(pod: &NetState, host: &NetState) -> Self {
        Self::new(pod, &stack::under(pod, host))
    }

    /// Of a pod, with the host's links under it.
    pub(crate) fn new(pod: &NetState, under: &[StackLink]) -> Self {
        let links = pod.links.iter();
        Self {
            below: drivers(under),
            inside: links
                .filter(|link| link.kind == LinkKind::Physical)
                .map(|link| link.hardware.as_ref()?.driver.clone())
                .collect(),
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
    host: &NetState,
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
    host: &NetState,
) -> Result<Drivers, Problem> {
    if devices.is_empty() {
        let below = pods.into_iter().flat_map(|pod| &pod.below);
        Ok(below.cloned().collect())
    } else {
        named(devices, host)
    }
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
    stack::bottoms(stack)
        .map(|link| match &link.hardware {
            Some(hardware) => hardware.driver.clone(),
            None => Some(link.kind.clone()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::net::link::{Macvlan, MacvlanMode};
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
        let drivers = pods.iter().map(|(_, state)| PodDrivers::of(state, &host));
        let pods: Vec<_> = ids.iter().zip(drivers).collect();
        let devices: Vec<_> = devices.iter().map(|device| name(device)).collect();
        let left = super::left_out(&pods, &devices, &host)?;
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
    fn a_router_with_an_interface_on_the_host_too_stays_in() {
        let links = vec![nic("eth5", Some("igc")), macvlan("eth1")];
        let both = [("both", state(links))];
        assert!(left_out(&both, &[]).unwrap().is_empty());
        assert_eq!(left_out(&both, &["eth0"]).unwrap(), ["both", "db"]);
    }
}
