//! What daemons add and withdraw by their own rules: routes of routing daemons, addresses of keepalived, service addresses on the
//! loopback device. A checkpoint does not show what was withdrawn after it was written.

use std::borrow::Cow;
use std::collections::HashSet;

use super::input::{DaemonState, Observed};
use super::surplus::beyond;
use crate::model::problem::PlanCause;
use crate::model::{
    Address, IfName, Link, LinkKind, Mac, Neighbour, NetState, Nexthop, Parent, Problem, Route,
    Rule,
};

/// What of `wanted` is to be restored, and a note about what is left to daemons.
pub(super) fn split<'a>(
    observed: Observed<'_>,
    wanted: Cow<'a, NetState>,
    name_now: &impl Fn(&IfName) -> IfName,
) -> (Cow<'a, NetState>, Option<Problem>) {
    let Observed {
        state: now,
        daemons,
        made,
        ..
    } = observed;
    if daemons == DaemonState::Restore || !has_daemons(&wanted) {
        return (wanted, None);
    }
    let kept = match daemons {
        // A script may have withdrawn a service address.
        DaemonState::Absent => without(&wanted, now, name_now, made, |_| false, |_| false),
        DaemonState::Leave | DaemonState::Restore => kept(&wanted, now, name_now, made),
    };
    let note = note(&wanted, &kept, now, name_now);
    (Cow::Owned(kept), note)
}

/// The state without what daemons own and the namespace lacks, and without what needs that: no loss.
pub(super) fn without_withdrawn<'a>(good: &'a NetState, now: &NetState) -> Cow<'a, NetState> {
    if has_daemons(good) {
        Cow::Owned(kept(good, now, &IfName::clone, &[]))
    } else {
        Cow::Borrowed(good)
    }
}

/// Whether a daemon owns something in it.
pub(crate) fn has_daemons(state: &NetState) -> bool {
    let of_services = service_links(state);
    let mut addresses = state.addresses.iter();
    state.links.iter().any(is_of_virtual_router)
        || addresses.any(|one| one.is_of_daemon(|dev| of_services.contains(dev)))
        || state.routes.iter().any(Route::is_of_daemon)
        || state.nexthops.iter().any(Nexthop::is_of_daemon)
        || state.rules.iter().any(Rule::is_of_daemon)
        || state.neighbours.iter().any(Neighbour::is_of_daemon)
}

/// The links whose addresses a daemon adds and withdraws: the loopback device, and those with the MAC of a virtual router.
fn service_links(state: &NetState) -> HashSet<&IfName> {
    let routers = state.links.iter().filter(|link| is_of_virtual_router(link));
    let routers = routers.map(|link| &link.name);
    routers.chain(loopback(state)).collect()
}

fn is_of_virtual_router(link: &Link) -> bool {
    link.mac.is_some_and(Mac::is_of_virtual_router)
}

/// The links with the MAC of a virtual router that keepalived deleted when it ended: what they were on was not lost.
fn deleted_routers<'w>(
    wanted: &'w NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
) -> HashSet<&'w IfName> {
    let present = |link: &Link| now.link(&name_now(&link.name));
    let stands = |gone: &Link| {
        wanted.links.iter().any(|link| {
            let is_below = gone.parent == Some(Parent::Own(link.name.clone()));
            let is_same = present(link).is_some_and(|now| now.index == link.index);
            is_same && gone.parent.is_some() && (is_below || gone.parent == link.parent)
        })
    };
    let routers = wanted
        .links
        .iter()
        .filter(|link| is_of_virtual_router(link));
    let deleted = routers.filter(|link| present(link).is_none() && stands(link));
    deleted.map(|link| &link.name).collect()
}

/// Those of them that were not lost: on a link that went and came back a daemon may not know that its address is gone.
fn standing_services<'w>(
    wanted: &'w NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
    made: &[IfName],
) -> HashSet<&'w IfName> {
    let stands = |dev: &IfName| !made.contains(dev) && now.link(&name_now(dev)).is_some();
    let mut links = service_links(wanted);
    links.retain(|dev| Some(*dev) == loopback(wanted) || stands(dev));
    links
}

/// The name of the loopback device: found once, because a pod may have thousands of links and addresses.
fn loopback(state: &NetState) -> Option<&IfName> {
    let mut links = state.links.iter();
    let loopback = links.find(|link| link.kind == LinkKind::Loopback);
    loopback.map(|link| &link.name)
}

/// The state without service addresses, and some of the other addresses and routes, that the namespace lacks, and without the routes
/// that need one; and without the links of virtual routers that are deleted.
fn without(
    wanted: &NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
    made: &[IfName],
    is_left: impl Fn(&Address) -> bool,
    is_route_left: impl Fn(&Route) -> bool,
) -> NetState {
    let of_services = standing_services(wanted, now, name_now, made);
    let addresses = now.addresses.iter();
    let present: HashSet<_> = addresses.map(|one| (&one.dev, one.identity())).collect();
    let routes: HashSet<&Route> = now.routes.iter().collect();
    let deleted = deleted_routers(wanted, now, name_now);
    let is_on_deleted = |route: &Route| route.devs().iter().any(|dev| deleted.contains(dev));
    let mut left = wanted.without_ways(
        now,
        |one| {
            let is_there = present.contains(&(&name_now(&one.dev), one.identity()));
            let is_service = || one.is_service(|dev| of_services.contains(dev));
            !is_there && (is_service() || is_left(one) || deleted.contains(&one.dev))
        },
        |one| {
            let is_left = is_route_left(one) || is_on_deleted(one);
            is_left && !routes.contains(&one.clone().renamed(|dev| name_now(dev)))
        },
    );
    left.links.retain(|link| !deleted.contains(&link.name));
    left.neighbours.retain(|one| !deleted.contains(&one.dev));
    left
}

/// The state without what daemons own and the namespace lacks.
fn kept(
    wanted: &NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
    made: &[IfName],
) -> NetState {
    let is_left = |one: &Address| one.is_of_daemon(|_| false);
    let mut kept = without(wanted, now, name_now, made, is_left, Route::is_of_daemon);
    let present: HashSet<&Rule> = now.rules.iter().collect();
    kept.rules
        .retain(|one| !one.is_of_daemon() || present.contains(one));
    let there = now.neighbours.iter().map(|now| (now.dst, &now.dev));
    let there: HashSet<_> = there.collect();
    kept.neighbours
        .retain(|one| !one.is_of_daemon() || there.contains(&(one.dst, &name_now(&one.dev))));
    let mut needed: HashSet<u32> = kept
        .routes
        .iter()
        .filter_map(|route| route.nexthop)
        .collect();
    needed.extend(now.nexthops.iter().map(|one| one.id));
    let groups = kept.nexthops.iter();
    let groups = groups.filter(|one| needed.contains(&one.id) || !one.is_of_daemon());
    let members: Vec<u32> = groups
        .flat_map(|one| &one.group)
        .map(|one| one.id)
        .collect();
    needed.extend(members);
    kept.nexthops
        .retain(|one| !one.is_of_daemon() || needed.contains(&one.id));
    kept
}

/// One note for everything that is not restored.
fn note(
    wanted: &NetState,
    kept: &NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
) -> Option<Problem> {
    let present: HashSet<&Route> = now.routes.iter().collect();
    let addresses = beyond(&wanted.addresses, &kept.addresses).map(|one| format!("address {one}"));
    let routes = beyond(&wanted.routes, &kept.routes)
        .filter(|one| !present.contains(&(*one).clone().renamed(|dev| name_now(dev))))
        .map(|one| format!("route {one}"));
    let objects: HashSet<u32> = kept.nexthops.iter().map(|one| one.id).collect();
    let nexthops = wanted.nexthops.iter();
    let nexthops = nexthops.filter(|one| !objects.contains(&one.id));
    let nexthops = nexthops.map(|one| format!("nexthop {one}"));
    let rules = beyond(&wanted.rules, &kept.rules).map(|one| format!("rule {one}"));
    let neighbours =
        beyond(&wanted.neighbours, &kept.neighbours).map(|one| format!("neighbour {one}"));
    let mut objects = addresses
        .chain(routes)
        .chain(nexthops)
        .chain(rules)
        .chain(neighbours);
    let first = objects.next()?;
    let more = objects.count();
    Some(PlanCause::LeftToDaemon { more }.info(first))
}
