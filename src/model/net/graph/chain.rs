//! The host's links that carry the packets of a pod, in the order of a packet that leaves it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::HostSide;
use crate::model::net::limits;
use crate::model::net::link::port::PortVlans;
use crate::model::net::link::settings::Settings;
use crate::model::net::link::sysctl::Sysctls;
use crate::model::net::route::TABLE_MAIN;
use crate::model::net::way::{Packet, PacketWay, WayExit, is_link_local};
use crate::model::{
    Hardware, IfName, IpFamily, Link, LinkKind, LossCause, NetState, Parent, Route, Rule,
};

/// A link of the host that carried a pod's packets: it was up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainLink {
    /// Its name.
    pub name: IfName,
    /// For a device: permanent MAC, bus address, driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// For the host's end of a pair: the bridge or switch that it was a port of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<IfName>,
    /// For a port of a bridge with VLAN filtering: the VLANs of the pod that it was in.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "limits::at_most::<{ limits::VLANS }, _, _>"
    )]
    pub vlans: Vec<PortVlans>,
    /// For the host's end of a pair that is no port: the host's routes to the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// Those of its addresses that are gateways of the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<IpAddr>,
    /// Where the host forwards the pod's packets: the settings with which it does.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub sysctls: Sysctls,
    /// And where it sends them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<PacketWay>,
}

const FORWARDING: &str = "forwarding";

fn is_empty(sysctls: &Sysctls) -> bool {
    sysctls.ipv4.is_empty() && sysctls.ipv6.is_empty()
}

/// The first link of a chain that does not carry packets any more, and why.
pub(crate) fn broken<'c>(
    chain: &'c [ChainLink],
    host: &HostSide<'_>,
) -> Option<(&'c IfName, LossCause)> {
    let mut links = chain.iter();
    links.find_map(|then| Some((&then.name, then.fault(chain, host)?)))
}

impl ChainLink {
    /// The packets by which it is known whether the host sends to the pod by the routes of the link, and forwards what comes from it.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet> {
        let addresses = self.routes.iter().filter_map(Route::one_address);
        let forwarded = self.ways.iter().map(|way| &way.packet);
        let own = forwarded.clone().map(|packet| packet.to);
        let own = addresses.chain(own).map(Packet::plain);
        own.chain(forwarded.cloned())
    }

    /// Why the link, one of the `chain`, does not carry packets, if it is there.
    pub(crate) fn fault(&self, chain: &[Self], host: &HostSide<'_>) -> Option<LossCause> {
        let now = host.present(&self.name, self.hardware.as_ref())?;
        let bridge = now.master.as_ref().and_then(|name| host.graph.link(name));
        let filters = bridge.is_some_and(|bridge| bridge.vlan_filtering);
        let vlans = now.vlans.as_deref().filter(|_| filters);
        let is_in = |vlans| PortVlans::beyond(&self.vlans, vlans).is_empty();
        if !now.flags.up {
            Some(LossCause::HostLinkDown)
        } else if self.master.is_some() && now.master.is_none() {
            Some(LossCause::NoPort)
        } else if now.blocked {
            Some(LossCause::PortBlocked)
        } else if !vlans.is_none_or(is_in) {
            Some(LossCause::NotInVlan)
        } else if self.is_cut_from_uplink(now, chain, host) {
            Some(LossCause::Isolated)
        } else {
            self.lost_route(host)
                .or_else(|| self.refusal(now, host))
                .or_else(|| self.lost_forwarding(host))
        }
    }

    /// The table by which the host forwarded packets of the pod, out of a link that is still up, and does not any more: they are refused,
    /// or fall back to the main table. What the main table has lost is a loss of the host.
    fn lost_forwarding(&self, host: &HostSide<'_>) -> Option<LossCause> {
        let tables = self.ways.iter().filter_map(|way| {
            let hop = way.exit.hop();
            let now = host.exit_of(&way.packet)?;
            let (dev, _) = hop.filter(|_| now.hop() != hop)?;
            let is_up = host.index.link(dev).is_some_and(|dev| dev.flags.up);
            let WayExit::Link { table, .. } = way.exit else {
                return None;
            };
            let own = host.exit_of(&Packet::plain(way.packet.to));
            let is_lost = match (table?, now) {
                (TABLE_MAIN, WayExit::Refused { .. }) => own.is_some_and(|own| own.hop() == hop),
                (TABLE_MAIN, _) => false,
                (_, WayExit::Refused { .. }) => true,
                (_, now) => matches!(
                    now,
                    WayExit::Link {
                        table: Some(TABLE_MAIN),
                        ..
                    }
                ),
            };
            table.filter(|_| is_up && is_lost)
        });
        tables
            .map(|table| LossCause::HostForwarding { table })
            .next()
    }

    /// The route to the pod that is gone, or that something else precedes.
    fn lost_route(&self, host: &HostSide<'_>) -> Option<LossCause> {
        let present = host.routes_of(&self.name);
        let mut routes = self.routes.iter();
        routes.find_map(|route| {
            let to = route.destination();
            if !present.contains(&route) {
                return Some(LossCause::HostRoute(to));
            }
            let is_overridden = host.overrides(route, &self.name);
            is_overridden.then_some(LossCause::HostWay(to))
        })
    }

    /// Whether the link, which is this one `now`, and an uplink of its bridge in the chain are isolated ports.
    fn is_cut_from_uplink(&self, now: &Link, chain: &[Self], host: &HostSide<'_>) -> bool {
        let is_isolated = |uplink: &Self| {
            let uplink = host.present(&uplink.name, uplink.hardware.as_ref());
            uplink.is_some_and(|uplink| uplink.master == now.master && uplink.is_isolated())
        };
        let mut uplinks = chain.iter().filter(|other| other.master.is_none());
        self.master.is_some() && now.is_isolated() && uplinks.any(is_isolated)
    }

    /// What the host needs to forward packets of the pod, and lacks.
    fn refusal(&self, now: &Link, host: &HostSide<'_>) -> Option<LossCause> {
        let mut gateways = self.gateways.iter();
        let addresses = host.index.addresses_of(&now.name);
        let is_there = |ip: &IpAddr| addresses.iter().any(|one| one.local == *ip);
        let gone = gateways.find(|ip| !is_there(ip));
        let both = self
            .sysctls
            .folders()
            .into_iter()
            .zip(now.sysctls.folders());
        let mut off = both.flat_map(|((_, then), (_, now))| {
            let then = then.iter().map(|(key, _)| *key);
            then.filter(|key| now.get(key) == Some(&0))
        });
        gone.map(|ip| LossCause::HostAddress(*ip))
            .or_else(|| off.next().map(LossCause::HostSetting))
    }

    /// The host's end of a pair as it is to be, where it is there and does not carry packets, with the routes to it.
    pub(crate) fn mended(&self, chain: &[Self], host: &HostSide<'_>) -> Option<(Link, &[Route])> {
        let fault = self.fault(chain, host)?;
        let now = host.present(&self.name, self.hardware.as_ref());
        let now = now.filter(|now| now.is_pair())?;
        let mut wanted = now.clone();
        wanted.flags.up = true;
        wanted.blocked = false;
        if fault == LossCause::Isolated {
            wanted.isolate(false);
        }
        wanted.master.clone_from(&self.master);
        if !self.vlans.is_empty() {
            wanted.vlans = Some(self.vlans.clone());
        }
        Some((wanted, &self.routes))
    }
}

impl HostSide<'_> {
    /// The links of the host that are up and each of which alone carries packets of a pod with these links: the other ends of pairs, with
    /// the bridges that these are ports of, and the parents down to the device, or to a bond or bridge with several ports.
    pub(crate) fn chain(&self, pod: &NetState) -> Vec<ChainLink> {
        let links = self.chain_with_packets(pod).into_iter();
        let links = links.map(|(link, packets)| ChainLink {
            ways: packets
                .into_iter()
                .filter_map(|one| self.owned_way(one))
                .collect(),
            ..link
        });
        links.collect()
    }

    /// The VLANs of a port, where its bridge filters by them.
    fn vlans_of(&self, port: &Link, bridge: &IfName) -> Vec<PortVlans> {
        let bridge = self.graph.link(bridge);
        let filters = bridge.is_some_and(|bridge| bridge.vlan_filtering);
        let vlans = port.vlans.as_ref().filter(|_| filters);
        vlans.cloned().unwrap_or_default()
    }

    /// The packets of the pod by which it is known whether the host forwards them.
    pub(crate) fn forwarded(&self, pod: &NetState) -> impl Iterator<Item = Packet> {
        let links = self.chain_with_packets(pod).into_iter();
        links.flat_map(|(_, packets)| packets)
    }

    /// The way of a packet, by a route and rules of no daemon.
    fn owned_way(&self, packet: Packet) -> Option<PacketWay> {
        let exit = self.exit_of(&packet)?.clone();
        let WayExit::Link { dev, table, .. } = &exit else {
            return None;
        };
        let is_in = |route: &&Route| {
            let is_its =
                *table == Some(route.nature().1) && route.destination().contains(&packet.to);
            is_its && route.is_owned()
        };
        let mut rules = self.state.rules.iter();
        let is_of_daemon = |rule: &Rule| *table == Some(rule.table) && rule.is_of_daemon();
        let is_owned = self.routes_of(dev).iter().any(is_in) && !rules.any(is_of_daemon);
        is_owned.then_some(PacketWay { packet, exit })
    }

    /// The chain without ways, each with the packets of the pod that the host forwards from there.
    fn chain_with_packets(&self, pod: &NetState) -> Vec<(ChainLink, Vec<Packet>)> {
        let mut chain: Vec<(ChainLink, Vec<Packet>)> = Vec::new();
        let gateways = pod.routes.iter().flat_map(Route::gateways);
        let gateways: BTreeSet<IpAddr> = gateways.map(|(ip, _)| ip).collect();
        let up = pod.links.iter().filter(|link| link.flags.up);
        let ends = up.flat_map(|own| [(own, &own.parent, false), (own, &own.peer, true)]);
        for (dev, end, mut is_peer) in ends {
            let mut next = match end {
                Some(Parent::Host(name)) => Some(name),
                _ => None,
            };
            let (mut is_isolated, mut vlans) = (false, Vec::new());
            while let Some(link) = next.and_then(|name| self.graph.link(name)) {
                let carries =
                    link.flags.up && !link.blocked && !(is_isolated && link.is_isolated());
                if !carries || chain.iter().any(|(one, _)| one.name == link.name) {
                    break;
                }
                is_isolated |= is_peer && link.is_isolated();
                let mut own = ChainLink::new(link, is_peer.then_some(self));
                let above = chain.last().map(|(above, _)| &above.name);
                own.vlans = match link.master.as_ref() {
                    Some(bridge) if is_peer => self.vlans_of(link, bridge),
                    // Of an uplink those of the pod.
                    Some(bridge) if above == Some(bridge) => {
                        let all = self.vlans_of(link, bridge);
                        PortVlans::without(&all, &PortVlans::without(&all, &vlans))
                    }
                    _ => Vec::new(),
                };
                match &link.kind {
                    LinkKind::Vlan(vlan) => vlans = vec![PortVlans::of(vlan.id)],
                    _ if is_peer => vlans.clone_from(&own.vlans),
                    _ => {}
                }
                let packets = if own.note_forwarding(link, self, &gateways) {
                    sent(pod, &dev.name, &link.name)
                } else {
                    Vec::new()
                };
                chain.push((own, packets));
                next = match *self.graph.carriers(link) {
                    _ if std::mem::take(&mut is_peer) => link.master.as_ref(),
                    [lower] => Some(lower),
                    _ => None,
                };
            }
        }
        chain
    }
}

/// Packets of a pod that leave it through a gateway of this link, as the host receives them.
fn sent(pod: &NetState, dev: &IfName, received: &IfName) -> Vec<Packet> {
    /// How many of a family: a pod may have any number of addresses and routes.
    const MOST: usize = 4;
    let of = |family: IpFamily| {
        let mut own = pod.addresses.iter().filter(move |one| {
            let is_local = one.local.is_loopback() || is_link_local(one.local);
            IpFamily::of(one.local.is_ipv4()) == family && !is_local
        });
        let first = own.next().map(|one| one.local);
        let out = pod.ways.iter().filter(move |way| {
            let hop = way.exit.hop();
            let is_out = hop.is_some_and(|(out, via)| out == dev && via.is_some());
            is_out && IpFamily::of(way.packet.to.is_ipv4()) == family
        });
        out.filter_map(move |way| {
            let from = way.packet.from.or(first)?;
            Some(Packet {
                from: Some(from),
                received: Some(received.clone()),
                ..Packet::plain(way.packet.to)
            })
        })
    };
    let all = IpFamily::BOTH.into_iter();
    all.flat_map(|family| of(family).take(MOST)).collect()
}

impl ChainLink {
    /// `host` has the routes, where the link is the other end of a pod's.
    fn new(link: &Link, host: Option<&HostSide<'_>>) -> Self {
        let master = link.master.as_ref().filter(|_| host.is_some());
        let routes = host.filter(|_| master.is_none());
        let routes = routes.iter().flat_map(|host| host.routes_of(&link.name));
        let routes = routes.filter(|route| {
            let is_to_pod = !route.destination().addr().is_multicast();
            is_to_pod && route.is_owned()
        });
        Self {
            name: link.name.clone(),
            hardware: link.hardware.clone(),
            master: master.cloned(),
            vlans: Vec::new(),
            routes: routes.map(|route| (*route).clone()).collect(),
            gateways: Vec::new(),
            sysctls: Sysctls::default(),
            ways: Vec::new(),
        }
    }

    /// Notes with what the host forwards packets that come from this link, if it does: it has a gateway of the pod, or a route to it.
    fn note_forwarding(
        &mut self,
        link: &Link,
        host: &HostSide<'_>,
        gateways: &BTreeSet<IpAddr>,
    ) -> bool {
        let addresses = host.index.addresses_of(&link.name).iter();
        let addresses = addresses.map(|one| one.local);
        self.gateways = addresses.filter(|ip| gateways.contains(ip)).collect();
        if self.gateways.is_empty() && self.routes.is_empty() {
            return false;
        }
        let of = |settings: &Settings, is_ipv4: bool| {
            let has_gateway = self.gateways.iter().any(|ip| ip.is_ipv4() == is_ipv4);
            let mut routes = self.routes.iter().map(|route| route.destination().addr());
            let has_route = routes.any(|ip| ip.is_ipv4() == is_ipv4);
            let is_needed = |key: &str| match key {
                FORWARDING => has_gateway || has_route,
                // For a gateway that is no address of the host.
                "proxy_arp" | "proxy_ndp" => has_route && !has_gateway,
                _ => false,
            };
            let all = settings.iter();
            let needed = all.filter(|(key, value)| *value != 0 && is_needed(key.as_str()));
            needed.copied().collect()
        };
        let all = &link.sysctls;
        let both = (of(&all.ipv4, true), of(&all.ipv6, false));
        (self.sysctls.ipv4, self.sysctls.ipv6) = both;
        true
    }
}

#[cfg(test)]
mod tests;
