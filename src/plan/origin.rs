//! Checkpoints in the origin's format alone: what they leave out is taken from what is there.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::checkpoint::{CniInterface, CniIp, CniRoute};
use crate::model::link::{Flags, Macvlan, MacvlanMode};
use crate::model::route::{Hop, KIND_UNICAST, RouteOf, SCOPE_UNIVERSE, TABLE_MAIN};
use crate::model::{Address, Checkpoint, IfName, Link, LinkKind, NetState, Parent, Route};

/// `RTPROT_BOOT`: what `ip route add` without more says.
const PROTOCOL_BOOT: u8 = 3;
/// `RT_SCOPE_LINK`.
const SCOPE_LINK: u8 = 253;
const ROUTE_METRIC_V6: u32 = 1024;

/// The state that such a checkpoint describes: a macvlan in bridge mode on `parent`, addresses, routes.
///
/// What the format does not know (ifindex, MTU, queue length, sysctls) is whatever `now`, the link that the pod
/// has, says, or else what a new link on `parent` gets. An address or a route that is there counts as it is. `None` when
/// the file names no interface.
#[must_use]
pub fn complete(checkpoint: &Checkpoint, parent: &Link, now: &NetState) -> Option<NetState> {
    let dev = checkpoint.ifname.clone();
    let main = main_interface(checkpoint)?;
    let link = now.link(&dev).cloned().map_or_else(|| fresh(&dev, parent), |now| Link { index: 0, ..now });
    let link = Link { mac: main.mac.or(link.mac), flags: Flags { up: true, ..link.flags }, ..link };
    let ips = &checkpoint.result.ips;
    let as_it_is =
        |wanted: Address| now.addresses.iter().find(|a| a.is_same(&wanted)).cloned().unwrap_or(wanted);
    let addresses = ips.iter().map(|ip| as_it_is(address(&dev, ip.address))).collect();
    let gateway_of = |dst: &IpNet| {
        let is_same_family = |ip: &CniIp| ip.address.addr().is_ipv4() == dst.addr().is_ipv4();
        ips.iter().find_map(|ip| ip.gateway.filter(|_| is_same_family(ip)))
    };
    let route_of = |entry: &CniRoute| route(&dev, entry.dst, entry.gw.or_else(|| gateway_of(&entry.dst)));
    let as_it_is =
        |wanted: Route| now.routes.iter().find(|r| goes_the_same_way(r, &wanted)).cloned().unwrap_or(wanted);
    let routes = checkpoint.result.routes.iter().filter_map(route_of).map(as_it_is).collect();
    Some(NetState { links: vec![link], addresses, routes, ..NetState::default() })
}

/// The container's own interface: a CNI result also lists those that a plugin made on the host.
fn main_interface(checkpoint: &Checkpoint) -> Option<&CniInterface> {
    let interfaces = || checkpoint.result.interfaces.iter();
    let named = || interfaces().filter(|interface| interface.name == checkpoint.ifname);
    named()
        .find(|interface| !interface.sandbox.is_empty())
        .or_else(|| named().next())
        .or_else(|| interfaces().next())
}

/// Same destination and same hops, whoever made it.
fn goes_the_same_way(a: &Route, b: &Route) -> bool {
    match (a, b) {
        (Route::V4(a), Route::V4(b)) => (a.dst, &a.hops, a.table) == (b.dst, &b.hops, b.table),
        (Route::V6(a), Route::V6(b)) => (a.dst, &a.hops, a.table) == (b.dst, &b.hops, b.table),
        _ => false,
    }
}

fn fresh(dev: &IfName, parent: &Link) -> Link {
    let kind = LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge));
    let parent_now = Some(Parent::Host(parent.name.clone()));
    Link { mtu: parent.mtu, parent: parent_now, ..Link::plain(dev.clone(), kind) }
}

fn address(dev: &IfName, net: IpNet) -> Address {
    Address::plain(dev.clone(), net.addr(), net.prefix_len())
}

fn route(dev: &IfName, dst: IpNet, gateway: Option<IpAddr>) -> Option<Route> {
    Some(match (dst, gateway) {
        (IpNet::V4(dst), None) => Route::V4(plain(dev, dst.trunc(), None, None)),
        (IpNet::V4(dst), Some(IpAddr::V4(gw))) => Route::V4(plain(dev, dst.trunc(), Some(gw), None)),
        (IpNet::V6(dst), None) => Route::V6(plain(dev, dst.trunc(), None, Some(ROUTE_METRIC_V6))),
        (IpNet::V6(dst), Some(IpAddr::V6(gw))) => {
            Route::V6(plain(dev, dst.trunc(), Some(gw), Some(ROUTE_METRIC_V6)))
        }
        _ => return None,
    })
}

fn plain<A, N>(dev: &IfName, dst: N, gateway: Option<A>, priority: Option<u32>) -> RouteOf<A, N> {
    RouteOf {
        dst,
        src: None,
        table: TABLE_MAIN,
        protocol: PROTOCOL_BOOT,
        // Only IPv4 has scopes of routes, and IPv6 is told by the metric that it always has.
        scope: if gateway.is_none() && priority.is_none() { SCOPE_LINK } else { SCOPE_UNIVERSE },
        kind: KIND_UNICAST,
        tos: 0,
        priority,
        prefsrc: None,
        hops: vec![Hop { gateway, dev: Some(dev.clone()), onlink: false, weight: 0 }],
        metrics: BTreeMap::new(),
        preference: None,
    }
}
