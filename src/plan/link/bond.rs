//! The steps for the options and the ports of a bond.

use super::port;
use crate::model::net::link::bond::Bond;
use crate::model::net::raw::RawAttribute;
use crate::model::problem::ConflictCause;
use crate::model::{IfName, Indexed, Link, LinkKind};
use crate::plan::{Change, HostLinks, Plan, Step};

/// The steps for a bond of the host; none for another link. Options come before ports, and ports before `primary`, which must be
/// one of them.
pub(super) fn steps(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    host: &HostLinks,
    plan: &mut Plan,
) {
    let (LinkKind::Bond(then), LinkKind::Bond(now)) = (&wanted.kind, &now.kind) else {
        return;
    };
    options(&wanted.name, then, now, plan);
    ports(wanted, state, present, host, plan);
    let primary = then.primary.as_ref();
    if let Some(primary) = primary.filter(|name| host.present.contains(*name)) {
        let primary = host.name_now(primary);
        if now.primary.as_ref() != Some(&primary) {
            plan.push(Step::set(&wanted.name, Change::BondPrimary(primary)));
        }
    }
}

fn options(dev: &IfName, then: &Bond, now: &Bond, plan: &mut Plan) {
    if then.mode != now.mode {
        let cause = ConflictCause::OtherBondMode {
            now: now.mode_name().to_owned(),
            then: then.mode_name().to_owned(),
        };
        plan.problems.push(cause.error(dev));
    }
    for (option, value) in &then.options {
        let current = now.options.get(option);
        if current.is_some_and(|current| current != value) {
            plan.push(Step::set(dev, Change::BondOption(*option, *value)));
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
        let change = Change::BondLists(Box::new(then.clone()));
        plan.push(Step::set(dev, change));
    }
}

/// Ports that are added come in their former order; those that stay are before them.
fn ports(
    wanted: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    host: &HostLinks,
    plan: &mut Plan,
) {
    let bond = &wanted.name;
    let links = state.state.links.iter();
    let mut ports: Vec<&Link> = links
        .filter(|port| port.master.as_ref() == Some(bond) && host.present.contains(&port.name))
        .collect();
    let place = |port: &&Link| wanted.ports.iter().position(|name| *name == port.name);
    ports.sort_by_key(|port| place(port).unwrap_or(usize::MAX));
    for recorded in ports {
        let Some(now) = present.link(&host.name_now(&recorded.name)) else {
            continue;
        };
        match &now.master {
            Some(master) if master == bond => {
                let settings = port::settings(recorded, now);
                if !settings.is_empty() {
                    plan.push(Step::set(&now.name, Change::BondPort(settings)));
                }
            }
            Some(other) => {
                let (now_is, then) = (other.clone(), bond.clone());
                let cause = ConflictCause::OtherMaster { now: now_is, then };
                plan.problems.push(cause.error(&now.name));
            }
            None => {
                if now.flags.up {
                    plan.push(Step::set(&now.name, Change::Down));
                }
                plan.push(Step::set(&now.name, Change::Master(bond.clone())));
                // A new port has zeros.
                let differs = |raw: &&RawAttribute| raw.value.iter().any(|byte| *byte != 0);
                let settings: Vec<_> = recorded.port.iter().filter(differs).cloned().collect();
                if !settings.is_empty() {
                    plan.push(Step::set(&now.name, Change::BondPort(settings)));
                }
            }
        }
    }
}
