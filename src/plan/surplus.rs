//! What a pod has beyond its checkpoint: it is left unchanged, and nothing would bring it back.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use super::link::ipv6;
use super::traffic;
use crate::model::net::address::Maker;
use crate::model::net::nexthop::Nexthop;
use crate::model::net::route::own::{self, OwnRoutes};
use crate::model::problem::PlanCause;
use crate::model::{Address, IfName, Indexed, Link, LinkGraph, NetState, Route};
use crate::plan::{NetlinkStep, Plan, Step};

/// Reports the objects of a pod that its checkpoint lacks, and among them those that are lost with a NIC.
pub(super) fn report(recorded: &NetState, now: &NetState, plan: &mut Plan) {
    // A version of a recorded route is changed, and then no other one is in its place.
    let changed: HashSet<_> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Netlink(NetlinkStep::ChangeRoute(route)) => Some(route.place()),
            _ => None,
        })
        .collect();
    let mut surplus = Surplus {
        links: &now.links,
        at_risk: None,
        nexthops: now.nexthops.iter().map(|one| (one.id, one)).collect(),
        plan,
    };
    surplus.links(&recorded.links, &now.links);
    for address in other_addresses(recorded, &now.addresses) {
        let dev = Some(&address.dev).filter(|_| !address.comes_by_itself());
        surplus.add(format!("address {address}"), dev);
    }
    // The kernel has made them with addresses, or a restore in its place.
    let routes = beyond(&now.routes, &recorded.routes);
    let routes: Vec<&Route> = routes
        .filter(|now| !changed.contains(&now.place()))
        .collect();
    let devices = own::devices(if routes.is_empty() { &[] } else { &now.links });
    let own = OwnRoutes::new(now, &devices, routes.iter().copied());
    let advertised: HashSet<&Route> = recorded.advertised.iter().collect();
    let is_of_others = |route: &Route| own.has(route) || advertised.contains(route);
    for route in routes.into_iter().filter(|now| !is_of_others(now)) {
        let devs = surplus.devs_of(route);
        surplus.add(format!("route {route}"), devs);
    }
    let known: HashSet<u32> = recorded.nexthops.iter().map(|nexthop| nexthop.id).collect();
    for nexthop in now.nexthops.iter().filter(|now| !known.contains(&now.id)) {
        surplus.add(format!("nexthop {nexthop}"), &nexthop.dev);
    }
    // The kernel keeps a rule whose interface is gone.
    for rule in beyond(&now.rules, &recorded.rules) {
        surplus.add(format!("rule {rule}"), []);
    }
    for neighbour in beyond(&now.neighbours, &recorded.neighbours) {
        surplus.add(format!("neighbour {neighbour}"), [&neighbour.dev]);
    }
}

/// Collects the objects.
struct Surplus<'a> {
    links: &'a [Link],
    /// Those that are lost with a NIC, once one is asked for.
    at_risk: Option<BTreeSet<IfName>>,
    nexthops: HashMap<u32, &'a Nexthop>,
    plan: &'a mut Plan,
}

impl<'a> Surplus<'a> {
    /// Adds an object, with the interfaces that it is lost with.
    fn add(&mut self, object: String, devs: impl IntoIterator<Item = &'a IfName>) {
        let mut devs = devs.into_iter();
        let problem = PlanCause::Surplus.info(object);
        let links = self.links;
        let lost = || LinkGraph::new(links).lost_with_host();
        if devs.any(|dev| self.at_risk.get_or_insert_with(lost).contains(dev)) {
            self.plan.unrecorded.push(problem.clone());
        }
        self.plan.problems.push(problem);
    }

    /// Adds links that are not recorded, and what recorded links have beyond the record.
    fn links(&mut self, recorded: &[Link], now: &'a [Link]) {
        let known: HashMap<_, _> = recorded.iter().map(|link| (&link.name, link)).collect();
        for link in now.iter().filter(|now| !known.contains_key(&now.name)) {
            self.add(format!("link {}", link.name), [&link.name]);
        }
        for link in now.iter().filter(|now| now.alias.is_some()) {
            let then = known.get(&link.name);
            if then.is_some_and(|then| then.alias.is_none()) {
                self.add(format!("alias of link {}", link.name), [&link.name]);
            }
        }
        for link in now {
            let then = known.get(&link.name).map_or(&[][..], |then| &then.groups);
            for group in link.groups.iter().filter(|group| !then.contains(group)) {
                self.add(format!("group {group} dev {}", link.name), [&link.name]);
            }
        }
        for link in now {
            let then = known.get(&link.name);
            for object in then.map_or_else(Vec::new, |then| traffic::surplus(then, link)) {
                self.add(object, [&link.name]);
            }
        }
    }

    /// The interfaces of a route, also where it has them from nexthop objects.
    fn devs_of(&self, route: &'a Route) -> Vec<&'a IfName> {
        let by_id = |id: u32| self.nexthops.get(&id).copied();
        let nexthop = route.nexthop.and_then(by_id);
        let of_group = nexthop.iter().flat_map(|nexthop| &nexthop.group);
        let all = of_group
            .filter_map(|member| by_id(member.id))
            .chain(nexthop);
        let devs = all.filter_map(|nexthop| nexthop.dev.as_ref());
        devs.chain(route.devs()).collect()
    }
}

/// The addresses that the record lacks, without those that are to come by themselves.
fn other_addresses<'a>(
    recorded: &NetState,
    now: &'a [Address],
) -> impl Iterator<Item = &'a Address> {
    let recorded = Indexed::new(recorded);
    let key = |address: &Address| (address.dev.clone(), address.identity());
    let known: HashSet<_> = recorded.state.addresses.iter().map(key).collect();
    now.iter().filter(move |now| {
        let is_of_kernel = now.maker == Maker::Kernel;
        let is_new = !now.comes_by_itself()
            || (is_of_kernel && !would_make(recorded.link(&now.dev), now))
            || (is_of_kernel && lacked_link_local(&now.dev, &recorded));
        is_new && !known.contains(&key(now))
    })
}

/// Whether the kernel makes such an address on a link as it was recorded: in another mode, or while the link is down, it does
/// not.
fn would_make(recorded: Option<&Link>, address: &Address) -> bool {
    recorded.is_none_or(|link| address.is_of_mode(link.sysctls.gen_mode()) && link.flags.up)
}

/// Whether a link had no address from the kernel, because it was removed or is not to be made.
fn lacked_link_local(dev: &IfName, recorded: &Indexed<'_>) -> bool {
    recorded.link(dev).is_some_and(|link| {
        link.sysctls.ipv6.contains_key(&ipv6::ADDR_GEN_MODE)
            && ipv6::lacks_link_local(link, recorded)
    })
}

/// The objects of `all` that `known` lacks, in their order.
pub(super) fn beyond<'a, T: Eq + Hash>(
    all: &'a [T],
    known: &'a [T],
) -> impl Iterator<Item = &'a T> {
    let same = all == known;
    let known: HashSet<&T> = known.iter().filter(|_| !same).collect();
    all.iter().filter(move |one| !same && !known.contains(one))
}
