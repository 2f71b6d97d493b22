//! One pod: its macvlans and whatever stands on them, its addresses, routes and rules.

use std::collections::BTreeSet;

use super::settle::{self, newborn};
use super::{Change, HostLinks, Observed, Plan, Step};
use crate::model::{Code, IfName, Link, LinkKind, NetState, Parent, Problem, Severity};

/// What to do in a pod's namespace, given what its host has to stand on.
#[must_use]
pub fn pod(wanted: &NetState, observed: Observed<'_>, host: &HostLinks) -> Plan {
    let mut planner = Planner { wanted, observed, host, plan: Plan::default(), settled: BTreeSet::new() };
    for link in &wanted.links {
        planner.link(link);
    }
    planner.finish();
    planner.surplus();
    planner.plan
}

struct Planner<'a> {
    wanted: &'a NetState,
    observed: Observed<'a>,
    host: &'a HostLinks,
    plan: Plan,
    /// Links that are there, so that addresses and routes can be put on them.
    settled: BTreeSet<IfName>,
}

impl Planner<'_> {
    fn link(&mut self, wanted: &Link) {
        let now = self.observed.state.link(&wanted.name);
        match now {
            Some(now) if let Some(problem) = settle::conflict(wanted, now) => {
                self.plan.problems.push(problem);
            }
            Some(now) => self.existing(wanted, now),
            None => self.missing(wanted),
        }
    }

    fn existing(&mut self, wanted: &Link, now: &Link) {
        self.settled.insert(wanted.name.clone());
        self.cannot_restore(wanted, Some(now));
        if wanted.index != 0 && wanted.index != now.index {
            let message = format!(
                "has ifindex {} now, {} in the checkpoint: sockets bound to the old one stay deaf",
                now.index, wanted.index
            );
            self.warn(Code::IfindexDiffers, wanted, message);
        }
        if let (Some(then), Some(parent)) = (&wanted.parent, &now.parent) {
            self.check_parent(wanted, then, parent);
        }
        settle::attributes(wanted, now, self.wanted, &mut self.plan);
        let change = match (&wanted.kind, &now.kind) {
            (LinkKind::Macvlan(then), LinkKind::Macvlan(now)) if then != now => {
                Some(Change::Macvlan(then.clone()))
            }
            (LinkKind::Vlan(then), LinkKind::Vlan(now)) if then.vlan_flags != now.vlan_flags => {
                Some(Change::Vlan(then.clone()))
            }
            _ => None,
        };
        self.plan.steps.extend(change.map(|change| Step::set(&now.name, change)));
        settle::sysctls(wanted, now, self.wanted, &mut self.plan);
        settle::up(wanted, now, self.wanted, &mut self.plan);
    }

    fn cannot_restore(&mut self, wanted: &Link, now: Option<&Link>) {
        self.plan.problems.extend(settle::lost_master(wanted, now, self.wanted));
        self.plan.problems.extend(settle::lost_qdisc(wanted, now));
    }

    fn check_parent(&mut self, wanted: &Link, then: &Parent, now: &Parent) {
        let expected = self.parent_now(then);
        if expected != *now {
            let message = format!("stands on {} now, on {} in the checkpoint", name(now), name(&expected));
            self.error(Code::LinkConflict, wanted, message);
        }
    }

    fn parent_now(&self, then: &Parent) -> Parent {
        match then {
            Parent::Host(name) => Parent::Host(self.host.name_now(name)),
            other => other.clone(),
        }
    }

    fn missing(&mut self, wanted: &Link) {
        let parent = match (&wanted.parent, wanted.kind.can_be_made()) {
            (None | Some(Parent::Elsewhere), _) | (_, false) => {
                let message = format!("is gone, and netfix cannot make this {} yet", wanted.kind.name());
                return self.error(Code::Unsupported, wanted, message);
            }
            (Some(Parent::Host(name)), true) if !self.host.present.contains(name) => {
                return self.error(
                    Code::ParentMissing,
                    wanted,
                    format!("cannot be built: {name} is not there"),
                );
            }
            (Some(Parent::Own(name)), true) if !self.is_there(name) => {
                return self.error(
                    Code::ParentMissing,
                    wanted,
                    format!("cannot be built: {name} is not there"),
                );
            }
            (Some(parent), true) => self.parent_now(parent),
        };
        let link = Link { parent: Some(parent), ..wanted.clone() };
        self.plan.steps.push(Step::AddLink(Box::new(link)));
        self.cannot_restore(wanted, None);
        if let Some(base) = newborn(wanted, self.observed) {
            self.existing(wanted, &base);
        }
    }

    /// Whether a link of the pod itself is there or will be by then.
    fn is_there(&self, name: &IfName) -> bool {
        let added = |step: &Step| matches!(step, Step::AddLink(link) if link.name == *name);
        self.settled.contains(name) || self.plan.steps.iter().any(added)
    }

    fn finish(&mut self) {
        let wanted = self.wanted;
        let settled = |dev: &IfName| self.settled.contains(dev).then(|| dev.clone());
        settle::addresses(wanted, self.observed, &settled, &mut self.plan);
        let possible =
            |route: &&crate::model::Route| route.devs().iter().all(|dev| self.settled.contains(*dev));
        let routes = wanted.routes.iter().filter(possible).cloned();
        settle::routes(routes, &self.observed.state.routes, &mut self.plan);
        let rules = wanted.rules.iter().filter(|rule| !self.observed.state.rules.contains(rule));
        self.plan.steps.extend(rules.cloned().map(Step::AddRule));
        for what in wanted.unsupported.iter().filter(|what| !self.observed.state.unsupported.contains(what)) {
            let problem =
                Problem::error(Code::Unsupported, what.clone(), "was there and netfix cannot restore it yet");
            self.plan.problems.push(problem);
        }
    }

    /// What the pod has beyond its checkpoint is named and left alone.
    fn surplus(&mut self) {
        let wanted = self.wanted;
        let NetState { links, addresses, routes, rules, neighbours, unsupported: _ } = self.observed.state;
        let mut extra: Vec<String> = Vec::new();
        let new_links = links.iter().filter(|now| wanted.link(&now.name).is_none());
        extra.extend(new_links.map(|now| format!("link {}", now.name)));
        let known = |now: &&crate::model::Address| wanted.addresses.iter().any(|then| now.is_same(then));
        let new = addresses.iter().filter(|now| !now.comes_by_itself() && !known(now));
        extra.extend(new.map(|now| format!("address {now}")));
        let new = routes.iter().filter(|now| !wanted.routes.contains(now));
        extra.extend(new.map(|now| format!("route {now}")));
        let new = rules.iter().filter(|now| !wanted.rules.contains(now));
        extra.extend(new.map(|now| format!("rule {now}")));
        let new = neighbours.iter().filter(|now| !wanted.neighbours.contains(now));
        extra.extend(new.map(|now| format!("neighbour {now}")));
        self.plan.problems.extend(extra.into_iter().map(|object| Problem {
            severity: Severity::Info,
            ..Problem::warning(Code::Surplus, object, "is not in the checkpoint and is left alone")
        }));
    }

    fn error(&mut self, code: Code, link: &Link, message: String) {
        self.plan.problems.push(Problem::error(code, link.name.to_string(), message));
    }

    fn warn(&mut self, code: Code, link: &Link, message: String) {
        self.plan.problems.push(Problem::warning(code, link.name.to_string(), message));
    }
}

fn name(parent: &Parent) -> String {
    match parent {
        Parent::Own(name) | Parent::Host(name) => name.to_string(),
        Parent::Elsewhere => "another namespace".to_owned(),
    }
}
