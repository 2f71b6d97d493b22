//! Plans the host's links: devices, bonds, VLANs and macvlans, with their addresses and routes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::link::{LinkPlanner, diff, ifindex, ipv6, lower, makers, sriov};
use super::verdict::host_loss;
use super::{addresses, daemons, routers, routes, snapshot_quality, surplus};
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{IfName, Link, LinkGraph, LinkKind, NetState, Nexthop, Parent, Problem, Route};
use crate::plan::{Change, HostDevice, HostLinks, NetlinkStep, Observed, Plan, Step};

/// The plan for the host's namespace, and the parents that its pods' links then have.
///
/// `devices` are the lost devices; the links above them are in scope too.
#[must_use]
pub fn host(
    wanted: &NetState,
    observed: Observed<'_>,
    devices: &BTreeSet<IfName>,
) -> (Plan, HostLinks) {
    let mut planner = HostPlanner {
        links: LinkPlanner::new(wanted, observed),
        parents: HostLinks {
            devices: HostDevice::all(observed.state),
            ..HostLinks::default()
        },
        coming: BTreeSet::new(),
    };
    let in_scope = planner.in_scope(devices);
    for link in &in_scope {
        planner.link(link);
    }
    planner.objects(&in_scope);
    planner.links.redirects(&in_scope);
    let name_now = |name: &IfName| planner.parents.name_now(name);
    planner.links.backup_ports(&in_scope, name_now);
    planner.lost_for_good(&in_scope, devices);
    (planner.links.plan, planner.parents)
}

struct HostPlanner<'a> {
    links: LinkPlanner<'a>,
    /// What pods can have as parents.
    parents: HostLinks,
    /// Virtual functions whose device comes with the plan: what is on them follows in the next round.
    coming: BTreeSet<IfName>,
}

impl<'a> HostPlanner<'a> {
    /// The links in scope, each after its parent or ports.
    fn in_scope(&self, devices: &BTreeSet<IfName>) -> Vec<&'a Link> {
        let wanted = &self.links.wanted.state.links;
        let graph = LinkGraph::new(&self.links.wanted.state.links);
        let names = graph.changed_with(devices);
        let mut links: Vec<_> = wanted
            .iter()
            .filter(|link| names.contains(&link.name))
            .collect();
        links.sort_by_cached_key(|link| (graph.depth(&link.name), link.index));
        links
    }

    fn link(&mut self, wanted: &Link) {
        if wanted.can_be_made() {
            self.made(wanted);
        } else if wanted.parent.is_some() {
            self.unsupported(wanted);
        } else {
            self.device(wanted);
        }
    }

    /// The driver recreates a device, maybe under another name.
    fn device(&mut self, wanted: &Link) {
        if self.is_to_be_made(wanted) {
            return self.function(wanted);
        }
        let Some(now) = find_device(wanted, &self.links.observed.state.links) else {
            if self.is_in_a_pod(wanted) {
                return;
            }
            let hardware = wanted.hardware.clone();
            self.links.plan.missing.push(wanted.name.clone());
            let kind = wanted.kind.name().to_owned();
            let cause = if wanted.is_switch() {
                PlanCause::KindMissing { kind }
            } else {
                PlanCause::DeviceMissing { hardware }
            };
            return self.links.report(cause.error(&wanted.name));
        };
        let planner = &mut self.links;
        ifindex::step(
            wanted,
            now,
            &planner.wanted,
            &planner.observed,
            &mut planner.plan,
        );
        let mut now = Cow::Borrowed(now);
        if now.name != wanted.name && self.gets_name(wanted, &now) {
            let change = Change::Name(wanted.name.clone());
            self.links.plan.push(Step::set(&now.name, change));
            now.to_mut().name = wanted.name.clone();
        }
        if now.name != wanted.name {
            let cause = PlanCause::DeviceRenamed {
                now: now.name.clone(),
                then: wanted.name.clone(),
                config: None,
            };
            self.links.report(cause.warning(&wanted.name));
            self.parents
                .renamed
                .insert(wanted.name.clone(), now.name.clone());
        }
        self.can_be_parent(wanted);
        self.links.cannot_restore(wanted, Some(&now));
        self.links.settle(wanted, &now, Some(&self.parents));
        let made = sriov::made(wanted, &now, &self.links.plan.steps);
        self.parents.functions.extend(made);
    }

    /// Whether the plan makes the device of a virtual function.
    fn is_to_be_made(&self, wanted: &Link) -> bool {
        let mut made = self.parents.functions.iter();
        let hardware = wanted.hardware.as_ref();
        hardware.is_some_and(|hardware| made.any(|made| made.is_same(hardware)))
    }

    /// A device that comes with a step of the plan.
    fn function(&mut self, wanted: &Link) {
        self.can_be_parent(wanted);
        match self.links.fresh(wanted) {
            // Its own settings are known only then.
            Some(fresh) => {
                let wanted = Link {
                    nic: None,
                    ..wanted.clone()
                };
                self.links.settle(&wanted, &fresh, Some(&self.parents));
            }
            None => drop(self.coming.insert(wanted.name.clone())),
        }
    }

    /// Whether a virtual function without an address was given to a pod since.
    fn is_in_a_pod(&self, wanted: &Link) -> bool {
        let hardware = wanted.hardware.as_ref();
        let Some(function) = hardware.and_then(|hardware| hardware.function.as_ref()) else {
            return false;
        };
        let mut addresses = self.links.wanted.addresses_of(&wanted.name).iter();
        let present = &self.links.observed.state.links;
        sriov::has_netdev(function, present) && addresses.all(|one| one.comes_by_itself())
    }

    /// Whether a virtual function that was made anew can have its name back. Other devices keep what udev calls them.
    fn gets_name(&self, wanted: &Link, now: &Link) -> bool {
        let is_function = now
            .hardware
            .as_ref()
            .is_some_and(|own| own.function.is_some());
        let is_free = self.links.now.link(&wanted.name).is_none();
        let is_unused = !now.flags.up && self.links.now.addresses_of(&now.name).is_empty();
        is_function && is_free && is_unused && wanted.is_made_anew(now)
    }

    /// The link exists or will, and can be a parent.
    fn can_be_parent(&mut self, wanted: &Link) {
        self.parents.present.insert(wanted.name.clone());
        self.parents.mtus.insert(wanted.name.clone(), wanted.mtu);
        let mac = wanted.mac.map(|mac| (wanted.name.clone(), mac));
        self.parents.macs.extend(mac);
    }

    fn unsupported(&mut self, wanted: &Link) {
        match self.links.now.link(&wanted.name) {
            Some(now) if now.kind.name() == wanted.kind.name() => {
                self.can_be_parent(wanted);
                let parents = &self.parents;
                let name_now = |then: &IfName| {
                    let is_there = parents.present.contains(then);
                    is_there.then(|| parents.name_now(then))
                };
                lower::steps(wanted, now, name_now, &mut self.links.plan);
            }
            _ => {
                let kind = wanted.kind.name().to_owned();
                let cause = PlanCause::KindMissing { kind };
                self.links.report(cause.error(&wanted.name));
            }
        }
    }

    fn made(&mut self, wanted: &Link) {
        let parent = match &wanted.parent {
            Some(Parent::Own(name)) if !self.parents.present.contains(name) => {
                let parent = name.clone();
                let cause = PlanCause::OwnLinkMissing { parent };
                return self.links.report(cause.error(&wanted.name));
            }
            Some(Parent::Own(name)) => Some(self.parents.name_now(name)),
            _ => None,
        };
        let now = self.links.now.link(&wanted.name);
        if let Some(problem) = now.and_then(|now| diff::conflict(wanted, now)) {
            self.links.report(problem);
            return;
        }
        if now.is_none() && !self.create(wanted, parent) {
            return;
        }
        self.can_be_parent(wanted);
        self.links.cannot_restore(wanted, now);
        let fresh = self.links.fresh(wanted);
        if let Some(base) = now.or(fresh.as_ref()) {
            let target = self.target(wanted, base);
            self.links.settle(&target, base, Some(&self.parents));
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
            self.links.report(cause.error(&wanted.name));
            return false;
        }
        let mut link = wanted.clone();
        link.parent = parent.map(Parent::Own);
        if makers::giver(wanted, &self.links.wanted).is_some() {
            link.mac = None;
        }
        self.links.plan.push(Step::add_link(link));
        true
    }

    /// The link with another name that has this VLAN's id on its parent.
    fn same_vlan(&self, wanted: &Link, parent: &IfName) -> Option<&'a Link> {
        let LinkKind::Vlan(vlan) = &wanted.kind else {
            return None;
        };
        self.links.observed.state.links.iter().find(|now| {
            matches!(&now.kind, LinkKind::Vlan(other) if other.id == vlan.id && other.protocol == vlan.protocol)
                && now.parent == Some(Parent::Own(parent.clone()))
        })
    }

    /// Whether the plan changes the parent's MAC, which the VLAN follows: it sets that, or gives it or its bridge another port.
    fn parent_changes_mac(&self, wanted: &Link) -> bool {
        let Some(Parent::Own(parent)) = &wanted.parent else {
            return false;
        };
        let dev = self.parents.name_now(parent);
        self.links.plan.steps.iter().any(|step| match step {
            Step::Netlink(NetlinkStep::SetLink {
                dev: changed,
                change,
                ..
            }) => match change {
                Change::Mac(_) => *changed == dev,
                Change::Master(master) => *changed == dev || *master == dev,
                _ => false,
            },
            _ => false,
        })
    }

    /// The link as it is to be settled: without the recorded MAC while it follows that of its parent, which the plan changes.
    fn target<'w>(&self, wanted: &'w Link, now: &Link) -> Cow<'w, Link> {
        if makers::giver(wanted, &self.links.wanted).is_some() && self.parent_changes_mac(wanted) {
            Cow::Owned(Link {
                mac: now.mac,
                ..wanted.clone()
            })
        } else {
            Cow::Borrowed(wanted)
        }
    }

    /// Reports what no step restores and no link in scope has: objects that netfix cannot make, which went when devices of the host
    /// were lost or made anew.
    fn lost_for_good(&mut self, in_scope: &[&Link], devices: &BTreeSet<IfName>) {
        let LinkPlanner {
            wanted,
            now,
            observed,
            plan,
            ..
        } = &mut self.links;
        let (then, present) = (wanted.state, observed.state);
        let links = then.links.iter().filter(|link| {
            let is_gone = now.link(&link.name).is_none();
            is_gone
                && snapshot_quality::lost_for_good(link).is_some()
                && !in_scope.iter().any(|one| one.name == link.name)
        });
        let links = links.map(|link| {
            let kind = link.kind.name().to_owned();
            PlanCause::KindMissing { kind }.error(&link.name)
        });
        let others = surplus::beyond(&then.unsupported, &present.unsupported);
        let others = others.map(|what| PlanCause::ObjectLost.error(what));
        let lost: Vec<Problem> = links.chain(others).collect();
        if !lost.is_empty() && !host_loss::remade(then, present, devices.iter()).is_empty() {
            plan.problems.extend(lost);
        }
    }

    /// Addresses, neighbours and routes of every link in scope that exists.
    fn objects(&mut self, in_scope: &[&Link]) {
        let LinkPlanner {
            wanted,
            now,
            observed,
            plan,
            others,
        } = &mut self.links;
        let Observed { state, age, .. } = *observed;
        let to_now = |then: &IfName| self.parents.name_now(then);
        let wanted = Cow::Borrowed(wanted.state);
        let (wanted, note) = daemons::split(*observed, wanted, &to_now);
        plan.problems.extend(note);
        let in_scope: BTreeSet<&IfName> = in_scope.iter().map(|link| &link.name).collect();
        let name_now = |then: &IfName| {
            let name = self.parents.name_now(then);
            let exists = observed.new_link.is_some() || now.link(&name).is_some();
            let is_planned = in_scope.contains(then)
                && self.parents.present.contains(then)
                && !self.coming.contains(then);
            (is_planned && exists).then_some(name)
        };
        let wanted = makers::leave(wanted, state, others, plan);
        let (wanted, awaited) = routers::split(wanted, state, &name_now);
        plan.awaits_router = !awaited.is_empty();
        plan.problems.extend(awaited);
        let wanted = &*ipv6::addable(&wanted, *observed, plan);
        let superfluous = addresses::steps(wanted, *observed, &name_now, plan);
        let is_in_scope = |route: &Route| {
            let mut devs = route.devs().into_iter();
            let is_on_links = devs.len() > 0 && devs.all(|dev| name_now(dev).is_some());
            is_on_links || routes::needs_no_link(route, state)
        };
        let renamed = |route: &Route| route.clone().renamed(to_now);
        let routes = routes::recorded(wanted, is_in_scope, renamed, state);
        let hops: Vec<Nexthop> = wanted
            .nexthops
            .iter()
            .filter_map(|nexthop| {
                let dev = Some(name_now(nexthop.dev.as_ref()?)?);
                let nexthop = nexthop.clone();
                Some(Nexthop { dev, ..nexthop })
            })
            .collect();
        let ids: BTreeSet<u32> = hops.iter().map(|nexthop| nexthop.id).collect();
        let groups = wanted
            .nexthops
            .iter()
            .filter(|nexthop| nexthop.group.iter().any(|hop| ids.contains(&hop.id)))
            .cloned();
        let nexthops = routes::nexthops(hops.into_iter().chain(groups), &state.nexthops);
        routes::steps(routes, state, nexthops, age, plan);
        plan.extend(superfluous.into_iter().map(NetlinkStep::DeleteRoute));
    }
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
