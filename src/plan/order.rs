//! What the kernel changes only if it is deleted and added again: the order of addresses, routes and rules, and some attributes
//! of addresses.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::net::IpAddr;

use ipnet::IpNet;

use super::addresses::Identity;
use crate::model::net::address::in_adding_order;
use crate::model::net::route::own::{self, OwnRoutes};
use crate::model::{Address, IfName, NetState, Route};
use crate::plan::{NetlinkStep, OrderedObject, Rewrite};

/// Where the present objects of an order end to be right: the first `usize` of the wanted ones stay, the others that are
/// present must be written anew. `None` if the missing ones need only be appended, or nothing is missing.
pub(super) fn first_misplaced<T: Eq + Hash>(wanted: &[&T], present: &[&T]) -> Option<usize> {
    let known: HashSet<&T> = wanted.iter().copied().collect();
    let mut in_order = present.iter().filter(|now| known.contains(*now)).peekable();
    let right = wanted
        .iter()
        .take_while(|then| in_order.next_if(|now| now == then).is_some())
        .count();
    in_order.peek().is_some().then_some(right)
}

/// The one step that writes addresses of a link anew.
pub(super) struct Rewritten {
    /// Until it is planned.
    pub step: Option<NetlinkStep>,
    /// The addresses that it adds.
    pub added: HashSet<Identity>,
}

/// For each link with addresses that must be written anew: the step. `recorded` is in the order of adding.
pub(super) fn of_addresses(recorded: &[Address], now: &NetState) -> BTreeMap<IfName, Rewritten> {
    let mut links: BTreeMap<&IfName, Vec<&Address>> = BTreeMap::new();
    for address in recorded {
        links.entry(&address.dev).or_default().push(address);
    }
    let mut present: HashMap<&IfName, Vec<&Address>> = HashMap::new();
    for address in in_adding_order(now.addresses.iter()) {
        present.entry(&address.dev).or_default().push(address);
    }
    let mut steps = BTreeMap::new();
    for (dev, recorded) in links {
        let Some(present) = present.get(dev) else {
            continue;
        };
        let link = OnLink::new(recorded, present);
        let gone = link.to_delete();
        if !gone.is_empty() {
            steps.insert(dev.clone(), link.rewrite(&gone, now));
        }
    }
    steps
}

/// What puts the present address of a `secret`, which only the kernel makes, in its place among the link-local ones of its link,
/// which was `then`: those behind it are written anew, or it is deleted alone, to be made again behind those before it.
pub(super) fn around_secret(
    secret: &Address,
    then: &IfName,
    wanted: &NetState,
    now: &NetState,
) -> Option<Rewrite> {
    let (earlier, later) = beside(secret, then, wanted)?;
    let (before, behind) = beside(secret, &secret.dev, now)?;
    let known = identities(earlier);
    if behind.iter().any(|one| known.contains(&one.identity())) {
        return Some(to_make_anew(secret));
    }
    let known = identities(later.iter().copied());
    if !before.iter().any(|one| known.contains(&one.identity())) {
        return None;
    }
    let present: HashMap<Identity, &Address> = before
        .into_iter()
        .chain(behind)
        .map(|now| (now.identity(), now))
        .collect();
    let again = later
        .iter()
        .filter_map(|then| present.get(&then.identity()));
    let again: Vec<OrderedObject> = again
        .map(|now| OrderedObject::Address((*now).clone()))
        .collect();
    Some(Rewrite {
        gone: again.clone(),
        added: again,
    })
}

/// What deletes an address that the kernel makes.
pub(super) fn to_make_anew(address: &Address) -> Rewrite {
    Rewrite {
        gone: vec![OrderedObject::Address(address.clone())],
        added: Vec::new(),
    }
}

/// The addresses of a link and a scope that were added before this one and behind it.
fn beside<'a>(
    secret: &Address,
    dev: &IfName,
    state: &'a NetState,
) -> Option<(Vec<&'a Address>, Vec<&'a Address>)> {
    let of_scope = state
        .addresses
        .iter()
        .filter(|one| one.dev == *dev && one.local.is_ipv6() && one.scope == secret.scope);
    let mut before: Vec<&Address> = in_adding_order(of_scope).collect();
    let mut all = before.iter();
    let place = all.position(|one| one.identity() == secret.identity())?;
    let behind = before.split_off(place + 1);
    before.pop();
    Some((before, behind))
}

/// The addresses of one link, in the order of adding.
struct OnLink<'a> {
    recorded: Vec<&'a Address>,
    present: &'a [&'a Address],
    known: HashSet<Identity>,
    /// The subnets with a primary address that the checkpoint lacks.
    foreign: HashSet<Option<IpNet>>,
}

impl<'a> OnLink<'a> {
    fn new(recorded: Vec<&'a Address>, present: &'a [&'a Address]) -> Self {
        let known = identities(recorded.iter().copied());
        let foreign = present
            .iter()
            .filter(|now| {
                now.local.is_ipv4() && !now.is_secondary() && !known.contains(&now.identity())
            })
            .map(|now| now.subnet())
            .collect();
        Self {
            recorded,
            present,
            known,
            foreign,
        }
    }

    /// The present addresses that must be deleted. Each that goes may misplace others, which then go as well.
    fn to_delete(&self) -> Vec<&'a Address> {
        let mut gone = HashSet::new();
        let mut both = self.recorded.iter().zip(self.present);
        let is_right = |(then, now): (&&Address, &&Address)| {
            then.identity() == now.identity() && !self.is_misplaced(now, then)
        };
        if self.recorded.len() == self.present.len() && both.all(is_right) {
            return Vec::new();
        }
        loop {
            let before = gone.len();
            self.add_misplaced(&mut gone);
            self.add_followers(&mut gone);
            if gone.len() == before {
                break;
            }
        }
        let all = self.present.iter().copied();
        all.filter(|now| gone.contains(&now.identity())).collect()
    }

    /// Adds those that come, in their class, after one that must be added.
    fn add_misplaced(&self, gone: &mut HashSet<Identity>) {
        for class in self.classes() {
            let members = identities(class.iter().copied());
            let staying: Vec<&Address> = self
                .present
                .iter()
                .copied()
                .filter(|now| {
                    let id = now.identity();
                    members.contains(&id) && !gone.contains(&id)
                })
                .collect();
            let mut in_order = staying.iter().peekable();
            let right = class
                .iter()
                .take_while(|then| {
                    let next = in_order.next_if(|now| now.identity() == then.identity());
                    next.is_some_and(|now| !self.is_misplaced(now, then))
                })
                .count();
            let behind = identities(class[right..].iter().copied());
            let ids = staying.iter().map(|now| now.identity());
            gone.extend(ids.filter(|id| behind.contains(id)));
        }
    }

    /// Adds the secondary addresses of each primary one that goes: the kernel deletes or promotes them.
    fn add_followers(&self, gone: &mut HashSet<Identity>) {
        let subnets: HashSet<_> = self
            .present
            .iter()
            .filter(|now| gone.contains(&now.identity()))
            .filter(|now| now.local.is_ipv4() && !now.is_secondary())
            .map(|now| now.subnet())
            .collect();
        let followers = self
            .present
            .iter()
            .filter(|now| now.is_secondary() && subnets.contains(&now.subnet()));
        gone.extend(followers.map(|now| now.identity()));
    }

    /// Recorded addresses among which the order counts: the kernel lists primary IPv4 addresses and IPv6 addresses by scope, and
    /// the secondary IPv4 addresses behind the primary ones (`__inet_insert_ifa` in `net/ipv4/devinet.c`).
    fn classes(&self) -> Vec<Vec<&'a Address>> {
        let mut classes: BTreeMap<_, Vec<&Address>> = BTreeMap::new();
        for then in &self.recorded {
            let (is_ipv6, is_secondary) = (then.local.is_ipv6(), then.is_secondary());
            let scope = (is_ipv6 || !is_secondary).then_some(then.scope);
            let class = (is_ipv6, is_secondary, scope);
            classes.entry(class).or_default().push(then);
        }
        classes.into_values().collect()
    }

    /// Whether an address has attributes that only a new one can have, or is another machine's, which may have released it, or no packets are delivered to it any more, or it is
    /// primary and was secondary, or the reverse. Behind a primary address that the checkpoint lacks it stays secondary.
    fn is_misplaced(&self, now: &Address, then: &Address) -> bool {
        let changes_rank = now.is_secondary() != then.is_secondary();
        let is_undelivered = now.without_local && !then.without_local;
        !now.has_fixed_of(then)
            || now.has_failed_detection()
            || is_undelivered
            || (changes_rank && !self.foreign.contains(&now.subnet()))
    }

    /// The step that deletes these addresses, and adds them and what is missing in order, with the routes that the kernel
    /// deletes with them: those with such a source, and all IPv4 routes with the last IPv4 address.
    fn rewrite(&self, gone: &[&Address], now: &NetState) -> Rewritten {
        let deleted = identities(gone.iter().copied());
        let present = self.present.iter().map(|now| now.identity());
        let stays: HashSet<Identity> = present.filter(|id| !deleted.contains(id)).collect();
        let missing = self
            .recorded
            .iter()
            .filter(|then| !stays.contains(&then.identity()));
        let surplus = gone
            .iter()
            .filter(|now| !self.known.contains(&now.identity()));
        let added: Vec<&Address> = missing.chain(surplus).copied().collect();
        let routes = self.routes_gone_with(gone, now);
        let address = |one: &&Address| OrderedObject::Address((*one).clone());
        let again = added.iter().map(address);
        let step = Rewrite {
            gone: gone.iter().rev().map(address).collect(),
            added: again
                .chain(routes.into_iter().map(OrderedObject::Route))
                .collect(),
        };
        Rewritten {
            step: Some(NetlinkStep::Rewrite(Box::new(step))),
            added: identities(added.iter().copied()),
        }
    }

    /// The routes that the kernel deletes with these addresses and does not make with them, in the order in which it accepts them.
    /// What it made for an address that was promoted, and is secondary again, goes for good.
    fn routes_gone_with(&self, gone: &[&Address], now: &NetState) -> Vec<Route> {
        let count = |all: &[&Address]| all.iter().filter(|one| one.local.is_ipv4()).count();
        let takes_all = count(gone) == count(self.present);
        let dev = &gone[0].dev;
        let sources: HashSet<IpAddr> = gone.iter().map(|one| one.local).collect();
        let devices = own::devices(&now.links);
        let made = OwnRoutes::new(now, &devices, now.routes.iter());
        let others = now.routes.iter().filter(|route| !made.has(route));
        let mut routes: Vec<Route> = others
            .filter(|route| {
                let source = route.prefsrc;
                source.is_some_and(|source| sources.contains(&source))
                    || (takes_all && !route.is_ipv6() && route.devs().contains(&dev))
            })
            .cloned()
            .collect();
        routes.sort_by_cached_key(Route::rank);
        routes
    }
}

fn identities<'a>(addresses: impl IntoIterator<Item = &'a Address>) -> HashSet<Identity> {
    addresses.into_iter().map(Address::identity).collect()
}
