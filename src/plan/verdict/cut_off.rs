//! Whether a pod reaches nothing, by its present state and the host's: the one rule for pods of which no good record shows what they
//! should have.
//!
//! A pod is cut off when none of its links on the host's can carry a packet to another machine. What does not stand on the host's links is
//! not judged: a loopback device alone, tunnels, a tap. Neither is what a pod forwards without an address of its own.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::model::net::route::KIND_UNICAST;
use crate::model::net::traffic::ObjectKind;
use crate::model::{
    Address, CutOff, CutOffCause, HostSide, IfName, IpFamily, Link, LinkFault, LinkGraph, LinkKind,
    NetState, Parent, Route, Tie,
};

/// Why this pod reaches nothing; `None` where it may reach something, or is not judged.
#[must_use]
pub fn cut_off(pod: &NetState, host: &HostSide<'_>) -> Option<CutOff> {
    let graph = LinkGraph::new(&pod.links);
    if pod.links.iter().any(|link| is_other_way(link, &graph)) {
        return None;
    }
    let uplinks: Vec<&Link> = pod.links.iter().filter(|link| is_on_host(link)).collect();
    let (broken, sound): (Vec<_>, Vec<_>) = uplinks
        .into_iter()
        .map(|link| (link, host.fault(link, pod)))
        .partition(|(_, fault)| fault.is_some());
    let Some((first, _)) = sound.first() else {
        let (link, fault) = broken.into_iter().next()?;
        return Some(CutOff::new(link, fault?));
    };
    let sound: Vec<&Link> = sound.iter().map(|(link, _)| *link).collect();
    let out = graph.all_above(sound.iter().map(|link| &link.name));
    let why = Ways { pod, out }.missing(&sound, &graph)?;
    Some(CutOff::new(first, why))
}

impl CutOff {
    fn new(link: &Link, why: CutOffCause) -> Self {
        let link = link.title();
        Self { link, why }
    }
}

/// Whether a link of a pod stands on the host: on a link of it, or as the other end of one, or as a device.
fn is_on_host(link: &Link) -> bool {
    link.is_lost_with_host() || matches!(link.peer, Some(Parent::Host(_)))
}

/// Whether a pod has a way that does not stand on the host's links: a tunnel, a tap, a link to another pod.
fn is_other_way(link: &Link, graph: &LinkGraph<'_>) -> bool {
    let is_local = matches!(link.kind.name(), "dummy" | "ifb" | "nlmon" | "vcan")
        || link.takes_ports()
        || matches!(link.kind, LinkKind::Loopback | LinkKind::Bond(_))
        || matches!(link.peer, Some(Parent::Own(_)));
    link.flags.up && !is_local && !is_on_host(link) && graph.below(&link.name).is_empty()
}

/// What leads out of a pod.
struct Ways<'a> {
    pod: &'a NetState,
    /// Its links that stand on the host and work, and those above them.
    out: BTreeSet<IfName>,
}

impl Ways<'_> {
    /// What its `sound` links lack.
    fn missing(&self, sound: &[&Link], graph: &LinkGraph<'_>) -> Option<CutOffCause> {
        if sound.iter().any(|link| is_steered(link)) || self.is_switch(graph) {
            return None;
        }
        let addresses: Vec<_> = self
            .pod
            .addresses
            .iter()
            .filter(|one| can_send(one))
            .collect();
        let is_out = |dev: &IfName| self.out.contains(dev);
        let connects = |one: &&Address| {
            let is_wide = !one.is_of_one_host() && !one.has_no_route();
            is_out(&one.dev) && (is_wide || one.peer.is_some())
        };
        let has_route = |family: Option<IpFamily>| {
            let routes = self.pod.routes.iter().chain(&self.pod.advertised);
            let mut routes = routes.filter(|one| family.is_none_or(|of| one.family() == of));
            routes.any(|route| leads_out(route) && route.devs().into_iter().any(is_out))
        };
        let family = |one: &&Address| IpFamily::of(one.local.is_ipv4());
        match addresses.as_slice() {
            // A router needs no address of its own.
            [] if sound.len() > 1 && has_route(None) => None,
            [] => Some(CutOffCause::NoAddress),
            all if all.iter().any(connects) => None,
            all if all.iter().any(|one| has_route(Some(family(one)))) => None,
            _ => Some(CutOffCause::NoRoute),
        }
    }

    /// Whether the pod is a switch between its links.
    fn is_switch(&self, graph: &LinkGraph<'_>) -> bool {
        let is_up = |name: &IfName| graph.link(name).is_some_and(|port| port.flags.up);
        let ports = |switch: &Link| {
            let below = graph.below(&switch.name).iter();
            below.filter(|(_, port)| is_up(port)).count()
        };
        let switches = self.out.iter().filter_map(|name| graph.link(name));
        let mut switches = switches.filter(|link| link.is_switch());
        switches.any(|switch| ports(switch) > 1)
    }
}

/// Whether a program or a filter takes the packets of a link, or they are for a program that reads them all, or a virtual machine.
fn is_steered(link: &Link) -> bool {
    let mut objects = link.traffic.objects.iter();
    let is_tap = matches!(link.kind, LinkKind::Macvtap(_)) || link.kind.name() == "ipvtap";
    is_tap
        || link.flags.promisc
        || objects.any(|one| one.object == ObjectKind::Filter)
        || link.traffic.lost.iter().any(|one| one.is_program)
}

/// Whether it can be the source of packets to another machine; a link-local address of IPv6 comes with every link.
fn can_send(address: &Address) -> bool {
    let ip = address.local;
    let is_link_local = matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    let is_local = ip.is_loopback() || ip.is_multicast() || ip.is_unspecified();
    let is_unusable = address.has_failed_detection() || address.without_local;
    !is_local && !is_link_local && !is_unusable
}

/// Whether a route leads to other machines than by the addresses that come with every link.
fn leads_out(route: &Route) -> bool {
    let to = route.destination();
    let is_link_local = matches!(to.addr(), IpAddr::V6(ip) if ip.is_unicast_link_local());
    route.nature().0 == KIND_UNICAST && !to.addr().is_multicast() && !is_link_local
}

impl<'a> HostSide<'a> {
    /// Why a link of a pod carries no packet.
    fn fault(&self, link: &Link, pod: &NetState) -> Option<CutOffCause> {
        let own = LinkFault::of(Some(link));
        if own == Some(LinkFault::Down) {
            return own.map(CutOffCause::Link);
        }
        let below = match (&link.parent, &link.peer) {
            (Some(Parent::Host(parent)), _) => self.below(parent),
            (_, Some(Parent::Host(end))) => self.behind(end, link, pod),
            _ => None,
        };
        below.or(own.map(CutOffCause::Link))
    }

    /// The lowest link that does not work, of this one and those that it stands on.
    fn below(&self, name: &IfName) -> Option<CutOffCause> {
        let mut names = vec![name];
        // More than the kernel nests means a loop.
        while let Some(lower) = self
            .parent_of(names[names.len() - 1])
            .filter(|_| names.len() < 9)
        {
            names.push(lower);
        }
        let fault = |name: &&IfName| LinkFault::of(self.graph.link(name));
        let lowest = names
            .into_iter()
            .rev()
            .find_map(|name| Some((name, fault(&name)?)));
        lowest.map(|(name, fault)| below(name, fault))
    }

    fn parent_of(&self, name: &IfName) -> Option<&'a IfName> {
        let below = self.graph.below(name).iter();
        let mut parents = below.filter(|(tie, _)| *tie == Tie::Child);
        parents.next().map(|(_, parent)| *parent)
    }

    /// What stops the packets of a link whose other end on the host is `end`.
    fn behind(&self, end: &IfName, link: &Link, pod: &NetState) -> Option<CutOffCause> {
        let Some(own) = self.graph.link(end) else {
            return Some(below(end, LinkFault::Missing));
        };
        if !own.flags.up {
            return Some(below(end, LinkFault::Down));
        }
        let Some(master) = &own.master else {
            return (!self.is_used(own)).then(|| CutOffCause::Loose(end.clone()));
        };
        let master = self.graph.link(master).filter(|link| link.is_bridge())?;
        if !master.flags.up {
            return Some(below(&master.name, LinkFault::Down));
        }
        // A gateway beyond the bridge needs one of its uplinks.
        let gateways: BTreeSet<IpAddr> = gateways(link, pod).collect();
        let mut addresses = self.state.addresses.iter();
        let is_home = addresses.any(|one| gateways.contains(&one.local));
        let is_beyond = !is_home && !gateways.is_empty();
        let ports = self.graph.below(&master.name).iter();
        let ports = ports.filter_map(|(_, port)| self.graph.link(port));
        let uplinks = ports.filter(|port| is_beyond && port.can_be_uplink());
        let faults: Option<Vec<_>> = uplinks
            .map(|port| Some((&port.name, LinkFault::of(Some(port))?)))
            .collect();
        let (port, fault) = faults?.into_iter().next()?;
        Some(below(port, fault))
    }

    /// Whether the host sends packets to this link, or a program takes those that come from it.
    fn is_used(&self, end: &Link) -> bool {
        let mut routes = self.state.routes.iter();
        end.flags.promisc
            || !end.traffic.is_empty()
            || routes.any(|route| route.devs().contains(&&end.name))
            || self.state.addresses_of(&end.name).any(can_send)
    }
}

fn below(link: &IfName, fault: LinkFault) -> CutOffCause {
    let link = link.clone();
    CutOffCause::Below { link, fault }
}

/// The gateways of a pod beyond this link of it.
fn gateways<'p>(link: &'p Link, pod: &'p NetState) -> impl Iterator<Item = IpAddr> + 'p {
    let routes = pod.routes.iter().chain(&pod.advertised);
    let all = routes.flat_map(Route::gateways);
    all.filter(|(_, dev)| **dev == link.name)
        .map(|(gateway, _)| gateway)
}
