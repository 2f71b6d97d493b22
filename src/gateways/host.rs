//! The gateways of the host itself: without them the pods may work on a node that cannot be logged in to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::question::{Prober, Question, Questions};
use crate::inventory::observe::Host;
use crate::kernel::state;
use crate::model::{IfName, LinkGraph, LinkKind, NetState, NodeState, Route};

/// Kinds of link with a MAC whose neighbours a program or a controller sets: they do not answer ARP.
const TUNNELS: [&str; 7] = [
    "erspan",
    "geneve",
    "gretap",
    "ip6erspan",
    "ip6gretap",
    "tun",
    "vxlan",
];

/// The gateways of the host to ask; `under_pods` and `all_devices` as in [`Scope`].
pub(super) fn questions(
    host: &mut Host,
    node: Option<&NodeState>,
    under_pods: BTreeSet<IfName>,
    all_devices: bool,
) -> Vec<Question> {
    let router = state::router(&mut host.socket, &host.state);
    let scope = Scope {
        now: &host.state,
        recorded: node.map(|node| &node.state),
        under_pods,
        all_devices,
    };
    scope.questions(router.unwrap_or_default())
}

/// What decides which gateways of the host belong to the verdict.
struct Scope<'a> {
    now: &'a NetState,
    recorded: Option<&'a NetState>,
    /// The host's links below the links of the selected pods.
    under_pods: BTreeSet<IfName>,
    /// Every pod is selected: a restore brings back every recorded NIC, and the bonds and VLANs on it.
    all_devices: bool,
}

impl Scope<'_> {
    /// The default gateways, and the gateways on links that a restore brings back: those that the host has now, and
    /// those that it should have by its record.
    fn questions(&self, router: Option<(IpAddr, IfName)>) -> Vec<Question> {
        let links = self.links();
        let mut questions = Questions::new(Prober::Host, self.now, self.recorded);
        let mut add = |route: &Route, name_now: &dyn Fn(&IfName) -> IfName| {
            for (gateway, dev) in route.gateways() {
                let is_wanted = route.is_default() || links.contains(dev);
                if is_wanted && self.has_neighbours(dev) {
                    questions.add(gateway, &name_now(dev), dev, route);
                }
            }
        };
        for route in &self.now.routes {
            add(route, &IfName::clone);
        }
        for route in self.recorded.iter().flat_map(|state| &state.routes) {
            add(route, &|dev| self.name_now(dev));
        }
        questions.add_router(router.filter(|(_, dev)| self.has_neighbours(dev)));
        questions.finish(None)
    }

    /// The links that a restore brings back, by their recorded and their present names.
    fn links(&self) -> BTreeSet<IfName> {
        let mut names = self.under_pods.clone();
        if self.all_devices {
            let recorded = self.recorded.unwrap_or(self.now);
            let devices = recorded
                .links
                .iter()
                .filter(|link| link.kind == LinkKind::Physical);
            names.extend(devices.map(|link| link.name.clone()));
            names = LinkGraph::new(&recorded.links).changed_with(&names);
        }
        let renamed: Vec<_> = names.iter().map(|name| self.name_now(name)).collect();
        names.extend(renamed);
        names
    }

    /// The present name of a recorded link: a driver may give a NIC another one.
    fn name_now(&self, dev: &IfName) -> IfName {
        let recorded = self.recorded.and_then(|state| state.link(dev));
        let hardware = recorded.and_then(|link| link.hardware.as_ref());
        let now = self.now.links.iter().find(|now| {
            let both = hardware.zip(now.hardware.as_ref());
            both.is_some_and(|(then, now)| now.is_same(then))
        });
        now.map_or_else(|| dev.clone(), |link| link.name.clone())
    }

    /// Whether the link finds its gateways by ARP or neighbour discovery. A link that was up when it was recorded counts
    /// as up: if it is down or missing now, the host is cut off there.
    fn has_neighbours(&self, dev: &IfName) -> bool {
        let recorded = self.recorded.and_then(|state| state.link(dev));
        let Some(link) = recorded.or_else(|| self.now.link(dev)) else {
            return false;
        };
        let is_up = link.flags.up || self.now.link(dev).is_some_and(|now| now.flags.up);
        let is_tunnel = TUNNELS.contains(&link.kind.name());
        let has_arp = link.mac.is_some() && !link.flags.noarp;
        is_up && has_arp && !is_tunnel && link.kind != LinkKind::Loopback
    }
}
