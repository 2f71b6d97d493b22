//! What a namespace reaches less than by its good record: the ways of its packets by the kernel's lookups, then and now.
//!
//! Another way is no loss where it was there before beside the lost one, is new, or leads to the same segment; nor is one that a daemon
//! or a router withdrew, or one of an address that is gone.

use std::net::IpAddr;

use ipnet::IpNet;

use super::loss::Since;
use crate::model::net::address::{DADFAILED, TENTATIVE};
use crate::model::net::reach;
use crate::model::net::route::KIND_UNICAST;
use crate::model::net::way::{Packet, PacketWay, WayExit};
use crate::model::{
    Address, IfName, Indexed, IpFamily, Link, LossCause, Mac, Neighbour, Parent, Route,
};

impl Since<'_> {
    /// The ways that are lost: the link that each went out of, and what is missing. Of other links than those that are `counted` no way
    /// is missed.
    pub(super) fn lost_ways(&self, counted: impl Fn(&IfName) -> bool) -> Vec<(IfName, LossCause)> {
        let good = self.good.state;
        let expected = reach::expected(self.answers, good, self.now.state);
        // A rule that is new may give packets from an address another way; none may refuse them.
        let has_way = |then: &PacketWay| {
            let now = self.now_of(then).map(|now| &now.exit);
            !matches!(now, Some(WayExit::Refused { .. }))
        };
        let expected = expected.iter();
        let expected = expected.filter(|then| then.packet.from.is_none() || !has_way(then));
        let ways = good.ways.iter().chain(expected);
        let lost = ways.filter_map(|then| {
            let (dev, what) = self.lacks(then, self.now_of(then)?)?;
            counted(dev).then(|| (dev.clone(), what))
        });
        lost.collect()
    }

    /// Whether the kernel shows that packets of this family get to the same segment out of other links than this one, on each way that
    /// went out of it: a link that carried a service address alone has none. Out of the link itself they would have no sender.
    pub(super) fn has_moved_ways_of(&self, dev: &IfName, family: IpFamily) -> bool {
        let (then, now) = (&self.good.state.ways, &self.now.state.ways);
        let is_of = |way: &&PacketWay| {
            let is_of_family = IpFamily::of(way.packet.to.is_ipv4()) == family;
            is_of_family && way.exit.hop().is_some_and(|(of, _)| of == dev)
        };
        let mut ways = then.iter().filter(is_of);
        let has_moved = |then: &PacketWay, now: &PacketWay| {
            let is_elsewhere = now.exit.hop().is_some_and(|(of, _)| of != dev);
            is_elsewhere && self.is_same_segment(&then.exit, &now.exit)
        };
        !(then.is_empty() || now.is_empty())
            && ways.all(|then| self.now_of(then).is_some_and(|now| has_moved(then, now)))
    }

    /// The present way of the packet.
    fn now_of(&self, then: &PacketWay) -> Option<&PacketWay> {
        let mut ways = self.now.state.ways.iter();
        ways.find(|now| now.packet == then.packet)
    }

    /// What is missing on the way of a packet, with the link that it went out of.
    fn lacks<'w>(
        &'w self,
        then: &'w PacketWay,
        now: &PacketWay,
    ) -> Option<(&'w IfName, LossCause)> {
        let packet = &then.packet;
        match (&then.exit, &now.exit) {
            (WayExit::Refused { .. }, _) => None,
            (WayExit::Link { dev, via, .. }, same) if then.exit.hop() == same.hop() => {
                let hop = via.unwrap_or(packet.to);
                Some((dev, self.lost_neighbour(dev, hop)?))
            }
            (before, same) if before == same => None,
            _ if !self.has_sender(packet) => None,
            (WayExit::Local { local }, _) => {
                // The kernel delivers all through the loopback device.
                let mut addresses = self.good.state.addresses.iter();
                let own = addresses.find(|one| one.local == packet.to);
                let dev = own.map_or(local, |own| &own.dev);
                let is_there = self.has_usable(packet.to);
                is_there.then_some((dev, LossCause::Way(packet.to.into())))
            }
            (WayExit::Link { .. }, WayExit::Local { .. }) => None,
            (WayExit::Link { dev, via, table }, exit) => {
                let routes = self.owned_routes(packet.to, dev, *via, *table);
                let is_subnet = via.is_none() && self.has_subnet(dev, packet.to);
                let is_elsewhere = match exit {
                    WayExit::Link {
                        dev: other, via, ..
                    } => {
                        self.is_same_segment(&then.exit, exit)
                            || via.is_none() && self.was_straight(packet.to, other)
                            || self.is_beside(&routes, other, *via)
                            || self.is_new(packet.to, &routes, other, *via)
                    }
                    _ => false,
                };
                let is_missed = (is_subnet || !routes.is_empty()) && !is_elsewhere;
                let has_carrier = |state: &Indexed<'_>| {
                    let link = state.link(dev);
                    link.is_none_or(|link| !link.flags.up || link.flags.carrier)
                };
                let is_silent = has_carrier(&self.good) && !has_carrier(&self.now);
                let carrier = is_silent.then_some(LossCause::NoCarrier);
                is_missed.then(|| (dev, carrier.unwrap_or_else(|| self.cause(packet, &routes))))
            }
        }
    }

    /// The rule or route that is missing, or else the way.
    fn cause(&self, packet: &Packet, routes: &[&Route]) -> LossCause {
        let (good, now) = (self.good.state, self.now.state);
        let gone = routes.iter().find(|route| !now.routes.contains(route));
        if let Some(route) = gone {
            return LossCause::Route(route.destination());
        }
        let mut rules = good.rules.iter();
        let is_of_family = |ipv6: bool| ipv6 == packet.to.is_ipv6();
        let rule = rules.find(|rule| is_of_family(rule.ipv6) && !now.rules.contains(rule));
        let to = routes.first().map(|route| route.destination());
        let way = LossCause::Way(to.unwrap_or(packet.to.into()));
        rule.map_or(way, |rule| LossCause::Rule(rule.priority))
    }

    /// Whether the sender of a packet is still there.
    fn has_sender(&self, packet: &Packet) -> bool {
        packet.from.is_none_or(|from| self.has_usable(from))
    }

    /// Whether the namespace has the address, and duplicate address detection has ended: the kernel has no route to it before.
    fn has_usable(&self, address: IpAddr) -> bool {
        let mut addresses = self.now.state.addresses.iter();
        addresses.any(|one| one.local == address && one.flags & (TENTATIVE | DADFAILED) == 0)
    }

    /// The recorded routes that this way may have taken, of the narrowest; none where a daemon or router has withdrawn those.
    fn owned_routes(
        &self,
        to: IpAddr,
        dev: &IfName,
        via: Option<IpAddr>,
        table: Option<u32>,
    ) -> Vec<&Route> {
        let routes = self.whole.routes.iter();
        let is_in = |route: &Route| table.is_none_or(|table| route.nature().1 == table);
        let may_lead = |route: &Route| is_in(route) && leads(route, to, dev, via);
        let routes = || routes.clone().filter(|route| may_lead(route));
        let width = |route: &&Route| route.destination().prefix_len();
        let narrowest = routes().map(|route| width(&route)).max();
        let is_there = |route: &&Route| self.good.state.routes.contains(route);
        routes()
            .filter(|route| Some(width(route)) == narrowest)
            .filter(|route| route.is_owned() && is_there(route))
            .collect()
    }

    fn has_subnet(&self, dev: &IfName, to: IpAddr) -> bool {
        let mut addresses = self.good.addresses_of(dev).iter();
        addresses.any(|one| one.is_owned() && is_in_subnet(one, to))
    }

    /// Whether a route was beside these before, in the same place but for the metric, that leads this way.
    fn is_beside(&self, routes: &[&Route], dev: &IfName, via: Option<IpAddr>) -> bool {
        let place = |route: &Route| (route.destination(), route.nature().1);
        self.good.state.routes.iter().any(|other| {
            let mut same = routes.iter().filter(|route| place(route) == place(other));
            same.next().is_some() && has_hop(other, dev, via)
        })
    }

    /// Whether a subnet that leads this way is new, or a route that is as narrow as one of the lost: a wider one is what packets fall
    /// back to.
    fn is_new(&self, to: IpAddr, lost: &[&Route], dev: &IfName, via: Option<IpAddr>) -> bool {
        let (good, now) = (self.good.state, self.now.state);
        let width = |route: &Route| route.destination().prefix_len();
        let least = lost.iter().map(|route| width(route)).min();
        let mut routes = now.routes.iter();
        let is_route = routes.any(|route| {
            leads(route, to, dev, via)
                && Some(width(route)) >= least
                && !good.routes.contains(route)
        });
        let then: Vec<Option<IpNet>> = good.addresses.iter().map(Address::subnet).collect();
        let mut addresses = self.now.addresses_of(dev).iter();
        is_route
            || via.is_none()
                && addresses.any(|one| is_in_subnet(one, to) && !then.contains(&one.subnet()))
    }

    /// Whether both ways lead to the same next hop of the same segment, by its address or MAC, out of links on the same link; a router of
    /// the segment leads to its other machines too.
    fn is_same_segment(&self, then: &WayExit, now: &WayExit) -> bool {
        let both = then.hop().zip(now.hop());
        both.is_some_and(|((dev, via), (other, to))| {
            let mac = |state, dev, hop: Option<IpAddr>| self.mac_of(state, dev, hop?);
            let is_same_machine = || {
                let known = mac(&self.good, dev, via);
                known.is_some() && known == mac(&self.now, other, to)
            };
            (via == to || via.is_none() || is_same_machine())
                && segment(&self.good, dev) == segment(&self.now, other)
        })
    }

    /// The MAC of a next hop, by an entry of the namespace or its last answer.
    fn mac_of(&self, state: &Indexed<'_>, dev: &IfName, hop: IpAddr) -> Option<Mac> {
        entry(state, dev, hop).map_or_else(|| self.answered_mac(dev, hop), |entry| entry.lladdr)
    }

    fn answered_mac(&self, dev: &IfName, hop: IpAddr) -> Option<Mac> {
        let mut answers = self.answers.iter();
        answers
            .find(|one| one.dev == *dev && one.address == hop)?
            .mac
    }

    /// Whether other packets to the same machine went out of this link without a gateway before.
    fn was_straight(&self, to: IpAddr, dev: &IfName) -> bool {
        let straight = Some((dev, None));
        let mut ways = self.good.state.ways.iter();
        ways.any(|way| way.packet.to == to && way.exit.hop() == straight)
    }

    /// Why packets do not get to the next hop any more: the kernel had its MAC, by ARP or in a permanent entry, and has no way to it now,
    /// or an entry with another one.
    fn lost_neighbour(&self, dev: &IfName, hop: IpAddr) -> Option<LossCause> {
        let has_arp = |state: &Indexed<'_>| state.link(dev).is_none_or(|link| !link.flags.noarp);
        let then = entry(&self.good, dev, hop);
        let Some(now) = entry(&self.now, dev, hop) else {
            let had = has_arp(&self.good) || then.is_some_and(|then| !then.is_of_program());
            let is_lost = had && !has_arp(&self.now);
            return is_lost.then_some(LossCause::Neighbour(hop));
        };
        let recorded = then.and_then(|then| then.lladdr);
        let known = recorded.or_else(|| self.answered_mac(dev, hop))?;
        let is_free = now.is_of_program() || self.now.link(dev).is_none_or(Link::is_overlay);
        let mac = now.lladdr.filter(|mac| *mac != known && !is_free)?;
        Some(LossCause::NeighbourMac { hop, mac })
    }
}

/// The entry for a next hop that a namespace has of its own.
fn entry<'s>(state: &Indexed<'s>, dev: &IfName, hop: IpAddr) -> Option<&'s Neighbour> {
    let mut entries = state.state.neighbours.iter();
    entries.find(|one| one.dev == *dev && one.dst == hop && !one.proxy)
}

/// The link at the bottom of macvlans and the like, in which namespace it ever is: what is on one segment has the same.
fn segment<'a>(state: &'a Indexed<'_>, dev: &'a IfName) -> (bool, &'a IfName) {
    const SHARING: [&str; 4] = ["macvlan", "macvtap", "ipvlan", "ipvtap"];
    let mut name = dev;
    // The kernel allows eight levels.
    for _ in 0..8 {
        let link = state.link(name);
        let link = link.filter(|link| SHARING.contains(&link.kind.name()));
        match link.and_then(|link| link.parent.as_ref()) {
            Some(Parent::Own(lower)) => name = lower,
            Some(Parent::Host(lower)) => return (true, lower),
            Some(Parent::Elsewhere) | None => break,
        }
    }
    (false, name)
}

/// Whether packets to `to` may take this route, this way.
fn leads(route: &Route, to: IpAddr, dev: &IfName, via: Option<IpAddr>) -> bool {
    let (_, source, _, tos, _) = route.place();
    let takes_any = source.is_none() && tos == 0 && route.nature().0 == KIND_UNICAST;
    takes_any && route.destination().contains(&to) && has_hop(route, dev, via)
}

fn has_hop(route: &Route, dev: &IfName, via: Option<IpAddr>) -> bool {
    route.hops().contains(&(via, Some(dev)))
}

fn is_in_subnet(address: &Address, to: IpAddr) -> bool {
    address.subnet().is_some_and(|net| net.contains(&to))
}
