//! Which routes of a dump are the kernel's own, and which of these the addresses lack.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::IpAddr;

use crate::kernel::route::advertised::{self, AdvertisedRoutes};
use crate::model::net::address::Maker;
use crate::model::net::route::PROTOCOL_KERNEL;
use crate::model::net::route::own::{self, Device, OwnRoutes, devices, plain};
use crate::model::{Address, IfName, NetState, Route};

/// Puts all routes but those that come with addresses and links into the state, of these only those that share a place with
/// others, and marks the addresses that lack routes of theirs. `advertised` reads which routes the kernel has from routers.
pub(crate) fn separate(
    state: &mut NetState,
    routes: Vec<Route>,
    advertised: impl FnOnce() -> io::Result<AdvertisedRoutes>,
) -> io::Result<()> {
    let devices = devices(&state.links);
    let kernels = OwnRoutes::new(state, &devices, routes.iter());
    let shared = OwnRoutes::of_shared_places(&routes);
    let (mut own, mut others) = (HashSet::new(), Vec::new());
    for route in routes {
        match (kernels.has(&route), shared.contains(&route.place())) {
            (true, false) => drop(own.insert(plain(route))),
            (is_own, _) => {
                own.extend(is_own.then(|| plain(route.clone())));
                others.push(route);
            }
        }
    }
    mark(&mut state.addresses, &devices, &own);
    let advertised = if others.iter().any(advertised::may_be) {
        advertised()?
    } else {
        AdvertisedRoutes::default()
    };
    (state.advertised, state.routes) = others.into_iter().partition(|route| advertised.has(route));
    Ok(())
}

/// Marks the addresses that lack a route that comes with them.
fn mark(addresses: &mut [Address], devices: &HashMap<&IfName, Device>, own: &HashSet<Route>) {
    let local = own.iter().filter(|route| own::is_to_address(route));
    let local: HashSet<IpAddr> = local.map(|route| route.destination().addr()).collect();
    let with_groups = devices.iter().filter(|(_, device)| device.has_groups);
    let lacking: HashSet<&IfName> = with_groups
        .filter(|(dev, _)| own::groups(dev).is_some_and(|route| !own.contains(&route)))
        .map(|(dev, _)| *dev)
        .collect();
    for address in addresses {
        let route = address.connected_route().map(plain);
        let lacks_route = route.is_some_and(|route| !own.contains(&route));
        let is_in_use = address.local.is_ipv4() || !address.is_unusable();
        let lacks_groups = address.local.is_ipv6() && lacking.contains(&address.dev);
        let lacks_local = lacks_groups || (is_in_use && !local.contains(&address.local));
        let is_judged = is_routed(address, devices);
        address.without_route = is_judged && lacks_route;
        address.without_local = is_judged && lacks_local;
    }
}

/// What may be wrong in a reading because something changed meanwhile: addresses that lack a route that comes with them, and
/// routes that only say that the kernel has made them.
pub(crate) fn doubtful(state: &NetState) -> (Vec<Address>, Vec<Route>) {
    let addresses = state.addresses.iter();
    let lacking = addresses.filter(|address| address.without_route || address.without_local);
    let routes = state.routes.iter();
    let routes = routes.filter(|route| route.nature().2 == PROTOCOL_KERNEL);
    (lacking.cloned().collect(), routes.cloned().collect())
}

/// Whether the kernel has the routes of the address in the tables `main` and `local`. Whether a router's prefix is on-link,
/// the router decides.
fn is_routed(address: &Address, devices: &HashMap<&IfName, Device>) -> bool {
    let device = devices.get(&address.dev);
    address.maker != Maker::Network
        && device.is_some_and(|device| device.is_up && !device.is_loopback && !device.is_on_vrf)
}
