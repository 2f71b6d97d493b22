//! Which routes of a dump the kernel has made: it makes exactly these again with the addresses and links that are there.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::model::net::route::{KIND_UNICAST, PROTOCOL_KERNEL, RouteKey, SCOPE_LINK, TABLE_MAIN};
use crate::model::{Address, IfName, Link, LinkKind, NetState, Route};

/// `RT_TABLE_LOCAL`.
const TABLE_LOCAL: u32 = 255;
/// `RTN_LOCAL`, `RTN_BROADCAST`, `RTN_ANYCAST`, `RTN_MULTICAST`.
const KIND_LOCAL: u8 = 2;
const KIND_BROADCAST: u8 = 3;
const KIND_ANYCAST: u8 = 4;
const KIND_MULTICAST: u8 = 5;
/// `RT_SCOPE_HOST`.
const SCOPE_HOST: u8 = 254;
/// `IP6_RT_PRIO_ADDRCONF`.
const METRIC: u32 = 256;
/// `fe80::/64` and `ff00::/8`.
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
const GROUPS: Ipv6Addr = Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0);
/// A prefix with fewer addresses has no broadcast address (RFC 3021).
const MAX_BROADCAST_LEN: u8 = 30;

/// What an interface means to the routes of its addresses.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "one for each property")]
pub(crate) struct Device {
    pub is_up: bool,
    pub is_loopback: bool,
    pub is_on_vrf: bool,
    /// Whether the kernel gives it the route for multicast packets once it has carrier, or an address.
    pub has_groups: bool,
}

pub(crate) fn devices(links: &[Link]) -> HashMap<&IfName, Device> {
    let vrfs = links.iter().filter(|link| link.is_vrf());
    let vrfs: HashSet<&IfName> = vrfs.map(|link| &link.name).collect();
    let is_on_vrf = |link: &Link| link.master.as_ref().is_some_and(|name| vrfs.contains(name));
    let devices = links.iter().map(|link| {
        let is_loopback = link.kind == LinkKind::Loopback;
        let has_groups = link.flags.up && link.mac.is_some() && !is_loopback;
        let device = Device {
            is_up: link.flags.up,
            is_loopback,
            is_on_vrf: is_on_vrf(link),
            has_groups,
        };
        (&link.name, device)
    });
    devices.collect()
}

/// The routes that the kernel makes, each as [`plain`] returns it; none where no route says that the kernel made it.
pub(crate) struct OwnRoutes<'a> {
    routes: HashSet<Route>,
    devices: &'a HashMap<&'a IfName, Device>,
}

impl<'a> OwnRoutes<'a> {
    /// To be used for the routes `of`.
    pub(crate) fn new<'r>(
        state: &NetState,
        devices: &'a HashMap<&'a IfName, Device>,
        mut of: impl Iterator<Item = &'r Route>,
    ) -> Self {
        let mut routes = HashSet::new();
        if !of.any(|route| route.nature().2 == PROTOCOL_KERNEL) {
            return Self { routes, devices };
        }
        let mut link_local = HashSet::new();
        for address in &state.addresses {
            let device = devices.get(&address.dev);
            let is_loopback = device.is_some_and(|device| device.is_loopback);
            routes.extend(address.connected_route().map(plain));
            routes.extend(in_local_table(address, is_loopback));
            routes.extend(to_peer(address));
            if is_link_local(address.local) {
                link_local.insert(&address.dev);
            }
        }
        for dev in devices.keys() {
            for kind in [KIND_MULTICAST, KIND_UNICAST] {
                routes.extend(groups(dev).map(|route| Route { kind, ..route }));
            }
            // Without a MAC to derive an address from, the kernel adds the route alone.
            if !link_local.contains(*dev) {
                routes.extend(ipv6(LINK_LOCAL, 64, dev, METRIC));
            }
        }
        Self { routes, devices }
    }

    /// The places with several routes: the kernel uses the first, and which that is depends on the order in which addresses came.
    pub(crate) fn of_shared_places(routes: &[Route]) -> HashSet<RouteKey> {
        let mut seen = HashSet::new();
        let mut shared = HashSet::new();
        for route in routes.iter().filter(|route| has_order(route)) {
            if !seen.insert(route.place()) {
                shared.insert(route.place());
            }
        }
        shared
    }

    /// Whether the kernel has made the route, and makes it again.
    pub(crate) fn has(&self, route: &Route) -> bool {
        let (kind, _, protocol) = route.nature();
        let devs = route.devs();
        if protocol != PROTOCOL_KERNEL {
            return false;
        }
        let is_of_socket = kind == KIND_ANYCAST && route.destination().addr().is_ipv6();
        // The route of IPv6 that says that there is no route, and one of a link that has just gone.
        let is_last = route.priority == Some(u32::MAX);
        let is_gone = kind == KIND_UNICAST && devs.is_empty() && route.nexthop.is_none();
        if is_of_socket || is_last || is_gone {
            return true;
        }
        let is_on_vrf = |dev: &&IfName| self.devices.get(dev).is_some_and(|one| one.is_on_vrf);
        self.routes
            .contains(&plain(in_usual_table(route, devs.iter().any(is_on_vrf))))
    }
}

/// Whether its order among those in its place counts: the sender of a packet to a link-local address names the link.
fn has_order(route: &Route) -> bool {
    let is_unicast = route.kind == KIND_UNICAST && !is_link_local(route.dst.addr());
    !route.is_ipv6() || is_unicast || route.kind == KIND_MULTICAST
}

/// The connected route that the kernel makes for the peer of an IPv6 address, whatever its flags.
fn to_peer(address: &Address) -> Option<Route> {
    let Some(IpAddr::V6(peer)) = address.peer else {
        return None;
    };
    let metric = address.metric.unwrap_or(METRIC);
    ipv6(peer, 128, &address.dev, metric)
}

/// The route for the multicast packets of IPv6 on a link.
pub(crate) fn groups(dev: &IfName) -> Option<Route> {
    let route = ipv6(GROUPS, 8, dev, METRIC)?;
    Some(Route {
        table: TABLE_LOCAL,
        kind: KIND_MULTICAST,
        ..route
    })
}

/// Whether it lets packets for an address in.
pub(crate) fn is_to_address(route: &Route) -> bool {
    route.nature() == (KIND_LOCAL, TABLE_LOCAL, PROTOCOL_KERNEL)
}

fn ipv6(dst: Ipv6Addr, len: u8, dev: &IfName, metric: u32) -> Option<Route> {
    let dst = Ipv6Net::new(dst, len).ok()?;
    Some(Route {
        protocol: PROTOCOL_KERNEL,
        priority: Some(metric),
        ..Route::plain(dst, dev)
    })
}

/// The routes of an address in the table `local` (`fib_add_ifaddr`, `addrconf_f6i_alloc`).
fn in_local_table(address: &Address, is_loopback: bool) -> Vec<Route> {
    let dev = &address.dev;
    match (address.local, address.subnet()) {
        (IpAddr::V6(local), _) => {
            let route = ipv6(local, 128, dev, 0).map(|route| Route {
                table: TABLE_LOCAL,
                kind: KIND_LOCAL,
                ..route
            });
            route.into_iter().collect()
        }
        (IpAddr::V4(local), Some(IpNet::V4(subnet))) => {
            let one = |ip: Ipv4Addr, kind, scope| in_local_table4(ip.into(), dev, kind, scope);
            let mut routes = vec![one(local, KIND_LOCAL, SCOPE_HOST)];
            let broadcast = |ip| one(ip, KIND_BROADCAST, SCOPE_LINK);
            routes.extend(address.broadcast.map(broadcast));
            if subnet.prefix_len() <= MAX_BROADCAST_LEN {
                // Linux before 5.14 adds the first address too.
                routes.extend([subnet.broadcast(), subnet.network()].map(broadcast));
            }
            if is_loopback {
                routes.push(in_local_table4(subnet, dev, KIND_LOCAL, SCOPE_HOST));
            }
            routes
        }
        (IpAddr::V4(_), _) => Vec::new(),
    }
}

fn in_local_table4(dst: Ipv4Net, dev: &IfName, kind: u8, scope: u8) -> Route {
    Route {
        table: TABLE_LOCAL,
        protocol: PROTOCOL_KERNEL,
        kind,
        scope,
        ..Route::plain(dst, dev)
    }
}

/// The route without what the kernel decides at the time: a lifetime of IPv6, and in the table `local` the source, which is the
/// primary address of the subnet.
pub(crate) fn plain(route: Route) -> Route {
    let has_source = route.is_ipv6() || route.table != TABLE_LOCAL;
    Route {
        prefsrc: route.prefsrc.filter(|_| has_source),
        expires: route.expires.filter(|_| !route.is_ipv6()),
        ..route
    }
}

/// The route, if it is of a VRF, in the table in which it would be without it.
fn in_usual_table(route: &Route, is_on_vrf: bool) -> Route {
    let mut route = route.clone();
    if is_on_vrf && ![TABLE_MAIN, TABLE_LOCAL].contains(&route.table) {
        let is_usual = route.kind == KIND_UNICAST && !route.dst.addr().is_multicast();
        route.table = if is_usual { TABLE_MAIN } else { TABLE_LOCAL };
    }
    route
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}
