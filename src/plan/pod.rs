//! Plans one pod: its macvlans and the links above them, addresses, routes and rules.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::link::{LinkPlanner, diff, ipv6, lower, makers, nic};
use super::{addresses, daemons, routers, routes, surplus};
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{Address, Claim, IfName, Link, LinkKind, Mac, NetState, Parent, Problem, Route};
use crate::plan::{
    DaemonState, HostDevice, HostLinks, NetlinkStep, NicRules, Observed, Plan, SriovChange,
    SriovStep, Step,
};

/// The plan for a pod's namespace, with the host's links as parents. What is `withheld` is neither restored nor surplus.
#[must_use]
pub fn pod(
    recorded: &NetState,
    withheld: &BTreeSet<Claim>,
    observed: Observed<'_>,
    host: &HostLinks,
) -> Plan {
    let (wanted, note) = daemons::split(
        observed,
        without(recorded, withheld, observed.state),
        &IfName::clone,
    );
    let (wanted, awaited) = routers::split(wanted, observed.state, &|dev| Some(dev.clone()));
    let mut planner = PodPlanner::new(&wanted, observed, host);
    planner.all_links();
    planner.objects();
    let mut plan = planner.links.plan;
    plan.problems.extend(note);
    plan.awaits_router = !awaited.is_empty();
    plan.problems.extend(awaited);
    surplus::report(recorded, observed.state, &mut plan);
    plan
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
        daemons: DaemonState::default(),
        nic: NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    let wanted = without(recorded, withheld, now);
    let mut planner = PodPlanner::new(&wanted, observed, host);
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

fn without<'a>(
    recorded: &'a NetState,
    withheld: &BTreeSet<Claim>,
    now: &NetState,
) -> Cow<'a, NetState> {
    if withheld.is_empty() {
        Cow::Borrowed(recorded)
    } else {
        Cow::Owned(recorded.without(withheld, now))
    }
}

struct PodPlanner<'a> {
    /// From the recorded state without what is withheld.
    links: LinkPlanner<'a>,
    host: &'a HostLinks,
    /// Links that exist, and can have addresses and routes.
    settled: BTreeSet<IfName>,
    /// Links that the plan creates.
    added: BTreeSet<IfName>,
}

impl<'a> PodPlanner<'a> {
    fn new(wanted: &'a NetState, observed: Observed<'a>, host: &'a HostLinks) -> Self {
        Self {
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
        let all: Vec<_> = self.links.wanted.state.links.iter().collect();
        self.links.backup_ports(&all, IfName::clone);
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
        // A daemon that made the link again made its sockets after that.
        let is_of_daemon = now.mac.is_some_and(Mac::is_of_virtual_router);
        if wanted.index != 0 && wanted.index != now.index && !is_of_daemon {
            let cause = PlanCause::IfindexDiffers {
                now: now.index,
                then: wanted.index,
            };
            self.links.report(cause.warning(&wanted.name));
        }
        if now.flags.up && !wanted.flags.up {
            self.links.report(PlanCause::IsUp.warning(&wanted.name));
        }
        self.links.settle(wanted, now, None);
        let is_there = |name: &IfName| self.settled.contains(name) || self.added.contains(name);
        let name_now = |then: &IfName| is_there(then).then(|| then.clone());
        lower::steps(wanted, now, name_now, &mut self.links.plan);
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
        let mut made = self.host.functions.iter();
        let made = made.find(|made| hardware.is_some_and(|own| own.is_same(made)));
        if let Some(function) = made.and_then(|made| made.function.clone()) {
            let step = SriovStep {
                dev: wanted.name.clone(),
                bus: function.of,
                change: SriovChange::Await(function.index),
            };
            return self.links.plan.push(Step::Sriov(step));
        }
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
                self.links.plan.push(Step::add_link(link));
                return self.settings(wanted, device);
            }
        };
        self.links.report(problem);
    }

    /// A whole plan has what will be set on the device too.
    fn settings(&mut self, wanted: &Link, device: &HostDevice) {
        let observed = self.links.observed;
        if observed.new_link.is_some() {
            let device = Link {
                nic: device.nic.clone(),
                ..wanted.clone()
            };
            nic::of_device(wanted, &device, observed.nic, &mut self.links.plan);
        }
    }

    fn missing(&mut self, wanted: &Link) {
        if wanted.kind == LinkKind::Physical {
            return self.device(wanted);
        }
        let cause = match (&wanted.parent, wanted.can_be_made()) {
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
            others,
            ..
        } = &mut self.links;
        let Observed {
            state: now, age, ..
        } = *observed;
        let wanted = makers::leave(Cow::Borrowed(wanted.state), now, others, plan);
        let wanted = &*ipv6::addable(&wanted, *observed, plan);
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
        let is_in_scope = |route: &Route| route.devs().into_iter().all(is_settled);
        let routes = routes::recorded(wanted, is_in_scope, Route::clone, now);
        let nexthops = wanted
            .nexthops
            .iter()
            .filter(|nexthop| nexthop.dev.as_ref().is_none_or(is_settled))
            .cloned();
        let nexthops = routes::nexthops(nexthops, &now.nexthops);
        routes::steps(routes, now, nexthops, age, plan);
        routes::rules(&wanted.rules, &now.rules, plan);
        plan.extend(superfluous.into_iter().map(NetlinkStep::DeleteRoute));
        let lost = surplus::beyond(&wanted.unsupported, &now.unsupported);
        plan.problems
            .extend(lost.map(|what| PlanCause::ObjectLost.error(what)));
    }
}
