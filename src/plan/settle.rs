//! From a link as it is to the link as it was: everything but its creation.

use std::collections::BTreeSet;

use super::{Change, Observed, Plan, Step};
use crate::model::address::DADFAILED;
use crate::model::link::Flags;
use crate::model::sysctl::{Family, Settings, SysctlKey};
use crate::model::{Address, Code, IfName, Link, LinkKind, NetState, Problem, Route};

/// `net/ipv6/conf/<interface>/mtu`.
const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");

/// A new link as its creation leaves it: down, with the settings that new links start with.
pub(super) fn newborn(wanted: &Link, observed: Observed<'_>) -> Option<Link> {
    let mut sysctls = observed.new_link?.clone();
    // The one setting that does not start from `default`: it follows the link's MTU.
    if let (Some(mtu), Ok(link)) = (sysctls.ipv6.get_mut(&IPV6_MTU), i32::try_from(wanted.mtu)) {
        *mtu = link;
    }
    let flags = Flags { multicast: true, ..Flags::default() };
    Some(Link { flags, alias: None, altnames: Vec::new(), group: 0, master: None, sysctls, ..wanted.clone() })
}

/// The steps for one link's own attributes, before it goes up.
pub(super) fn attributes(wanted: &Link, now: &Link, plan: &mut Plan) {
    let dev = &now.name;
    let mut set = |change| plan.steps.push(Step::SetLink { dev: dev.clone(), change });
    // A bond decides its ports' MAC and MTU.
    if wanted.master.is_none() {
        if let Some(mac) = wanted.mac.filter(|mac| now.mac != Some(*mac)) {
            set(Change::Mac(mac));
        }
        if wanted.mtu != now.mtu {
            set(Change::Mtu(wanted.mtu));
        }
    }
    if wanted.txqueuelen != now.txqueuelen {
        set(Change::TxQueueLen(wanted.txqueuelen));
    }
    if wanted.group != now.group {
        set(Change::Group(wanted.group));
    }
    if let Some(alias) = wanted.alias.as_ref().filter(|alias| now.alias.as_ref() != Some(alias)) {
        set(Change::Alias(alias.clone()));
    }
    let altnames: Vec<_> =
        wanted.altnames.iter().filter(|name| !now.altnames.contains(name)).cloned().collect();
    if !altnames.is_empty() {
        set(Change::Altnames(altnames));
    }
    let settable = |flags: Flags| Flags { up: false, carrier: false, ..flags };
    if wanted.master.is_none() && settable(wanted.flags) != settable(now.flags) {
        set(Change::Flags(now.flags, wanted.flags));
    }
}

/// The steps for one link's sysctls: what differs, nothing else.
pub(super) fn sysctls(wanted: &Link, now: &Link, plan: &mut Plan) {
    if let Some(secret) = wanted.sysctls.stable_secret
        && now.sysctls.stable_secret != Some(secret)
    {
        plan.steps.push(Step::stable_secret(&now.name, secret));
    }
    let families = [
        (Family::Ipv4, &wanted.sysctls.ipv4, &now.sysctls.ipv4),
        (Family::Ipv6, &wanted.sysctls.ipv6, &now.sysctls.ipv6),
    ];
    for (family, wanted, current) in families {
        plan.steps.extend(differing(wanted, current).map(|(key, value)| Step::Sysctl {
            dev: now.name.clone(),
            family,
            key: key.clone(),
            value: value.to_string(),
        }));
    }
}

/// A setting that this kernel does not show is not one that could be written.
fn differing<'a>(wanted: &'a Settings, now: &'a Settings) -> impl Iterator<Item = (&'a SysctlKey, &'a i32)> {
    wanted.iter().filter(|(key, value)| now.get(*key).is_some_and(|current| current != *value))
}

/// The step that takes a link up.
pub(super) fn up(wanted: &Link, now: &Link, plan: &mut Plan) {
    if wanted.flags.up && !now.flags.up && wanted.master.is_none() {
        plan.steps.push(Step::SetLink { dev: now.name.clone(), change: Change::Up });
    }
}

/// The steps for addresses and neighbours of the links that `name_now` knows, by their present names.
pub(super) fn addresses(
    wanted: &NetState,
    observed: Observed<'_>,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) {
    for address in &wanted.addresses {
        let Some(dev) = name_now(&address.dev) else { continue };
        let Some(address) = aged(Address { dev, ..address.clone() }, observed.age, plan) else { continue };
        let same = observed.state.addresses.iter().find(|now| now.is_same(&address));
        if let Some(now) = same.filter(|now| now.flags & DADFAILED != 0) {
            let message =
                "another machine on the network has this address (duplicate address detection failed)";
            plan.problems.push(Problem::error(Code::AddressConflict, now.to_string(), message));
        }
        match same {
            // The kernel makes these as soon as the link is up; made by hand they would not be the same.
            _ if address.is_made_by_kernel() => {}
            None => plan.steps.push(Step::AddAddress(address)),
            Some(now) if !now.has_attributes_of(&address) => plan.steps.push(Step::ChangeAddress(address)),
            Some(_) => {}
        }
    }
    for neighbour in &wanted.neighbours {
        let Some(dev) = name_now(&neighbour.dev) else { continue };
        let neighbour = crate::model::Neighbour { dev, ..neighbour.clone() };
        if !observed.state.neighbours.contains(&neighbour) {
            plan.steps.push(Step::AddNeighbour(neighbour));
        }
    }
}

/// The address with what is left of its lifetime; `None`, with a warning, when that is over.
fn aged(mut address: Address, age: u32, plan: &mut Plan) -> Option<Address> {
    let Some(valid) = address.valid_lft else { return Some(address) };
    if address.is_learnt() {
        return Some(address);
    }
    if valid <= age {
        let message = "its lifetime ended since the checkpoint was written; whoever leased it must renew it";
        plan.problems.push(Problem::warning(Code::Unsupported, address.to_string(), message));
        return None;
    }
    address.valid_lft = Some(valid - age);
    address.preferred_lft = address.preferred_lft.map(|seconds| seconds.saturating_sub(age));
    Some(address)
}

/// The steps for routes, in the order in which the kernel accepts them.
pub(super) fn routes(wanted: impl Iterator<Item = Route>, observed: &[Route], plan: &mut Plan) {
    let mut wanted: Vec<Route> = wanted.collect();
    wanted.sort_by_key(Route::rank);
    for (at, route) in wanted.iter().enumerate() {
        if !observed.contains(route) {
            let others = wanted.iter().enumerate().filter(|(other, _)| *other != at);
            let append = others.map(|(_, other)| other).any(|other| other.shares_place_with(route));
            plan.steps.push(Step::AddRoute { route: route.clone(), append });
        }
    }
}

/// A link of the right name that is not the right link: nothing may be done to it.
pub(super) fn conflict(wanted: &Link, now: &Link) -> Option<Problem> {
    let problem = |message: String| Some(Problem::error(Code::LinkConflict, now.name.to_string(), message));
    let (then, kind) = (wanted.kind.name(), now.kind.name());
    if then != kind {
        return problem(format!("is a {kind} now, the checkpoint has a {then} of that name"));
    }
    let fixed = |kind: &LinkKind| match kind {
        LinkKind::Vlan(vlan) => Some((u16::from(vlan.id), vlan.protocol.to_string())),
        _ => None,
    };
    if let (Some((id, protocol)), Some((id_now, protocol_now))) = (fixed(&wanted.kind), fixed(&now.kind))
        && (id, &protocol) != (id_now, &protocol_now)
    {
        return problem(format!("has VLAN {id_now} {protocol_now}, the checkpoint has {id} {protocol}"));
    }
    None
}

/// The names among `links` that stand on a link whose name is in `below`, directly or not, and `below` itself.
pub(super) fn closure(below: BTreeSet<IfName>, links: &[Link]) -> BTreeSet<IfName> {
    let mut names = below;
    loop {
        let stands_on = |link: &&Link| {
            let on_parent =
                matches!(&link.parent, Some(crate::model::Parent::Own(parent)) if names.contains(parent));
            let is_bond = matches!(link.kind, LinkKind::Bond(_));
            let has_port = is_bond
                && links
                    .iter()
                    .any(|port| port.master.as_ref() == Some(&link.name) && names.contains(&port.name));
            !names.contains(&link.name) && (on_parent || has_port)
        };
        let more: Vec<_> = links.iter().filter(stands_on).map(|link| link.name.clone()).collect();
        if more.is_empty() {
            return names;
        }
        names.extend(more);
    }
}
