//! What is asked about each gateway: whether it answers, and whether the namespace's own packets get to it and beyond. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use ipnet::{IpNet, Ipv6Net};

use super::recorded::PastAnswer;
use super::rules::is_met;
use crate::kernel::route::lookup::Selector;
use crate::model::net::address::{DADFAILED, Maker, TENTATIVE};
use crate::model::net::reach::destinations::{Destinations, address_in};
use crate::model::net::route::{KIND_UNICAST, TABLE_MAIN};
use crate::model::{Address, AnswerRecord, IfName, Indexed, IpFamily, Link, NetState, Route, Rule};

/// The namespace from which a gateway is probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Prober {
    Host,
    /// Which of the pods.
    Pod(usize),
}

/// What a namespace has a next hop for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its packets to other networks.
    Gateway,
    /// Those to this one: it has no gateway, and this neighbour has answered before. Others may end meanwhile: one answer is enough.
    Neighbour,
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
    /// Whether the time for its namespace was used up before it.
    pub is_late: bool,
    pub role: Role,
    /// What it has answered before.
    pub before: PastAnswer,
    /// What its packets need.
    pub path: Path,
}

/// What the packets of a namespace need to get to a gateway and beyond.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each answers a question of its own"
)]
pub(super) struct Path {
    /// How packets are sent that take the routes through the gateway; the first is the common one.
    pub selectors: Vec<Selector>,
    /// Whether there are more of them.
    pub has_more: bool,
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
    now: Indexed<'a>,
    then: Option<Indexed<'a>>,
    /// The present routes.
    present: HashSet<&'a Route>,
    destinations: Destinations,
    /// The rules that lead to a table.
    rules: HashMap<(bool, u32), Vec<&'a Rule>>,
    all: Vec<Question>,
    known: HashMap<(IpAddr, IfName), usize>,
    lacks: HashMap<(IfName, IpFamily), Option<Lack>>,
}

/// `RT_TABLE_UNSPEC`, `RT_TABLE_DEFAULT` and `RT_TABLE_LOCAL`: with `main` the tables of the kernel's own rules.
const TABLES_OF_KERNEL: [u32; 4] = [0, 253, TABLE_MAIN, 255];
/// The group of all routers on a link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// How many destinations behind a gateway are looked up: a pod may have thousands of routes.
const MOST: usize = 3;
/// How many ways to send packets are looked up: a pod may have thousands of addresses and marks.
const MOST_SELECTORS: usize = 64;

impl<'a> Questions<'a> {
    pub(super) fn new(place: Prober, now: &'a NetState, then: Option<&'a NetState>) -> Self {
        let both = || [Some(now), then].into_iter().flatten();
        let mut rules: HashMap<_, Vec<&Rule>> = HashMap::new();
        for rule in both().flat_map(|state| &state.rules) {
            rules.entry((rule.ipv6, rule.table)).or_default().push(rule);
        }
        Self {
            place,
            now: Indexed::new(now),
            then: then.map(Indexed::new),
            present: now.routes.iter().collect(),
            destinations: Destinations::of(both()),
            rules,
            all: Vec::new(),
            known: HashMap::new(),
            lacks: HashMap::new(),
        }
    }

    /// Adds a gateway of a route, once. `dev` is the present name of the recorded link `dev_then`.
    pub(super) fn add(&mut self, gateway: IpAddr, dev: &IfName, dev_then: &IfName, route: &Route) {
        let at = self.number(gateway, dev);
        let lack_key = (dev_then.clone(), route.family());
        let lack = match self.lacks.get(&lack_key) {
            Some(lack) => *lack,
            None => self.lack(dev_then, route.family()),
        };
        self.lacks.insert(lack_key, lack);
        let behind = &self.all[at].path.behind;
        let last = behind.get(MOST - 1).map(|(net, _)| net.prefix_len());
        let is_wider = last.is_none_or(|last| route.destination().prefix_len() < last);
        let target = is_wider.then(|| self.target(gateway, route)).flatten();
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
        let is_new = self.all.len();
        let at = self.number(gateway, &dev);
        if at == is_new {
            self.all[at].path = Path {
                is_common: true,
                behind: vec![(elsewhere, address_in(elsewhere, 0))],
                lack,
                ..Path::default()
            };
        }
    }

    /// Adds a next hop of packets of which the routes are not known.
    pub(super) fn add_hop(&mut self, hop: IpAddr, dev: &IfName) {
        let at = self.number(hop, dev);
        self.all[at].path.is_common = true;
    }

    /// Adds the neighbours that have answered, where there is no gateway to ask.
    pub(super) fn add_neighbours<'r>(&mut self, known: impl Iterator<Item = &'r AnswerRecord>) {
        if !self.all.is_empty() {
            return;
        }
        for one in known.filter(|one| one.has_answered()) {
            self.add_hop(one.address, &one.dev);
        }
        for question in &mut self.all {
            question.role = Role::Neighbour;
        }
    }

    /// The number of the question about a gateway, which is added if there is none.
    fn number(&mut self, gateway: IpAddr, dev: &IfName) -> usize {
        let next = self.all.len();
        let at = *self.known.entry((gateway, dev.clone())).or_insert(next);
        if at == next {
            self.all.push(self.question(gateway, dev));
        }
        at
    }

    /// An address of an advertisement that is gone with all others of such addresses, and its link.
    fn advertised(&self) -> Option<(Lack, IfName)> {
        let is_advertised = |one: &&Address| one.maker == Maker::Network && is_source(one);
        let was = self
            .then
            .as_ref()?
            .state
            .addresses
            .iter()
            .find(is_advertised)?;
        let mut now = self.now.state.addresses.iter().filter(is_advertised);
        let address = IpNet::new(was.local, was.prefix_len).ok()?;
        let lack = Lack {
            address,
            kind: LackKind::Awaited,
        };
        now.next().is_none().then(|| (lack, was.dev.clone()))
    }

    /// The questions; those that are not complete `until` this moment are not probed.
    pub(super) fn finish(mut self, until: Option<Instant>) -> Vec<Question> {
        let mut all = std::mem::take(&mut self.all);
        for question in &mut all {
            question.is_late = until.is_some_and(|until| Instant::now() >= until);
            if !question.is_late {
                self.select(question);
            }
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
            is_late: false,
            role: Role::Gateway,
            before: PastAnswer::Unknown,
            path: Path::default(),
        }
    }

    /// What is missing of the addresses that the link had, unless the namespace has another address of their family.
    fn lack(&self, dev_then: &IfName, family: IpFamily) -> Option<Lack> {
        let is_own = |one: &&Address| is_source(one) && family_of(one.local) == family;
        let mut wanted = self.then.as_ref()?.addresses_of(dev_then).iter().copied();
        let wanted = wanted.find(|one| is_own(one) && one.is_owned())?;
        let mut now = self.now.state.addresses.iter().filter(is_own);
        if now.any(is_usable) {
            return None;
        }
        let mut now = self.now.state.addresses.iter();
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
        let (net, source, table, tos, _) = route.place();
        let is_plain = route.nature().0 == KIND_UNICAST && source.is_none() && tos == 0;
        // What a daemon has withdrawn is not missed.
        let is_wanted = is_plain && (route.is_owned() || self.present.contains(route));
        let found = is_wanted.then(|| self.destinations.address(net, table, gateway));
        Some((net, found??))
    }

    /// How packets are sent that take the routes through the gateway.
    fn select(&self, question: &mut Question) {
        let link = self.now.link(&question.dev);
        let addresses = self.now.addresses_of(&question.dev).iter();
        let sources = addresses
            .filter(|one| one.local.is_ipv4() == question.gateway.is_ipv4())
            .filter(|one| is_source(one) && is_usable(one))
            .map(|one| one.local);
        let by_source = sources.clone().take(MOST_SELECTORS).map(|source| Selector {
            source: Some(source),
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
        let is_ipv6 = question.gateway.is_ipv6();
        let tables = path.tables.iter();
        let rules = tables.filter_map(|table| self.rules.get(&(is_ipv6, *table)));
        let rules = rules.flatten();
        let sources: BTreeSet<IpAddr> = sources.collect();
        path.is_decisive = rules
            .clone()
            .any(|rule| is_met(rule, &sources, &path.behind));
        let marks: BTreeSet<u32> = rules.filter_map(|rule| rule.fwmark).collect();
        let by_mark = marks.iter().take(MOST_SELECTORS).map(|mark| Selector {
            mark: Some(*mark),
            ..Selector::default()
        });
        path.has_more = sources.len().max(marks.len()) > MOST_SELECTORS;
        path.selectors = by_source.chain(by_mark).chain([plain]).collect();
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
pub(super) fn is_source(address: &Address) -> bool {
    let is_link_local = matches!(address.local, IpAddr::V6(ip) if ip.is_unicast_link_local());
    !address.is_shared() && !is_link_local && !address.local.is_loopback()
}

fn is_usable(address: &Address) -> bool {
    address.local.is_ipv4() || address.flags & (TENTATIVE | DADFAILED) == 0
}
