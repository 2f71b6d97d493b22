//! The steps for addresses and neighbours.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::link::ipv6::{self, ADDR_GEN_MODE, DISABLE_IPV6, NO_ADDRESS, STABLE_PRIVACY};
use super::order::{self, Rewritten};
use super::snapshot_quality;
use crate::model::net::address::{Maker, in_adding_order};
use crate::model::net::route::Position;
use crate::model::problem::PlanCause;
use crate::model::{Address, IfName, Indexed, Mac, Neighbour, NetState, Problem, Route};
use crate::plan::{Change, NetlinkStep, Observed, Plan, Step};

/// The steps for addresses and neighbours of the links for which `name_now` returns the present name.
///
/// Returns the connected routes that the kernel will add with them and that were not there: to be deleted once all other
/// routes are added, because these may need them.
pub(crate) fn steps(
    wanted: &NetState,
    observed: Observed<'_>,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) -> Vec<Route> {
    let addresses = observed.state.addresses.iter();
    let present: Present<'_> = addresses
        .map(|now| ((&now.dev, now.identity()), now))
        .collect();
    let (mut recorded, mut lost, mut superfluous) = (Vec::new(), Vec::new(), Vec::new());
    let requested = to_request(wanted);
    for address in in_adding_order(wanted.addresses.iter()) {
        let dev_then = &address.dev;
        let Some(dev) = name_now(dev_then) else {
            continue;
        };
        let is_requested = requested.contains(&address.dev) && address.is_plain_link_local();
        let address = Address {
            dev,
            ..address.clone()
        };
        let now = present.get(&(&address.dev, address.identity())).copied();
        let failed = now.filter(|now| now.has_failed_detection());
        let failed = failed.map(|now| duplicate(now, observed.state));
        plan.problems.extend(failed);
        match (address.maker, now) {
            (Maker::Admin, _) => recorded.push(aged(address, now, observed.age)),
            (Maker::Kernel, _) if is_requested => recorded.push(address),
            (Maker::Kernel, Some(now)) if now.without_local && !address.without_local => {
                // The kernel makes it anew.
                plan.push(NetlinkStep::Rewrite(Box::new(order::to_make_anew(now))));
                lost.push(address);
            }
            (Maker::Kernel, None) => {
                // It comes with carrier, and its route with it.
                let route = address.connected_route().filter(|_| address.without_route);
                plan.later
                    .extend(route.map(|route| NetlinkStep::DeleteRoute(route).into()));
                lost.push(address);
            }
            (Maker::Kernel, Some(now)) => {
                lost.extend(in_its_place(now, dev_then, wanted, observed, plan).cloned());
                plan.extend(connected_route(&address, now));
                let route = address.connected_route().filter(|_| address.without_route);
                superfluous.extend(route.filter(|_| !now.without_route));
            }
            (Maker::Network, _) => {}
        }
    }
    if !lost.is_empty() {
        link_local(&lost, &modes(wanted, name_now), observed.state, plan);
    }
    let now = observed.state;
    let idle = still_without_carrier(wanted, now, name_now);
    superfluous.extend(own_addresses(&recorded, &present, &idle, now, plan));
    neighbours(wanted, now, name_now, plan);
    superfluous
}

/// Another machine has this address: on a link with the MAC of a virtual router another one of its machines, whose link-local address
/// is the same.
pub(crate) fn duplicate(address: &Address, now: &NetState) -> Problem {
    let mac = now.link(&address.dev).and_then(|link| link.mac);
    if mac.is_some_and(Mac::is_of_virtual_router) {
        PlanCause::DuplicateAddress.warning(address)
    } else {
        PlanCause::DuplicateAddress.error(address)
    }
}

/// Puts the address of a secret in its place; returns it if the kernel is to make it anew.
fn in_its_place<'a>(
    secret: &'a Address,
    then: &IfName,
    wanted: &NetState,
    observed: Observed<'_>,
    plan: &mut Plan,
) -> Option<&'a Address> {
    if !secret.is_of_secret() {
        return None;
    }
    let step = order::around_secret(secret, then, wanted, observed.state)?;
    let is_made_anew = step.added.is_empty();
    plan.push(NetlinkStep::Rewrite(Box::new(step)));
    is_made_anew.then_some(secret)
}

/// The links whose link-local address of the kernel is added by request too: those with several, of which the kernel uses the last,
/// and those that had no carrier. The kernel adds its own with carrier, which may come after the others, or never; it takes it by
/// request before, and then adds no other.
fn to_request(wanted: &NetState) -> HashSet<&IfName> {
    let mut seen = HashSet::new();
    let addresses = wanted.addresses.iter();
    let link_local = addresses.filter(|one| one.is_plain_link_local());
    let several = link_local
        .map(|one| &one.dev)
        .filter(|dev| !seen.insert(*dev));
    several.chain(wanted.without_carrier()).collect()
}

/// The links that had no carrier and have none.
fn still_without_carrier(
    wanted: &NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
) -> HashSet<IfName> {
    let without_now: HashSet<&IfName> = now.without_carrier().collect();
    let then = wanted.without_carrier().filter_map(name_now);
    then.filter(|dev| without_now.contains(dev)).collect()
}

/// Adds an address. One that was usable on a link that is still without carrier is so at once: duplicate address detection would not
/// even begin.
fn added(address: &Address, is_idle: bool) -> Vec<NetlinkStep> {
    use NetlinkStep::{AddAddress, ChangeAddress};
    let is_at_once = is_idle && !address.is_unusable();
    match address.without_detection().filter(|_| is_at_once) {
        Some(first) => vec![AddAddress(first), ChangeAddress(address.clone())],
        None => vec![AddAddress(address.clone())],
    }
}

/// The steps for the addresses that were added by hand or by a program, in the order in which to add them.
fn own_addresses(
    recorded: &[Address],
    present: &Present<'_>,
    idle: &HashSet<IfName>,
    now: &NetState,
    plan: &mut Plan,
) -> Vec<Route> {
    let mut superfluous = Vec::new();
    let mut rewritten = order::of_addresses(recorded, now);
    for address in recorded {
        let superfluous_route = address.connected_route().filter(|_| address.without_route);
        if let Some(Rewritten { step, added }) = rewritten.get_mut(&address.dev)
            && added.contains(&address.identity())
        {
            plan.extend(step.take());
            superfluous.extend(superfluous_route);
            continue;
        }
        match present.get(&(&address.dev, address.identity())).copied() {
            None => {
                plan.extend(added(address, idle.contains(&address.dev)));
                // Where the kernel keeps the membership, no step helps.
                let kept = address.is_joined_group();
                plan.problems
                    .extend(kept.then(|| snapshot_quality::membership(address)));
                superfluous.extend(address.connected_route().filter(|_| address.has_no_route()));
            }
            Some(now) => {
                if !now.has_changeable_of(address) {
                    plan.push(NetlinkStep::ChangeAddress(address.clone()));
                }
                plan.extend(connected_route(address, now));
                superfluous.extend(superfluous_route.filter(|_| !now.without_route));
            }
        }
    }
    superfluous
}

/// The step that adds the connected route of an address that lost it.
fn connected_route(then: &Address, now: &Address) -> Option<NetlinkStep> {
    let is_lost = now.without_route && !then.without_route;
    let route = then.connected_route().filter(|_| is_lost)?;
    let position = Position::Last;
    Some(NetlinkStep::AddRoute { route, position })
}

/// The present addresses, to be found by what the kernel compares.
type Present<'a> = HashMap<(&'a IfName, Identity), &'a Address>;

/// What distinguishes an address from the others of its link.
pub(super) type Identity = (IpAddr, u8, Option<IpAddr>);

/// The recorded modes of the links.
fn modes(wanted: &NetState, name_now: &impl Fn(&IfName) -> Option<IfName>) -> HashMap<IfName, i64> {
    let links = wanted.links.iter();
    let modes = links.filter_map(|link| {
        let mode = link.sysctls.ipv6.get(&ADDR_GEN_MODE).copied()?;
        Some((name_now(&link.name)?, mode))
    });
    modes.collect()
}

/// Lets the kernel add its link-local addresses to these links again: it does so when the mode of a link that is up changes to
/// one that makes such an address: the recorded one of `modes`, or another before that.
fn link_local(lost: &[Address], modes: &HashMap<IfName, i64>, now: &NetState, plan: &mut Plan) {
    let changed: HashSet<IfName> = plan
        .steps
        .iter()
        .filter_map(|step| match step {
            Step::Netlink(NetlinkStep::SetLink {
                dev,
                change: Change::AddrGenMode(_),
                ..
            }) => Some(dev.clone()),
            _ => None,
        })
        .collect();
    let now = Indexed::new(now);
    for address in lost.iter().filter(|one| !changed.contains(&one.dev)) {
        let Some(link) = now.link(&address.dev) else {
            continue;
        };
        let settings = &link.sysctls.ipv6;
        let is_ready =
            link.flags.up && link.flags.carrier && settings.get(&DISABLE_IPV6) == Some(&0);
        let mode_now = settings.get(&ADDR_GEN_MODE).copied();
        let Some(mode) = modes.get(&link.name).copied().or(mode_now) else {
            continue;
        };
        let makes_it = address.is_of_mode(Some(mode).into());
        let is_possible = makes_it || address.is_of_secret();
        // The kernel makes it with carrier, and before or behind others.
        plan.is_unsettled |= is_possible && link.flags.up && !link.flags.carrier;
        if !is_ready || !is_possible {
            continue;
        }
        let making = if makes_it { mode } else { STABLE_PRIVACY };
        let set = |value, now| ipv6::write(link, ADDR_GEN_MODE, value, now);
        if mode_now != Some(NO_ADDRESS) {
            plan.push(set(NO_ADDRESS, mode_now.unwrap_or(mode)));
        }
        plan.push(set(making, NO_ADDRESS));
        plan.extend(ipv6::set_mode(link, mode).filter(|_| !makes_it));
    }
}

fn neighbours(
    wanted: &NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) {
    let present: HashSet<&Neighbour> = now.neighbours.iter().collect();
    for neighbour in &wanted.neighbours {
        let Some(dev) = name_now(&neighbour.dev) else {
            continue;
        };
        let neighbour = Neighbour {
            dev,
            ..neighbour.clone()
        };
        // The kernel drops one that is not permanent while its link has no carrier.
        plan.is_unsettled |= neighbour.managed || neighbour.noarp;
        if !present.contains(&neighbour) {
            plan.push(NetlinkStep::AddNeighbour(neighbour));
        }
    }
}

/// The address with what is left of its lifetimes. If it is there `now` the kernel knows, and its client may have renewed it.
fn aged(address: Address, now: Option<&Address>, age: u32) -> Address {
    match now {
        Some(now) if now.valid_lft.is_some() && address.valid_lft.is_some() => Address {
            valid_lft: now.valid_lft,
            preferred_lft: now.preferred_lft,
            ..address
        },
        _ => address.aged(age),
    }
}
