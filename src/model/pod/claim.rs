//! What only one pod on one link of the host can have.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

use crate::model::net::address::Maker;
use crate::model::net::route::{KIND_UNICAST, PROTOCOL_KERNEL, SCOPE_LINK, TABLE_MAIN};
use crate::model::{Address, IfName, Indexed, Link, Mac, NetState, Nexthop, Parent, Route};

/// A MAC or an address on one link of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Claim {
    /// The MAC of a macvlan, on this parent.
    Mac(IfName, Mac),
    /// An address on a link with this parent.
    Address(IfName, IpAddr),
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac(parent, mac) => write!(f, "MAC {mac} on {parent}"),
            Self::Address(parent, address) => write!(f, "{address} on {parent}"),
        }
    }
}

impl Claim {
    /// The parent of the link.
    pub(crate) fn parent(&self) -> &IfName {
        match self {
            Self::Mac(parent, _) | Self::Address(parent, _) => parent,
        }
    }

    /// The MAC of a macvlan on this parent.
    pub(crate) fn of_link(link: &Link, parent: &IfName) -> Option<Self> {
        let mac = link.mac.filter(|_| link.kind.is_macvlan())?;
        Some(Self::Mac(parent.clone(), mac))
    }

    /// An address of a link on this parent; none for one that several pods may have, or that the kernel derives from the MAC.
    pub(crate) fn of_address(address: &Address, parent: &IfName) -> Option<Self> {
        let is_own = address.maker == Maker::Admin && !address.is_shared();
        is_own.then(|| Self::Address(parent.clone(), address.local))
    }
}

impl NetState {
    /// What a pod with this state claims, each with the link that has it.
    pub(crate) fn claims(&self) -> Vec<(&Link, Claim)> {
        let links = self.links.iter();
        self.claims_of(links.filter_map(|link| Some((link, of_pod(link)?))))
    }

    /// What the host with this state claims, each with the link that has it: the addresses of its links, and the MACs of its
    /// macvlans, which are on their parents.
    pub(crate) fn claims_of_host(&self) -> Vec<(&Link, Claim)> {
        self.claims_of(self.links.iter().map(|link| (link, of_host(link))))
    }

    /// What these links and their addresses claim on their parents.
    pub(crate) fn claims_of<'a>(
        &'a self,
        links: impl Iterator<Item = (&'a Link, &'a IfName)>,
    ) -> Vec<(&'a Link, Claim)> {
        let state = Indexed::new(self);
        let of_link = |(link, parent): (&'a Link, &'a IfName)| {
            let addresses = state.addresses_of(&link.name).iter();
            // One that failed duplicate address detection is another machine's.
            let usable = addresses.filter(|address| !address.has_failed_detection());
            let addresses = usable.filter_map(|address| Claim::of_address(address, parent));
            let claims = Claim::of_link(link, parent).into_iter().chain(addresses);
            claims.map(|claim| (link, claim)).collect::<Vec<_>>()
        };
        links.flat_map(of_link).collect()
    }

    /// The state of a pod without these claims: without the links whose MAC, and without the addresses that are among them,
    /// and without the routes and nexthop objects that only such an address makes possible. The objects of `now` stay.
    pub(crate) fn without(&self, claims: &BTreeSet<Claim>, now: &Self) -> Self {
        self.without_claims(claims, now, of_pod)
    }

    /// The same of the host's state.
    pub(crate) fn host_without(&self, claims: &BTreeSet<Claim>, now: &Self) -> Self {
        self.without_claims(claims, now, |link| Some(of_host(link)))
    }

    fn without_claims(
        &self,
        claims: &BTreeSet<Claim>,
        now: &Self,
        parent_of: impl Fn(&Link) -> Option<&IfName>,
    ) -> Self {
        let is_among = |claim: Option<Claim>| claim.is_some_and(|claim| claims.contains(&claim));
        let state = Indexed::new(self);
        let links = self.links.iter().filter(|link| {
            !is_among(parent_of(link).and_then(|parent| Claim::of_link(link, parent)))
        });
        let is_left_out = |address: &Address| {
            let parent = state.link(&address.dev).and_then(&parent_of);
            is_among(parent.and_then(|parent| Claim::of_address(address, parent)))
        };
        let left = self.without_ways(now, is_left_out, |_| false);
        Self {
            links: links.cloned().collect(),
            ..left
        }
    }

    /// The state without some addresses and routes, and without the routes and nexthop objects that only one of these makes
    /// possible. The objects of `now` stay.
    pub(crate) fn without_ways(
        &self,
        now: &Self,
        is_left_out: impl Fn(&Address) -> bool,
        is_route_left_out: impl Fn(&Route) -> bool,
    ) -> Self {
        let addresses = self.addresses.iter().cloned();
        let (contested, mut addresses): (Vec<_>, Vec<_>) = addresses.partition(&is_left_out);
        promote(&mut addresses);
        let locals = |all: &[Address]| all.iter().map(|one| one.local).collect::<BTreeSet<_>>();
        // An address can be there with several prefix lengths.
        let sources = &locals(&contested) - &locals(&addresses);
        let is_out = |route: &&Route| is_route_left_out(route);
        let (out, mut routes): (Vec<&Route>, Vec<&Route>) = self.routes.iter().partition(is_out);
        let lost = Subnets::of(&contested, &out, self);
        let left = Subnets::of(&addresses, &routes, self);
        let is_reached = |gateway: IpAddr, dev: &IfName, table: u32| {
            !lost.have(gateway, dev, table) || left.have(gateway, dev, table)
        };
        let there: HashSet<u32> = now.nexthops.iter().map(|one| one.id).collect();
        let nexthops = with_members(&self.nexthops, |one| {
            let way = one.gateway.zip(one.dev.as_ref());
            let is_reached = way.is_none_or(|(gateway, dev)| is_reached(gateway, dev, TABLE_MAIN));
            one.onlink || is_reached || there.contains(&one.id)
        });
        let ids = |all: &[Nexthop]| all.iter().map(|one| one.id).collect::<HashSet<u32>>();
        let without = &ids(&self.nexthops) - &ids(&nexthops);
        routes.retain(|route| {
            let has_source = route
                .prefsrc
                .is_none_or(|source| !sources.contains(&source));
            let mut hops = route.gateways().into_iter();
            let has_way = match route.nexthop {
                Some(id) => !without.contains(&id),
                None => hops.all(|(gateway, dev)| is_reached(gateway, dev, route.nature().1)),
            };
            has_source && has_way
        });
        Self {
            routes: routes.into_iter().cloned().collect(),
            nexthops,
            addresses,
            ..self.clone()
        }
    }
}

/// The link of the host on which a link of a pod claims something.
fn of_pod(link: &Link) -> Option<&IfName> {
    match &link.parent {
        Some(Parent::Host(parent)) => Some(parent),
        _ => None,
    }
}

/// The one on which a link of the host does.
fn of_host(link: &Link) -> &IfName {
    match &link.parent {
        Some(Parent::Own(parent)) if link.kind.is_macvlan() => parent,
        _ => &link.name,
    }
}

/// Those of these hops, and the groups of which all members are among them.
fn with_members(all: &[Nexthop], is_left: impl Fn(&Nexthop) -> bool) -> Vec<Nexthop> {
    let (mut left, out): (Vec<Nexthop>, Vec<Nexthop>) = all.iter().cloned().partition(is_left);
    let out: HashSet<u32> = out.iter().map(|one| one.id).collect();
    left.retain(|one| one.group.iter().all(|member| !out.contains(&member.id)));
    left
}

/// Makes the first of the secondary addresses of a subnet that has no primary one its primary address, as the kernel does.
fn promote(addresses: &mut [Address]) {
    let place = |one: &Address| Some((one.dev.clone(), one.subnet()?));
    let primary = addresses
        .iter()
        .filter(|one| one.local.is_ipv4() && !one.is_secondary());
    let mut subnets: BTreeSet<_> = primary.filter_map(place).collect();
    for address in addresses.iter_mut().filter(|one| one.is_secondary()) {
        if place(address).is_some_and(|place| subnets.insert(place)) {
            address.make_primary();
        }
    }
}

/// The subnets of addresses, and those to which routes lead without a gateway, each with its interface.
struct Subnets<'a> {
    /// Each with its table; 0: that of the interface.
    all: BTreeSet<(&'a IfName, IpNet, u32)>,
    state: &'a NetState,
}

impl<'a> Subnets<'a> {
    /// Of a part of a state. The kernel's routes come with the addresses.
    fn of(addresses: &'a [Address], routes: &[&'a Route], state: &'a NetState) -> Self {
        let is_direct = |route: &&&Route| {
            let (kind, _, protocol) = route.nature();
            // The kernel looks for a gateway of IPv4 without a TOS, from the scope of a link on (`fib_check_nh_v4_gw`).
            let is_asked = route.is_ipv6() || route.tos == 0 && route.scope >= SCOPE_LINK;
            let is_own = kind == KIND_UNICAST && protocol != PROTOCOL_KERNEL;
            is_own && is_asked && route.gateways().is_empty()
        };
        let direct = routes.iter().filter(is_direct).flat_map(|route| {
            let devs = route.devs().into_iter();
            devs.map(|dev| (dev, route.destination(), route.nature().1))
        });
        let subnets = addresses.iter().filter_map(|address| {
            let subnet = IpNet::new(address.local, address.prefix_len).ok()?;
            Some((&address.dev, subnet.trunc(), 0))
        });
        let all = subnets.chain(direct).collect();
        Self { all, state }
    }

    /// Whether the kernel finds the gateway of a route in this table: there, else by the rules.
    fn have(&self, gateway: IpAddr, dev: &IfName, table: u32) -> bool {
        let is_asked = |other: u32| {
            let mut rules = self.state.rules.iter();
            rules.any(|rule| rule.table == other && rule.leads_to(gateway, dev))
        };
        // A VRF has a table of its own.
        let has_own = || {
            self.state
                .links
                .iter()
                .any(|link| link.name == *dev && link.master.is_some())
        };
        let is_found =
            |other: u32| [0, TABLE_MAIN, table].contains(&other) || is_asked(other) || has_own();
        let mut subnets = (0..=128).map_while(|len| IpNet::new(gateway, len).ok());
        subnets.any(|subnet| {
            let subnet = subnet.trunc();
            let mut tables = self.all.range((dev, subnet, 0)..=(dev, subnet, u32::MAX));
            tables.any(|(.., table)| is_found(*table))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::model::net::address::SCOPE_HOST;
    use crate::model::net::link::{LinkKind, Macvlan, MacvlanMode};
    use crate::model::pod::claim::*;

    fn name(text: &str) -> IfName {
        text.parse().unwrap()
    }

    fn address(text: &str) -> Address {
        Address::plain(name("eth0"), text.parse().unwrap(), 24)
    }

    /// A route with this gateway and source, in the form of a checkpoint.
    fn route(dst: &str, gateway: &str, source: Option<&str>) -> Route {
        serde_json::from_value(serde_json::json!({
            "family": "inet", "dst": dst, "table": 254, "protocol": 3, "scope": 0, "type": 1,
            "prefsrc": source, "hops": [{"gateway": gateway, "dev": "eth0"}],
        }))
        .unwrap()
    }

    fn pod() -> NetState {
        let link = Link {
            mac: Some(Mac([2, 0, 0, 0, 0, 1])),
            parent: Some(Parent::Host(name("eth0.3"))),
            ..Link::plain(
                name("eth0"),
                LinkKind::Macvlan(Macvlan::plain(MacvlanMode::Bridge)),
            )
        };
        let mut host_only = address("10.9.0.1");
        host_only.scope = SCOPE_HOST;
        NetState {
            links: vec![link],
            addresses: vec![
                address("10.1.0.1"),
                address("10.2.0.1"),
                address("224.0.0.9"),
                host_only,
            ],
            routes: vec![
                route("10.5.0.0/16", "10.1.0.254", None),
                route("10.6.0.0/16", "10.2.0.254", None),
                route("10.7.0.0/16", "10.2.0.254", Some("10.1.0.1")),
                route("10.8.0.0/16", "10.3.0.254", None),
            ],
            ..NetState::default()
        }
    }

    #[test]
    fn an_address_that_many_may_have_is_no_claim() {
        let pod = pod();
        let claims: Vec<String> = pod
            .claims()
            .iter()
            .map(|(_, claim)| claim.to_string())
            .collect();
        assert_eq!(
            claims,
            [
                "MAC 02:00:00:00:00:01 on eth0.3",
                "10.1.0.1 on eth0.3",
                "10.2.0.1 on eth0.3"
            ]
        );
    }

    #[test]
    fn with_an_address_go_the_routes_that_need_it() {
        let claim = Claim::Address(name("eth0.3"), "10.1.0.1".parse().unwrap());
        let left = pod().without(&BTreeSet::from([claim.clone()]), &NetState::default());
        assert_eq!(left.links, pod().links);
        assert_eq!(left.addresses, pod().addresses[1..]);
        let routes = pod().routes;
        assert_eq!(left.routes, [routes[1].clone(), routes[3].clone()]);
        let mut second = pod();
        second.addresses.push(address("10.1.0.2"));
        let left = second.without(&BTreeSet::from([claim]), &NetState::default());
        assert_eq!(left.routes.len(), 3, "{:?}", left.routes);
    }
}
