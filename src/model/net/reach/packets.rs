//! The packets of which the ways are recorded. Pure.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

use super::destinations::Destinations;
use crate::model::net::address::{DADFAILED, TENTATIVE};
use crate::model::net::route::{KIND_UNICAST, TABLE_MAIN};
use crate::model::net::way::{Packet, PacketWay, is_link_local};
use crate::model::{Address, IfName, Link, NetState, Parent, Route};

/// How many packets of a namespace are looked up: a pod may have any number of routes and addresses.
const MOST: usize = 128;
/// How many destinations of a family, and how many senders.
const MOST_OF_A_KIND: usize = 16;

/// The packets whose ways show what a namespace reaches: to its own addresses and permanent neighbours; to each gateway, to an address in the
/// destination of each route and rule and in each subnet, the widest first; and to those from each of its addresses and with each mark that
/// a rule names, and from senders that are bound to a VRF.
pub(crate) fn packets(state: &NetState) -> Vec<Packet> {
    const FAMILIES: [bool; 2] = [true, false];
    let destinations = Destinations::of([state].into_iter());
    let own = FAMILIES.map(|is_ipv4| own(state, is_ipv4));
    let mut all: Vec<Packet> = own.into_iter().flatten().chain(to_fixed(state)).collect();
    // In turn, so that the limit does not cut off a whole family.
    let sent = FAMILIES.map(|is_ipv4| sent(state, &destinations, is_ipv4).into_iter().enumerate());
    let mut sent: Vec<(usize, Packet)> = sent.into_iter().flatten().collect();
    sent.sort_by_key(|(place, _)| *place);
    all.extend(sent.into_iter().map(|(_, packet)| packet));
    let mut seen = HashSet::new();
    all.retain(|one: &Packet| seen.insert(one.clone()));
    all.truncate(MOST);
    all
}

/// The packets of a family to other machines, first those that only their destination sends.
fn sent(state: &NetState, destinations: &Destinations, is_ipv4: bool) -> Vec<Packet> {
    let targets = targets(state, destinations, is_ipv4);
    let senders = senders(state, is_ipv4);
    let to = |senders: &[Packet]| {
        let each = targets.iter().flat_map(|(to, bound)| {
            senders.iter().map(|sender| Packet {
                to: *to,
                bound: bound.clone().or_else(|| sender.bound.clone()),
                ..sender.clone()
            })
        });
        each.collect::<Vec<_>>()
    };
    [to(&senders[..1]), to(&senders[1..])].concat()
}

/// The ways of packets from the own addresses, where a rule asks for the source now and none did: their destination alone decided.
pub(super) fn from_sources(recorded: &NetState, now: &NetState) -> Vec<PacketWay> {
    let mut all = Vec::new();
    let of_family = |is_ipv4: &bool| by_source(now, *is_ipv4) && !by_source(recorded, *is_ipv4);
    for is_ipv4 in [true, false].into_iter().filter(of_family) {
        let plain = recorded.ways.iter().filter_map(|way| {
            let to = way.packet.to;
            let is_plain = to.is_ipv4() == is_ipv4 && way.packet == Packet::plain(to);
            let (dev, _) = way.exit.hop().filter(|_| is_plain)?;
            Some((way, dev))
        });
        // Other links have addresses that none of the kernel's routes leads out from, such as 127.0.0.1.
        all.extend(plain.flat_map(|(way, dev)| {
            let sources = usable(recorded, is_ipv4).filter(|one| one.dev == *dev);
            let from = |from: &Address| PacketWay {
                packet: Packet {
                    from: Some(from.local),
                    ..way.packet.clone()
                },
                exit: way.exit.clone(),
            };
            sources.take(MOST_OF_A_KIND).map(from).collect::<Vec<_>>()
        }));
    }
    all.truncate(MOST);
    all
}

/// Whether a rule asks for the source of packets of a family.
fn by_source(state: &NetState, is_ipv4: bool) -> bool {
    let mut rules = state.rules.iter().filter(|rule| rule.ipv6 != is_ipv4);
    rules.any(|rule| rule.from.is_some() || rule.invert)
}

/// How packets of a family are sent; their destination is not set.
fn senders(state: &NetState, is_ipv4: bool) -> Vec<Packet> {
    let plain = Packet::plain([0, 0, 0, 0].into());
    let rules = || state.rules.iter().filter(|rule| rule.ipv6 != is_ipv4);
    let sources = if by_source(state, is_ipv4) {
        MOST_OF_A_KIND
    } else {
        0
    };
    let sources = usable(state, is_ipv4).take(sources);
    let sources = sources.map(|one| Packet {
        from: Some(one.local),
        ..plain.clone()
    });
    let marks: BTreeSet<u32> = rules().filter_map(|rule| rule.fwmark).collect();
    let marks = marks.into_iter().take(MOST_OF_A_KIND).map(|mark| Packet {
        mark: Some(mark),
        ..plain.clone()
    });
    let vrfs = state.links.iter().filter(|link| link.is_vrf());
    let bound = vrfs.take(MOST_OF_A_KIND).map(|link| Packet {
        bound: Some(link.name.clone()),
        ..plain.clone()
    });
    let others = sources.chain(marks).chain(bound);
    [plain.clone()].into_iter().chain(others).collect()
}

/// The destinations of a family, each with the link that a link-local one is on.
fn targets(
    state: &NetState,
    destinations: &Destinations,
    is_ipv4: bool,
) -> Vec<(IpAddr, Option<IfName>)> {
    let ends = state.links.iter();
    let ends = ends.filter(|link| link.is_pair() && link.peer == Some(Parent::Elsewhere));
    let ends: BTreeSet<&IfName> = ends.map(|link| &link.name).collect();
    let routes = state.routes.iter();
    let mut routes: Vec<&Route> = routes
        .filter(|route| route.destination().addr().is_ipv4() == is_ipv4)
        .filter(|route| route.nature().0 == KIND_UNICAST)
        .collect();
    // The host's ends of pairs come and go with the pods.
    let is_of_pod = |route: &Route| route.devs().iter().any(|dev| ends.contains(*dev));
    routes.sort_by_key(|route| (is_of_pod(route), route.destination().prefix_len()));
    routes.truncate(MOST_OF_A_KIND);
    let gateways = routes.iter().flat_map(|route| route.gateways());
    let gateways = gateways.filter(|(ip, _)| ip.is_ipv4() == is_ipv4);
    let gateways = gateways.map(|(ip, dev)| (ip, is_link_local(ip).then(|| dev.clone())));
    let unspecified = [0, 0, 0, 0].into();
    let behind = routes.iter().filter_map(|route| {
        let gateway = route.gateways().first().map_or(unspecified, |(ip, _)| *ip);
        let (net, (_, table, _)) = (route.destination(), route.nature());
        Some((destinations.address(net, table, gateway)?, None))
    });
    let rules = state.rules.iter().filter(|rule| rule.ipv6 != is_ipv4);
    let of_rules = rules.take(MOST_OF_A_KIND).filter_map(|rule| {
        let (to, length) = rule.to?;
        let net = IpNet::new(to, length).ok()?.trunc();
        Some((destinations.address(net, rule.table, unspecified)?, None))
    });
    let subnets = usable(state, is_ipv4).take(MOST_OF_A_KIND);
    let subnets = subnets.filter_map(|one| {
        let net = one
            .subnet()
            .filter(|net| net.prefix_len() < net.max_prefix_len())?;
        Some((destinations.address(net, TABLE_MAIN, one.local)?, None))
    });
    let all = behind.chain(of_rules).chain(subnets).chain(gateways);
    let mut all: Vec<_> = all.collect();
    all.retain(|(ip, dev)| !is_link_local(*ip) || dev.is_some());
    all
}

/// To the addresses of the namespace itself.
fn own(state: &NetState, is_ipv4: bool) -> impl Iterator<Item = Packet> {
    let own = usable(state, is_ipv4).take(MOST_OF_A_KIND);
    own.map(|one| Packet::plain(one.local))
}

/// To permanent neighbours; a program keeps those of an overlay up to date.
fn to_fixed(state: &NetState) -> impl Iterator<Item = Packet> {
    let fixed = state.neighbours.iter().filter(|one| {
        let link = state.link(&one.dev);
        let is_overlay = link.is_none_or(Link::is_overlay);
        !one.proxy && !one.dst.is_multicast() && !is_overlay
    });
    fixed
        .take(MOST_OF_A_KIND)
        .map(|one| Packet::to_neighbour(one.dst, &one.dev))
}

/// The addresses of a family that packets can have as their source, on links that are up.
fn usable(state: &NetState, is_ipv4: bool) -> impl Iterator<Item = &Address> {
    let up = state.links.iter().filter(|link: &&Link| link.flags.up);
    let up: BTreeSet<&IfName> = up.map(|link| &link.name).collect();
    state.addresses.iter().filter(move |one| {
        let is_usable = is_ipv4 || one.flags & (TENTATIVE | DADFAILED) == 0;
        let is_own = one.local.is_ipv4() == is_ipv4 && !one.local.is_multicast();
        is_own && is_usable && up.contains(&one.dev) && !is_link_local(one.local)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LinkKind, Rule};

    #[test]
    fn the_limit_cuts_off_no_address_and_no_family() {
        let dev: IfName = "eth0".parse().unwrap();
        let address = |text: String| Address::plain(dev.clone(), text.parse().unwrap(), 24);
        let mut state = NetState::default();
        let mut link = Link::plain(dev.clone(), LinkKind::Physical);
        link.flags.up = true;
        state.links.push(link);
        for at in 1..=8 {
            state.addresses.push(address(format!("10.0.{at}.1")));
            state.addresses.push(address(format!("fd00:{at}::1")));
            for text in [format!("10.1.{at}.0/24"), format!("fd01:{at}::/64")] {
                let net: IpNet = text.parse().unwrap();
                state.routes.push(Route::plain(net, &dev));
            }
        }
        state.rules = [true, false]
            .map(|ipv6| Rule {
                ipv6,
                invert: true,
                ..Rule::default()
            })
            .into();
        let all = packets(&state);
        assert_eq!(all.len(), MOST);
        for one in &state.addresses {
            assert!(all.contains(&Packet::plain(one.local)), "{}", one.local);
        }
        for route in &state.routes {
            let net = route.destination();
            assert!(all.iter().any(|one| net.contains(&one.to)), "{net}");
        }
    }
}
