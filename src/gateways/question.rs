//! What is asked about each gateway: whether it answers, and whether the namespace's own packets get to it and beyond. Pure.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv6Net};

use super::rules::is_met;
use crate::kernel::route::lookup::Selector;
use crate::model::net::address::{DADFAILED, Maker, TENTATIVE};
use crate::model::net::route::{KIND_UNICAST, TABLE_MAIN};
use crate::model::{Address, IfName, IpFamily, Link, NetState, Route, Rule};

/// The namespace from which a gateway is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prober {
    Host,
    /// Which of the pods.
    Pod(usize),
}

/// A gateway that a pod or the host has or had.
#[derive(Debug)]
pub(super) struct Question {
    pub place: Prober,
    pub dev: IfName,
    pub gateway: IpAddr,
    /// The interface's index; `None` when the namespace does not have it now.
    pub index: Option<u32>,
    /// Whether the interface is up.
    pub is_up: bool,
    /// Whether the interface finds its neighbours by ARP or neighbour discovery.
    pub has_neighbours: bool,
    /// What its packets need.
    pub path: Path,
}

/// What the packets of a namespace need to get to a gateway and beyond.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// How packets are sent that take the routes through the gateway; the first is the common one.
    pub selectors: Vec<Selector>,
    /// Whether a route through it is in a table that all packets use.
    pub is_common: bool,
    /// The other tables with routes through it.
    tables: BTreeSet<u32>,
    /// Whether packets that are sent like this take the routes through it: without it a missing route is no finding.
    pub is_decisive: bool,
    /// Destinations of routes through it, each with an address there.
    pub behind: Vec<(IpNet, IpAddr)>,
    /// Routes of another family lead through it: no packet to the gateway itself needs a route.
    pub is_of_other_family: bool,
    /// What the namespace lacks to send from.
    pub lack: Option<Lack>,
}

/// An address that the namespace had and cannot use, and no other one of its family that it could use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lack {
    pub address: IpNet,
    pub kind: LackKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LackKind {
    /// The namespace does not have it.
    Missing,
    /// Another machine has it.
    Duplicate,
    /// Duplicate address detection is under way.
    Tentative,
    /// It comes with the advertisement of a router.
    Awaited,
}

/// Collects the questions about one namespace.
pub(super) struct Questions<'a> {
    place: Prober,
    now: &'a NetState,
    then: Option<&'a NetState>,
    all: Vec<Question>,
}

/// `RT_TABLE_UNSPEC`, `RT_TABLE_DEFAULT` and `RT_TABLE_LOCAL`: with `main` the tables of the kernel's own rules.
const TABLES_OF_KERNEL: [u32; 4] = [0, 253, TABLE_MAIN, 255];
/// The group of all routers on a link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// How many destinations behind a gateway are looked up: a pod may have thousands of routes.
const MOST: usize = 3;

impl<'a> Questions<'a> {
    pub(super) fn new(place: Prober, now: &'a NetState, then: Option<&'a NetState>) -> Self {
        Self {
            place,
            now,
            then,
            all: Vec::new(),
        }
    }

    /// Adds a gateway of a route, once. `dev` is the present name of the recorded link `dev_then`.
    pub(super) fn add(&mut self, gateway: IpAddr, dev: &IfName, dev_then: &IfName, route: &Route) {
        let known = |one: &Question| one.gateway == gateway && one.dev == *dev;
        let at = self.all.iter().position(known).unwrap_or_else(|| {
            self.all.push(self.question(gateway, dev));
            self.all.len() - 1
        });
        let lack = self.lack(dev_then, route.family());
        let target = self.target(gateway, route);
        let path = &mut self.all[at].path;
        path.lack = path.lack.or(lack);
        let (_, table, _) = route.nature();
        if TABLES_OF_KERNEL.contains(&table) {
            path.is_common = true;
        } else {
            path.tables.insert(table);
        }
        path.is_of_other_family |= route.destination().addr().is_ipv4() != gateway.is_ipv4();
        if let Some(target) = target.filter(|target| !path.behind.contains(target)) {
            path.behind.push(target);
            // The default route first.
            path.behind.sort_by_key(|(net, _)| net.prefix_len());
            path.behind.truncate(MOST);
        }
    }

    /// Adds the router that IPv6 uses. Where it came with an advertisement, no record has it: one whose addresses came so has one.
    pub(super) fn add_router(&mut self, router: Option<(IpAddr, IfName)>) {
        let elsewhere = IpNet::from(Ipv6Net::default());
        let (lack, hop) = match router {
            Some(hop) => (None, hop),
            None => match self.advertised() {
                Some((lack, dev)) => (Some(lack), (ALL_ROUTERS.into(), dev)),
                None => return,
            },
        };
        let (gateway, dev) = hop;
        let known = |one: &Question| one.gateway == gateway && one.dev == dev;
        if !self.all.iter().any(known) {
            let mut question = self.question(gateway, &dev);
            question.path = Path {
                is_common: true,
                behind: vec![(elsewhere, address_in(elsewhere, 0))],
                lack,
                ..Path::default()
            };
            self.all.push(question);
        }
    }

    /// An address of an advertisement that is gone with all others of such addresses, and its link.
    fn advertised(&self) -> Option<(Lack, IfName)> {
        let is_advertised = |one: &&Address| one.maker == Maker::Network && is_source(one);
        let was = self.then?.addresses.iter().find(is_advertised)?;
        let mut now = self.now.addresses.iter().filter(is_advertised);
        let address = IpNet::new(was.local, was.prefix_len).ok()?;
        let lack = Lack {
            address,
            kind: LackKind::Awaited,
        };
        now.next().is_none().then(|| (lack, was.dev.clone()))
    }

    /// The questions.
    pub(super) fn finish(mut self) -> Vec<Question> {
        let mut all = std::mem::take(&mut self.all);
        for question in &mut all {
            self.select(question);
        }
        all
    }

    fn question(&self, gateway: IpAddr, dev: &IfName) -> Question {
        let link = self.now.link(dev);
        Question {
            place: self.place,
            dev: dev.clone(),
            gateway,
            index: link.map(|link| link.index),
            is_up: link.is_some_and(|link| link.flags.up),
            has_neighbours: !gateway.is_multicast() && link.is_some_and(|link| !link.flags.noarp),
            path: Path::default(),
        }
    }

    /// What is missing of the addresses that the link had, unless the namespace has another address of their family.
    fn lack(&self, dev_then: &IfName, family: IpFamily) -> Option<Lack> {
        let is_own = |one: &&Address| is_source(one) && family_of(one.local) == family;
        let mut wanted = self.then?.addresses_of(dev_then);
        let wanted = wanted.find(|one| is_own(one) && one.is_owned())?;
        let mut now = self.now.addresses.iter().filter(is_own);
        if now.any(is_usable) {
            return None;
        }
        let mut now = self.now.addresses.iter();
        let flags = now.find(|one| one.local == wanted.local);
        let kind = match flags.map(|one| one.flags) {
            None => LackKind::Missing,
            Some(flags) if flags & DADFAILED != 0 => LackKind::Duplicate,
            Some(_) => LackKind::Tentative,
        };
        let address = IpNet::new(wanted.local, wanted.prefix_len).ok()?;
        Some(Lack { address, kind })
    }

    /// The destination of a route with an address there that no narrower route covers.
    fn target(&self, gateway: IpAddr, route: &Route) -> Option<(IpNet, IpAddr)> {
        /// How many addresses are tried.
        const ATTEMPTS: u32 = 16;
        let (net, source, table, tos, _) = route.place();
        let (kind, ..) = route.nature();
        // What a daemon has withdrawn is not missed.
        let is_present = self.now.routes.contains(route);
        if kind != KIND_UNICAST || source.is_some() || tos != 0 || !is_present && !route.is_owned()
        {
            return None;
        }
        let both = || [Some(self.now), self.then].into_iter().flatten();
        let routes = both().flat_map(|state| &state.routes);
        let routes = routes.filter(|one| one.nature().1 == table);
        let subnets = both().flat_map(|state| &state.addresses);
        let narrower: Vec<IpNet> = routes
            .map(Route::destination)
            .chain(subnets.filter_map(Address::subnet))
            .filter(|other| net.contains(other) && *other != net)
            .collect();
        let is_free = |ip: &IpAddr| {
            *ip != gateway && is_unicast(*ip) && !narrower.iter().any(|net| net.contains(ip))
        };
        let found = (0..ATTEMPTS).map(|at| address_in(net, at)).find(is_free)?;
        Some((net, found))
    }

    /// How packets are sent that take the routes through the gateway.
    fn select(&self, question: &mut Question) {
        let link = self.now.link(&question.dev);
        let sources: Vec<IpAddr> = self
            .now
            .addresses_of(&question.dev)
            .filter(|one| one.local.is_ipv4() == question.gateway.is_ipv4())
            .filter(|one| is_source(one) && is_usable(one))
            .map(|one| one.local)
            .collect();
        let by_source = sources.iter().map(|source| Selector {
            source: Some(*source),
            ..Selector::default()
        });
        let bound = Selector {
            bound: question.index,
            ..Selector::default()
        };
        let is_link_local =
            matches!(question.gateway, IpAddr::V6(ip) if ip.is_unicast_link_local());
        let plain = if is_link_local {
            bound
        } else {
            Selector::default()
        };
        let path = &mut question.path;
        if self.is_on_vrf(link) {
            (path.is_common, path.is_decisive) = (false, true);
            path.selectors = vec![bound];
            return;
        }
        if path.is_common {
            path.is_decisive = true;
            path.selectors = [plain].into_iter().chain(by_source).collect();
            path.selectors.push(bound);
            return;
        }
        let rules = [Some(self.now), self.then].into_iter().flatten();
        let rules = rules.flat_map(|state| &state.rules);
        let rules = rules.filter(|rule| {
            rule.ipv6 != question.gateway.is_ipv4() && path.tables.contains(&rule.table)
        });
        let rules: Vec<&Rule> = rules.collect();
        path.is_decisive = rules
            .iter()
            .any(|rule| is_met(rule, &sources, &path.behind));
        let marks = rules.iter().filter_map(|rule| rule.fwmark);
        let by_mark = marks.map(|mark| Selector {
            mark: Some(mark),
            ..Selector::default()
        });
        path.selectors = by_source.chain(by_mark).chain([plain]).collect();
        path.selectors.dedup();
    }

    fn is_on_vrf(&self, link: Option<&Link>) -> bool {
        let master = link.and_then(|link| link.master.as_ref());
        let master = master.and_then(|name| self.now.link(name));
        master.is_some_and(Link::is_vrf)
    }
}

impl Question {
    /// Whether it is answered by the advertisement of any router.
    pub(super) fn is_any_router(&self) -> bool {
        self.gateway == IpAddr::from(ALL_ROUTERS)
    }
}

impl Path {
    /// Whether an address may become usable soon.
    pub(super) fn is_waiting(&self) -> bool {
        let kind = self.lack.map(|lack| lack.kind);
        matches!(kind, Some(LackKind::Tentative | LackKind::Awaited))
    }
}

fn family_of(ip: IpAddr) -> IpFamily {
    IpFamily::of(ip.is_ipv4())
}

/// Whether packets to other machines can have it as their source.
fn is_source(address: &Address) -> bool {
    let is_link_local = matches!(address.local, IpAddr::V6(ip) if ip.is_unicast_link_local());
    !address.is_shared() && !is_link_local && !address.local.is_loopback()
}

fn is_usable(address: &Address) -> bool {
    address.local.is_ipv4() || address.flags & (TENTATIVE | DADFAILED) == 0
}

fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !matches!(ip.octets()[0], 0 | 127 | 224..),
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_loopback() && !ip.is_unspecified(),
    }
}

/// One of the addresses of a prefix, spread over it.
fn address_in(net: IpNet, at: u32) -> IpAddr {
    /// 2^32 divided by the golden ratio: multiples of it are far from each other.
    const STEP: u32 = 0x9e37_79b9;
    let host = STEP.wrapping_mul(at + 1);
    match net {
        IpNet::V4(net) => {
            let host = host & u32::from(net.hostmask());
            Ipv4Addr::from(u32::from(net.network()) | host).into()
        }
        IpNet::V6(net) => {
            // Global unicast addresses, if these are in the prefix.
            let global = (0x2u128 << 124) | (u128::from(host) << 64) | 1;
            let host = if net.prefix_len() < 4 {
                global
            } else {
                u128::from(host) << 32 | u128::from(host)
            };
            let host = host & u128::from(net.hostmask());
            Ipv6Addr::from(u128::from(net.network()) | host).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_a_prefix_are_in_it() {
        for text in [
            "0.0.0.0/0",
            "10.3.0.0/16",
            "10.3.0.1/32",
            "10.3.0.0/31",
            "::/0",
            "fd00:9::/48",
            "fd00::1/128",
        ] {
            let net: IpNet = text.parse().unwrap();
            for at in 0..16 {
                assert!(net.contains(&address_in(net, at)), "{text}");
            }
        }
        let any: IpNet = "::/0".parse().unwrap();
        assert!(
            "2000::/4"
                .parse::<IpNet>()
                .unwrap()
                .contains(&address_in(any, 0))
        );
    }
}
