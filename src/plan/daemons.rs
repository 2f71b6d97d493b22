//! What daemons add and withdraw by their own rules: routes of routing daemons, addresses of keepalived, service addresses on the
//! loopback device, members of overlays. A checkpoint does not show what was withdrawn after it was written.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

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
    let mut links = state.links.iter();
    links.any(|link| is_of_virtual_router(link) || link.is_overlay())
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

/// The members of overlays that left them: of each the link, the next hop and the MAC. The program that keeps an overlay, which is still
/// the same link and has others, deleted the route to it and the neighbour entry.
fn left_members<'w>(
    wanted: &'w NetState,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> IfName,
) -> HashMap<(&'w IfName, IpAddr), Option<Mac>> {
    let overlays = wanted.links.iter().filter(|link| link.is_overlay());
    let same = overlays.filter(|link| {
        let now = now.link(&name_now(&link.name));
        now.is_some_and(|now| now.index == link.index)
    });
    let same: HashSet<&IfName> = same.map(|link| &link.name).collect();
    if same.is_empty() {
        return HashMap::new();
    }
    let next: HashSet<_> = now.routes.iter().flat_map(Route::gateways).collect();
    let known = now.neighbours.iter().map(|one| (one.dst, &one.dev));
    let known: HashSet<_> = known.collect();
    let hops: HashSet<_> = wanted.routes.iter().flat_map(Route::gateways).collect();
    let members = wanted.neighbours.iter();
    let members =
        members.filter(|one| same.contains(&one.dev) && hops.contains(&(one.dst, &one.dev)));
    let is_next = |one: &Neighbour| next.contains(&(one.dst, &name_now(&one.dev)));
    // One that a restore was interrupted at has no routes yet.
    let whole: HashSet<_> = members
        .clone()
        .filter(|one| is_next(one))
        .map(|one| &one.dev)
        .collect();
    let left = members.filter(|one| {
        let is_known = known.contains(&(one.dst, &name_now(&one.dev)));
        !is_known && !is_next(one) && whole.contains(&one.dev)
    });
    left.map(|one| ((&one.dev, one.dst), one.lladdr)).collect()
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
/// that need one; and without the links of virtual routers that are deleted, and the members that left their overlay.
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
    let members = left_members(wanted, now, name_now);
    let is_to_member = |route: &Route| {
        let mut hops = route.gateways().into_iter();
        hops.any(|(ip, dev)| members.contains_key(&(dev, ip)))
    };
    let mut left = wanted.without_ways(
        now,
        |one| {
            let is_there = present.contains(&(&name_now(&one.dev), one.identity()));
            let is_service = || one.is_service(|dev| of_services.contains(dev));
            !is_there && (is_service() || is_left(one) || deleted.contains(&one.dev))
        },
        |one| {
            let is_left = is_route_left(one) || is_on_deleted(one) || is_to_member(one);
            is_left && !routes.contains(&one.clone().renamed(|dev| name_now(dev)))
        },
    );
    left.links.retain(|link| !deleted.contains(&link.name));
    left.neighbours
        .retain(|one| !deleted.contains(&one.dev) && !members.contains_key(&(&one.dev, one.dst)));
    for ((dev, _), mac) in &members {
        let links = left.links.iter_mut().filter(|link| link.name == **dev);
        for link in links {
            link.fdb.retain(|entry| Some(entry.lladdr) != *mac);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The overlay of flannel with these members, whose addresses end in `.0`.
    fn overlay(index: u32, routes: &[u8], neighbours: &[u8]) -> NetState {
        let route = |at: &u8| {
            serde_json::json!({"family": "inet", "dst": format!("10.244.{at}.0/24"), "type": 1, "table": 254, "protocol": 3,
                "scope": 0, "tos": 0,
                "hops": [{"dev": "flannel.1", "gateway": format!("10.244.{at}.0"), "onlink": true, "weight": 0}]})
        };
        let mac = |at: &u8| format!("0a:00:00:00:00:{at:02x}");
        let neighbour = |at: &u8| {
            serde_json::json!({"dev": "flannel.1", "dst": format!("10.244.{at}.0"), "lladdr": mac(at), "proxy": false,
                "router": false})
        };
        let entry =
            |at: &u8| serde_json::json!({"lladdr": mac(at), "dst": "10.0.0.9", "state": 128});
        let mut link = Link::plain("flannel.1".parse().unwrap(), LinkKind::other("vxlan"));
        link.index = index;
        let fdb = neighbours.iter().map(entry);
        link.fdb = fdb
            .map(|one| serde_json::from_value(one).unwrap())
            .collect();
        let routes = routes.iter().map(route);
        let neighbours = neighbours.iter().map(neighbour);
        NetState {
            links: vec![link],
            routes: routes
                .map(|one| serde_json::from_value(one).unwrap())
                .collect(),
            neighbours: neighbours
                .map(|one| serde_json::from_value(one).unwrap())
                .collect(),
            ..NetState::default()
        }
    }

    #[test]
    fn what_led_to_a_member_that_left_its_overlay_is_no_loss() {
        let whole = overlay(4, &[1, 2], &[1, 2]);
        let kept = |now: &NetState| without_withdrawn(&whole, now).into_owned();
        assert_eq!(kept(&overlay(4, &[1], &[1])), overlay(4, &[1], &[1]));
        // A part of what leads to it is there, or the link is recreated.
        for now in [
            overlay(4, &[1], &[1, 2]),
            overlay(4, &[1, 2], &[1]),
            overlay(4, &[], &[]),
            overlay(4, &[], &[1]),
            overlay(5, &[], &[]),
            NetState::default(),
        ] {
            assert_eq!(kept(&now), whole);
        }
    }
}
