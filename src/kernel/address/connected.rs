//! Which routes of a dump are the kernel's own, and which connected routes it lacks.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::net::address::Maker;
use crate::model::net::route::{KIND_UNICAST, PROTOCOL_KERNEL, PROTOCOL_RA};
use crate::model::{Address, IfName, Link, LinkKind, NetState, Route};

/// `RT_TABLE_LOCAL`.
const TABLE_LOCAL: u32 = 255;
/// `RTN_LOCAL`.
const KIND_LOCAL: u8 = 2;

/// Destination and interface of connected routes.
type Connections<'a> = HashSet<(IpNet, &'a IfName)>;

/// Puts all routes but the kernel's own ones into the state, and marks the addresses that lack routes of theirs.
pub(crate) fn separate(state: &mut NetState, routes: Vec<Route>) {
    let present: HashSet<WithMetric<'_>> = routes.iter().filter_map(with_metric).collect();
    let local = routes
        .iter()
        .filter(|route| route.nature() == (KIND_LOCAL, TABLE_LOCAL, PROTOCOL_KERNEL));
    let local: HashSet<IpAddr> = local.map(|route| route.destination().addr()).collect();
    let devices = devices(&state.links);
    let addresses = state.addresses.iter();
    let lacking: Vec<(bool, bool)> = addresses
        .map(|address| {
            let is_judged = is_routed(address, &devices);
            let lacks_local = address.local.is_ipv4() && !local.contains(&address.local);
            let lacks_route = lacks_route(address, &present);
            (is_judged && lacks_route, is_judged && lacks_local)
        })
        .collect();
    for (address, lacking) in state.addresses.iter_mut().zip(lacking) {
        (address.without_route, address.without_local) = lacking;
    }
    let addresses = state.addresses.iter();
    let explained: Connections<'_> = addresses
        .filter_map(|address| Some((address.subnet()?, &address.dev)))
        .collect();
    state.routes = routes
        .into_iter()
        .filter(|route| !is_own(route, &devices, &explained))
        .collect();
}

/// The addresses that lack a route that comes with them.
pub(crate) fn lacking(state: &NetState) -> Vec<Address> {
    let addresses = state.addresses.iter();
    let lacking = addresses.filter(|address| address.without_route || address.without_local);
    lacking.cloned().collect()
}

/// What decides about the routes of an interface's addresses.
#[derive(Clone, Copy)]
struct Device {
    /// Up, and not the loopback device.
    is_routed: bool,
    is_on_vrf: bool,
}

fn devices(links: &[Link]) -> HashMap<&IfName, Device> {
    let vrfs = links.iter().filter(|link| link.is_vrf());
    let vrfs: HashSet<&IfName> = vrfs.map(|link| &link.name).collect();
    let is_on_vrf = |link: &Link| link.master.as_ref().is_some_and(|name| vrfs.contains(name));
    let devices = links.iter().map(|link| {
        let device = Device {
            is_routed: link.flags.up && link.kind != LinkKind::Loopback,
            is_on_vrf: is_on_vrf(link),
        };
        (&link.name, device)
    });
    devices.collect()
}

/// Whether the kernel has the routes of the address in the tables `main` and `local`. Whether a router's prefix is on-link,
/// the router decides.
fn is_routed(address: &Address, devices: &HashMap<&IfName, Device>) -> bool {
    let device = devices.get(&address.dev);
    address.maker != Maker::Network
        && device.is_some_and(|device| device.is_routed && !device.is_on_vrf)
}

/// A connected route with its metric: two addresses of one subnet may have one each.
type WithMetric<'a> = (IpNet, &'a IfName, Option<u32>);

fn with_metric(route: &Route) -> Option<WithMetric<'_>> {
    let (net, dev) = route.connects()?;
    Some((net, dev, route.metric()))
}

fn lacks_route(address: &Address, present: &HashSet<WithMetric<'_>>) -> bool {
    let route = address.connected_route();
    let route = route.as_ref().and_then(with_metric);
    route.is_some_and(|route| !present.contains(&route))
}

/// Whether the route is the kernel's own: added for an address, a link with IPv6 or a router. A connected route that was moved
/// to another table is none of these.
fn is_own(route: &Route, devices: &HashMap<&IfName, Device>, explained: &Connections<'_>) -> bool {
    let (kind, table, protocol) = route.nature();
    if protocol != PROTOCOL_KERNEL {
        return protocol == PROTOCOL_RA;
    }
    kind != KIND_UNICAST
        || table == TABLE_LOCAL
        || route.connects().is_some_and(|connects| {
            explained.contains(&connects) || is_of_ipv6(connects.0) || route.expires().is_some()
        })
        || route
            .devs()
            .into_iter()
            .any(|dev| devices.get(dev).is_some_and(|device| device.is_on_vrf))
}

fn is_of_ipv6(net: IpNet) -> bool {
    match net {
        IpNet::V4(_) => false,
        IpNet::V6(net) => net.addr().is_unicast_link_local() || net.addr().is_multicast(),
    }
}
