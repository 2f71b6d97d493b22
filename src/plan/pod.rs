//! Plans one pod: its macvlans and the links above them, addresses, routes and rules.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::hash::Hash;

use super::link::{LinkPlanner, diff, ipv6};
use super::{addresses, routes, traffic};
use crate::model::net::address::Maker;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{Address, Claim, IfName, Indexed, Link, LinkKind, NetState, Parent, Problem};
use crate::plan::{HostDevice, HostLinks, NetlinkStep, Observed, Plan, Step};

/// The plan for a pod's namespace, with the host's links as parents. What is `withheld` is neither restored nor surplus.
#[must_use]
pub fn pod(
    recorded: &NetState,
    withheld: &BTreeSet<Claim>,
    observed: Observed<'_>,
    host: &HostLinks,
) -> Plan {
    let wanted = without(recorded, withheld);
    let mut planner = PodPlanner::new(recorded, &wanted, observed, host);
    planner.all_links();
    planner.objects();
    planner.surplus();
    planner.links.plan
}

/// The links on links of the host that the pod's plan creates, where these links are there now.
#[must_use]
pub fn missing_links(
    recorded: &NetState,
    withheld: &BTreeSet<Claim>,
    now: &NetState,
    host: &HostLinks,
) -> Vec<Link> {
    let observed = Observed {
        state: now,
        new_link: None,
        age: 0,
    };
    let wanted = without(recorded, withheld);
    let mut planner = PodPlanner::new(recorded, &wanted, observed, host);
    planner.all_links();
    let missing = planner
        .links
        .plan
        .steps
        .into_iter()
        .filter_map(|step| match step {
            Step::AddLink(link) if link.is_on_host() => Some(*link),
            _ => None,
        });
    // Not in the memory of all steps.
    missing.collect::<Vec<_>>().into_boxed_slice().into_vec()
}

/// One note for all leased addresses of the pod.
fn note_of<'a>(mut leased: impl Iterator<Item = &'a Address>) -> Option<Problem> {
    let first = leased.next()?;
    let more = leased.count();
    Some(PlanCause::Leased { more }.info(first))
}

fn without<'a>(recorded: &'a NetState, withheld: &BTreeSet<Claim>) -> Cow<'a, NetState> {
    if withheld.is_empty() {
        Cow::Borrowed(recorded)
    } else {
        Cow::Owned(recorded.without(withheld))
    }
}

struct PodPlanner<'a> {
    recorded: &'a NetState,
    /// From the recorded state without what is withheld.
    links: LinkPlanner<'a>,
    host: &'a HostLinks,
    /// Links that exist, and can have addresses and routes.
    settled: BTreeSet<IfName>,
    /// Links that the plan creates.
    added: BTreeSet<IfName>,
}

impl<'a> PodPlanner<'a> {
    fn new(
        recorded: &'a NetState,
        wanted: &'a NetState,
        observed: Observed<'a>,
        host: &'a HostLinks,
    ) -> Self {
        Self {
            recorded,
            links: LinkPlanner::new(wanted, observed),
            host,
            settled: BTreeSet::new(),
            added: BTreeSet::new(),
        }
    }

    fn all_links(&mut self) {
        for link in &self.links.wanted.state.links {
            match self.links.now.link(&link.name) {
                Some(now) => self.existing(link, now),
                None => self.missing(link),
            }
        }
    }

    fn existing(&mut self, wanted: &Link, now: &Link) {
        if let Some(problem) = diff::conflict(wanted, now) {
            return self.links.report(problem);
        }
        if let Some(cause) = self.other_parent(wanted, now) {
            return self.links.report(cause.error(&wanted.name));
        }
        self.settled.insert(wanted.name.clone());
        self.links.cannot_restore(wanted, Some(now));
        if wanted.index != 0 && wanted.index != now.index {
            let cause = PlanCause::IfindexDiffers {
                now: now.index,
                then: wanted.index,
            };
            self.links.report(cause.warning(&wanted.name));
        }
        self.links.settle(wanted, now, None);
    }

    fn other_parent(&self, wanted: &Link, now: &Link) -> Option<ConflictCause> {
        let (then, now) = (wanted.parent.as_ref()?, now.parent.as_ref()?);
        let then = self.parent_now(then);
        (then != *now).then(|| ConflictCause::OtherParent {
            now: now.name().cloned(),
            then: then.name().cloned(),
        })
    }

    fn parent_now(&self, then: &Parent) -> Parent {
        match then {
            Parent::Host(name) => Parent::Host(self.host.name_now(name)),
            other => other.clone(),
        }
    }

    /// A device comes back in the host's namespace.
    fn device(&mut self, wanted: &Link) {
        let hardware = wanted.hardware.as_ref();
        let mut devices = self.host.devices.iter();
        let device = devices
            .find(|device| hardware.is_some_and(|hardware| hardware.is_same(&device.hardware)));
        let problem = match device {
            None => {
                let hardware = hardware.cloned();
                PlanCause::DeviceMissing { hardware }.error(&wanted.name)
            }
            Some(HostDevice {
                name,
                in_use: Some(role),
                ..
            }) => {
                let (device, role) = (name.clone(), role.clone());
                ConflictCause::DeviceInUse { device, role }.error(&wanted.name)
            }
            Some(device) => {
                let parent = Some(Parent::Host(device.name.clone()));
                let link = Link {
                    parent,
                    ..wanted.clone()
                };
                self.added.insert(link.name.clone());
                return self.links.plan.push(Step::add_link(link));
            }
        };
        self.links.report(problem);
    }

    fn missing(&mut self, wanted: &Link) {
        if wanted.kind == LinkKind::Physical {
            return self.device(wanted);
        }
        let cause = match (&wanted.parent, wanted.kind.can_be_made()) {
            (None | Some(Parent::Elsewhere), _) | (_, false) => Some(PlanCause::KindMissing {
                kind: wanted.kind.name().to_owned(),
            }),
            (Some(Parent::Host(name)), true) => {
                let parent = name.clone();
                let is_missing = !self.host.present.contains(name);
                is_missing.then_some(PlanCause::HostLinkMissing { parent })
            }
            (Some(Parent::Own(name)), true) => {
                let parent = name.clone();
                let is_missing = !self.is_there(name);
                is_missing.then_some(PlanCause::OwnLinkMissing { parent })
            }
        };
        if let Some(cause) = cause {
            return self.links.report(cause.error(&wanted.name));
        }
        let link = Link {
            parent: wanted.parent.as_ref().map(|then| self.parent_now(then)),
            mac: wanted.mac.filter(|_| !self.inherits_mac(wanted)),
            ..wanted.clone()
        };
        let fresh = self.links.fresh(&link);
        self.added.insert(link.name.clone());
        self.links.plan.push(Step::add_link(link));
        self.links.cannot_restore(wanted, None);
        if let Some(base) = fresh {
            self.settled.insert(wanted.name.clone());
            self.links.settle(wanted, &base, None);
        }
    }

    /// Whether a VLAN on a link of the host has the MAC of that: one that is set would not follow it any more.
    fn inherits_mac(&self, wanted: &Link) -> bool {
        let parent = wanted.parent.as_ref().and_then(Parent::name);
        let of_parent = parent.and_then(|parent| self.host.macs.get(parent));
        matches!(wanted.kind, LinkKind::Vlan(_)) && wanted.mac.as_ref() == of_parent
    }

    /// Whether a link of the pod exists or is planned.
    fn is_there(&self, name: &IfName) -> bool {
        self.settled.contains(name) || self.added.contains(name)
    }

    /// Addresses, neighbours, routes and rules of every link that exists, in the order in which the kernel accepts them.
    fn objects(&mut self) {
        let LinkPlanner {
            wanted,
            observed,
            plan,
            ..
        } = &mut self.links;
        let Observed {
            state: now, age, ..
        } = *observed;
        let wanted = &*ipv6::addable(wanted.state, *observed, plan);
        let is_settled = |dev: &IfName| self.settled.contains(dev);
        let addresses = wanted.addresses.iter();
        let leased = addresses.filter(|one| one.is_leased() && is_settled(&one.dev));
        plan.problems.extend(note_of(leased));
        let superfluous = addresses::steps(
            wanted,
            *observed,
            &|dev| is_settled(dev).then(|| dev.clone()),
            plan,
        );
        let routes = wanted
            .routes
            .iter()
            .filter(|route| route.devs().into_iter().all(is_settled))
            .cloned();
        let nexthops = wanted
            .nexthops
            .iter()
            .filter(|nexthop| nexthop.dev.as_ref().is_none_or(is_settled))
            .cloned();
        let nexthops = routes::nexthops(nexthops, &now.nexthops);
        routes::steps(routes, &now.routes, nexthops, age, plan);
        routes::rules(&wanted.rules, &now.rules, plan);
        plan.extend(superfluous.into_iter().map(NetlinkStep::DeleteRoute));
        let lost = beyond(&wanted.unsupported, &now.unsupported);
        plan.problems
            .extend(lost.map(|what| PlanCause::ObjectLost.error(what)));
    }

    /// Reports objects that the checkpoint lacks; they are left unchanged.
    fn surplus(&mut self) {
        let recorded = self.recorded;
        let LinkPlanner { observed, plan, .. } = &mut self.links;
        let NetState {
            links,
            addresses,
            routes,
            nexthops,
            rules,
            neighbours,
            unsupported: _,
        } = observed.state;
        let problems = &mut plan.problems;
        surplus_of_links(&recorded.links, links, problems);
        let other_addresses = other_addresses(recorded, addresses);
        problems.extend(surplus_of("address", other_addresses));
        // A version of a recorded route is changed, and then no other one is in its place.
        let changed: HashSet<_> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Netlink(NetlinkStep::ChangeRoute(route)) => Some(route.place()),
                _ => None,
            })
            .collect();
        let other_routes =
            beyond(routes, &recorded.routes).filter(|now| !changed.contains(&now.place()));
        problems.extend(surplus_of("route", other_routes));
        let known: HashSet<u32> = recorded.nexthops.iter().map(|nexthop| nexthop.id).collect();
        let other_nexthops = nexthops.iter().filter(|now| !known.contains(&now.id));
        problems.extend(surplus_of("nexthop", other_nexthops));
        problems.extend(surplus_of("rule", beyond(rules, &recorded.rules)));
        let other_neighbours = beyond(neighbours, &recorded.neighbours);
        problems.extend(surplus_of("neighbour", other_neighbours));
    }
}

/// Reports links that are not recorded, and what recorded links have beyond the record.
fn surplus_of_links(recorded: &[Link], now: &[Link], problems: &mut Vec<Problem>) {
    let known: HashMap<_, _> = recorded.iter().map(|link| (&link.name, link)).collect();
    let links = now
        .iter()
        .map(|now| &now.name)
        .filter(|now| !known.contains_key(now));
    problems.extend(surplus_of("link", links));
    let aliases = now
        .iter()
        .filter(|now| {
            let then = known.get(&now.name);
            now.alias.is_some() && then.is_some_and(|then| then.alias.is_none())
        })
        .map(|now| &now.name);
    problems.extend(surplus_of("alias of link", aliases));
    let groups = now.iter().flat_map(|now| {
        let then = known.get(&now.name).map_or(&[][..], |then| &then.groups);
        let groups = now.groups.iter().filter(|group| !then.contains(group));
        groups.map(|group| format!("{group} dev {}", now.name))
    });
    problems.extend(surplus_of("group", groups));
    let traffic = now
        .iter()
        .filter_map(|now| Some(traffic::surplus(known.get(&now.name)?, now)))
        .flatten();
    problems.extend(traffic.map(|now| PlanCause::Surplus.info(now)));
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
        let is_new = !now.comes_by_itself()
            || (now.maker == Maker::Kernel && lacked_link_local(&now.dev, &recorded));
        is_new && !known.contains(&key(now))
    })
}

/// Whether a link had no address from the kernel, because it was removed or is not to be made.
fn lacked_link_local(dev: &IfName, recorded: &Indexed<'_>) -> bool {
    recorded.link(dev).is_some_and(|link| {
        link.sysctls.ipv6.contains_key(&ipv6::ADDR_GEN_MODE)
            && ipv6::lacks_link_local(link, recorded)
    })
}

/// The objects of `all` that `known` lacks, in their order.
fn beyond<'a, T: Eq + Hash>(all: &'a [T], known: &'a [T]) -> impl Iterator<Item = &'a T> {
    let same = all == known;
    let known: HashSet<&T> = known.iter().filter(|_| !same).collect();
    all.iter().filter(move |one| !same && !known.contains(one))
}

/// A note for each object of one kind that the checkpoint lacks.
fn surplus_of(kind: &str, objects: impl Iterator<Item: Display>) -> impl Iterator<Item = Problem> {
    objects.map(move |now| PlanCause::Surplus.info(format!("{kind} {now}")))
}
