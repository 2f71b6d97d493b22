//! Plans the host's links: devices, bonds, VLANs and macvlans, with their addresses and routes.

use std::collections::BTreeSet;

use super::{
    Change, HostDevice, HostLinks, Observed, Plan, Step, addresses, nexthops, routes, traffic,
};
use crate::model::net::link::bond::Bond;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{IfName, Indexed, Link, LinkKind, NetState, Nexthop, Parent};
use crate::plan::link_diff::{self, closure, fresh_link};
use crate::plan::link_ipv6;

/// The plan for the host's namespace, and the parents that its pods' links then have.
///
/// `devices` are the lost devices; the links above them are in scope too.
#[must_use]
pub fn host(
    wanted: &NetState,
    observed: Observed<'_>,
    devices: &BTreeSet<IfName>,
) -> (Plan, HostLinks) {
    let mut planner = Planner {
        wanted: Indexed::new(wanted),
        now: Indexed::new(observed.state),
        observed,
        plan: Plan::default(),
        links: HostLinks {
            devices: HostDevice::all(observed.state),
            ..HostLinks::default()
        },
    };
    let links = planner.in_scope(devices.clone());
    for link in &links {
        planner.link(link);
    }
    planner.finish(&links);
    (planner.plan, planner.links)
}

struct Planner<'a> {
    wanted: Indexed<'a>,
    now: Indexed<'a>,
    observed: Observed<'a>,
    plan: Plan,
    links: HostLinks,
}

impl<'a> Planner<'a> {
    /// The links in scope, each after its parent or ports.
    fn in_scope(&self, devices: BTreeSet<IfName>) -> Vec<&'a Link> {
        let wanted = &self.wanted.state.links;
        let names = closure(devices, wanted);
        let mut links: Vec<_> = wanted
            .iter()
            .filter(|link| names.contains(&link.name))
            .collect();
        links.sort_by_cached_key(|link| (self.depth(link, 0), link.index));
        links
    }

    /// The number of levels below a link. The kernel allows 8; more means a loop in a damaged file.
    fn depth(&self, link: &Link, level: usize) -> usize {
        const MAX_NESTING: usize = 8;
        if level > MAX_NESTING {
            return level;
        }
        let below = self
            .wanted
            .state
            .links
            .iter()
            .filter(|other| is_above(link, other));
        below
            .map(|other| 1 + self.depth(other, level + 1))
            .max()
            .unwrap_or_default()
    }

    fn link(&mut self, wanted: &Link) {
        if wanted.kind.can_be_made() {
            self.made(wanted);
        } else if wanted.parent.is_some() {
            self.unsupported(wanted);
        } else {
            self.device(wanted);
        }
    }

    /// The driver recreates a device, maybe under another name.
    fn device(&mut self, wanted: &Link) {
        let Some(now) = find_device(wanted, &self.observed.state.links) else {
            let hardware = wanted.hardware.clone();
            let cause = PlanCause::DeviceMissing { hardware };
            return self.plan.problems.push(cause.error(&wanted.name));
        };
        if now.name != wanted.name {
            let cause = PlanCause::DeviceRenamed {
                now: now.name.clone(),
                then: wanted.name.clone(),
            };
            self.plan.problems.push(cause.warning(&wanted.name));
            self.links
                .renamed
                .insert(wanted.name.clone(), now.name.clone());
        }
        self.can_be_parent(wanted);
        link_diff::cannot_restore(wanted, Some(now), &self.wanted, &self.now, &mut self.plan);
        let states = (&self.wanted, &self.now);
        let new_link = self.observed.new_link;
        let now = &*link_diff::attributes_with_ipv6(wanted, now, states, new_link, &mut self.plan);
        link_diff::port(wanted, now, &self.wanted, &self.now, &mut self.plan);
        link_diff::sysctls(wanted, now, &self.wanted, &mut self.plan);
        traffic::steps(wanted, now, &self.now, &mut self.plan);
        link_ipv6::up(wanted, now, &self.wanted, &mut self.plan);
    }

    /// The link exists or will, and can be a parent.
    fn can_be_parent(&mut self, wanted: &Link) {
        self.links.present.insert(wanted.name.clone());
        self.links.mtus.insert(wanted.name.clone(), wanted.mtu);
        let mac = wanted.mac.map(|mac| (wanted.name.clone(), mac));
        self.links.macs.extend(mac);
    }

    fn unsupported(&mut self, wanted: &Link) {
        match self.now.link(&wanted.name) {
            Some(now) if now.kind.name() == wanted.kind.name() => {
                self.can_be_parent(wanted);
            }
            _ => {
                let kind = wanted.kind.name().to_owned();
                let cause = PlanCause::KindMissing { kind };
                self.plan.problems.push(cause.error(&wanted.name));
            }
        }
    }

    fn made(&mut self, wanted: &Link) {
        let parent = match &wanted.parent {
            Some(Parent::Own(name)) if !self.links.present.contains(name) => {
                let parent = name.clone();
                let cause = PlanCause::OwnLinkMissing { parent };
                return self.plan.problems.push(cause.error(&wanted.name));
            }
            Some(Parent::Own(name)) => Some(self.links.name_now(name)),
            _ => None,
        };
        let now = self.now.link(&wanted.name);
        if let Some(problem) = now.and_then(|now| link_diff::conflict(wanted, now)) {
            self.plan.problems.push(problem);
            return;
        }
        if now.is_none() && !self.create(wanted, parent) {
            return;
        }
        self.can_be_parent(wanted);
        link_diff::cannot_restore(wanted, now, &self.wanted, &self.now, &mut self.plan);
        let fresh = fresh_link(wanted, self.observed);
        if let Some(base) = now.or(fresh.as_ref()) {
            self.settle(wanted, base);
        }
    }

    /// Plans the creation; `false` when another link prevents it.
    fn create(&mut self, wanted: &Link, parent: Option<IfName>) -> bool {
        if let Some(other) = parent
            .as_ref()
            .and_then(|parent| self.same_vlan(wanted, parent))
        {
            let by = other.name.clone();
            let cause = ConflictCause::VlanIdTaken { by };
            self.plan.problems.push(cause.error(&wanted.name));
            return false;
        }
        let mut link = wanted.clone();
        link.parent = parent.map(Parent::Own);
        if self.inherits_mac(wanted) {
            link.mac = None;
        }
        self.plan.steps.push(Step::add_link(link));
        true
    }

    /// The link with another name that has this VLAN's id on its parent.
    fn same_vlan(&self, wanted: &Link, parent: &IfName) -> Option<&'a Link> {
        let LinkKind::Vlan(vlan) = &wanted.kind else {
            return None;
        };
        self.observed.state.links.iter().find(|now| {
            matches!(&now.kind, LinkKind::Vlan(other) if other.id == vlan.id && other.protocol == vlan.protocol)
                && now.parent == Some(Parent::Own(parent.clone()))
        })
    }

    /// Whether a VLAN has its parent's MAC: setting it would stop it from following the parent.
    fn inherits_mac(&self, wanted: &Link) -> bool {
        let LinkKind::Vlan(_) = wanted.kind else {
            return false;
        };
        let Some(Parent::Own(parent)) = &wanted.parent else {
            return false;
        };
        self.wanted
            .link(parent)
            .is_some_and(|parent| parent.mac == wanted.mac)
    }

    /// Whether the plan changes the parent's MAC, which the VLAN follows.
    fn parent_changes_mac(&self, wanted: &Link) -> bool {
        let Some(Parent::Own(parent)) = &wanted.parent else {
            return false;
        };
        let dev = self.links.name_now(parent);
        self.plan.steps.iter().any(|step| match step {
            Step::SetLink {
                dev: changed,
                change: Change::Mac(_) | Change::Master(_),
                ..
            } => *changed == dev,
            _ => false,
        })
    }

    fn settle(&mut self, wanted: &Link, now: &Link) {
        let mut target = wanted.clone();
        if self.inherits_mac(wanted) && self.parent_changes_mac(wanted) {
            target.mac = now.mac;
        }
        let states = (&self.wanted, &self.now);
        let new_link = self.observed.new_link;
        let now = &*link_diff::attributes_with_ipv6(&target, now, states, new_link, &mut self.plan);
        link_diff::port(wanted, now, &self.wanted, &self.now, &mut self.plan);
        link_diff::kind_data(wanted, now, &mut self.plan);
        link_diff::sysctls(wanted, now, &self.wanted, &mut self.plan);
        traffic::steps(wanted, now, &self.now, &mut self.plan);
        if let (LinkKind::Bond(then), LinkKind::Bond(bond)) = (&wanted.kind, &now.kind) {
            self.bond(wanted, then, bond);
        }
        link_ipv6::up(wanted, now, &self.wanted, &mut self.plan);
    }

    /// Options before ports, and ports before `primary`, which must be one of them.
    fn bond(&mut self, wanted: &Link, then: &Bond, now: &Bond) {
        let dev = &wanted.name;
        let set = |change| Step::set(dev, change);
        if then.mode != now.mode {
            let cause = ConflictCause::OtherBondMode {
                now: now.mode_name().to_owned(),
                then: then.mode_name().to_owned(),
            };
            self.plan.problems.push(cause.error(&wanted.name));
        }
        for (option, value) in &then.options {
            if now
                .options
                .get(option)
                .is_some_and(|current| current != value)
            {
                self.plan
                    .steps
                    .push(set(Change::BondOption(*option, *value)));
            }
        }
        let lists = |bond: &Bond| {
            (
                bond.arp_ip_target.clone(),
                bond.ns_ip6_target.clone(),
                bond.ad_actor_system,
            )
        };
        if lists(then) != lists(now) {
            self.plan
                .steps
                .push(set(Change::BondLists(Box::new(then.clone()))));
        }
        self.ports(dev);
        if let Some(primary) = then
            .primary
            .as_ref()
            .filter(|name| now.primary.as_ref() != Some(name))
        {
            let primary = self.links.name_now(primary);
            self.plan.steps.push(set(Change::BondPrimary(primary)));
        }
    }

    fn ports(&mut self, bond: &IfName) {
        let ports = self
            .wanted
            .state
            .links
            .iter()
            .filter(|link| link.master.as_ref() == Some(bond));
        for port in ports.filter(|port| self.links.present.contains(&port.name)) {
            let Some(now) = self.now.link(&self.links.name_now(&port.name)) else {
                continue;
            };
            if now.master.as_ref() == Some(bond) {
                continue;
            }
            if let Some(other) = &now.master {
                let cause = ConflictCause::OtherMaster {
                    now: other.clone(),
                    then: bond.clone(),
                };
                self.plan.problems.push(cause.error(&now.name));
                continue;
            }
            let set = |change| Step::set(&now.name, change);
            if now.flags.up {
                self.plan.steps.push(set(Change::Down));
            }
            self.plan.steps.push(set(Change::Master(bond.clone())));
        }
    }

    /// Addresses, neighbours and routes of every link in scope that exists.
    fn finish(&mut self, links: &[&Link]) {
        let wanted = &*link_ipv6::addable(self.wanted.state, self.observed, &self.plan);
        let links: BTreeSet<&IfName> = links.iter().map(|link| &link.name).collect();
        let settled = |then: &IfName| {
            let in_scope = links.contains(then) && self.links.present.contains(then);
            let now = self.links.name_now(then);
            let exists = self.observed.new_link.is_some() || self.now.link(&now).is_some();
            (in_scope && exists).then_some(now)
        };
        let superfluous = addresses::steps(wanted, self.observed, &settled, &mut self.plan);
        let through = |route: &&crate::model::Route| {
            let devs = route.devs();
            !devs.is_empty() && devs.iter().all(|dev| settled(dev).is_some())
        };
        let routes = wanted.routes.iter().filter(through).cloned();
        let routes = routes.map(|route| route.renamed(|dev| self.links.name_now(dev)));
        let Observed { state, age, .. } = self.observed;
        let hops = wanted.nexthops.iter().filter_map(|nexthop| {
            let dev = settled(nexthop.dev.as_ref()?)?;
            let dev = Some(dev);
            Some(Nexthop {
                dev,
                ..nexthop.clone()
            })
        });
        let hops: Vec<Nexthop> = hops.collect();
        let ids: BTreeSet<u32> = hops.iter().map(|nexthop| nexthop.id).collect();
        let is_above = |nexthop: &&Nexthop| nexthop.group.iter().any(|hop| ids.contains(&hop.id));
        let groups = wanted.nexthops.iter().filter(is_above).cloned();
        let nexthops = hops.into_iter().chain(groups);
        let nexthops = nexthops::steps(nexthops, &state.nexthops);
        routes::steps(routes, &state.routes, nexthops, age, &mut self.plan);
        let steps = &mut self.plan.steps;
        steps.extend(superfluous.into_iter().map(Step::DeleteRoute));
    }
}

/// Whether `lower` is the parent or a port of `upper`.
fn is_above(upper: &Link, lower: &Link) -> bool {
    matches!(&upper.parent, Some(Parent::Own(parent)) if *parent == lower.name)
        || (matches!(upper.kind, LinkKind::Bond(_)) && lower.master.as_ref() == Some(&upper.name))
}

/// The device by its permanent MAC and bus address, or by name where it has neither.
fn find_device<'a>(wanted: &Link, links: &'a [Link]) -> Option<&'a Link> {
    match wanted
        .hardware
        .as_ref()
        .filter(|hardware| hardware.is_known())
    {
        Some(hardware) => links
            .iter()
            .find(|now| now.hardware.as_ref().is_some_and(|h| h.is_same(hardware))),
        None => links
            .iter()
            .find(|now| now.name == wanted.name && now.kind.name() == wanted.kind.name()),
    }
}
