//! The steps for nexthop objects, for routes in the order in which the kernel accepts them, and for rules.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use super::order;
use crate::model::net::route::Position;
use crate::model::net::route::own::{self, Device, OwnRoutes};
use crate::model::problem::PlanCause;
use crate::model::{IfName, NetState, Nexthop, Route, Rule};
use crate::plan::{NetlinkStep, OrderedObject, Plan, Rewrite};

/// The steps for nexthop objects, hops before groups: those that are missing, and those that lost a member or an attribute.
pub(crate) fn nexthops(wanted: impl Iterator<Item = Nexthop>, now: &[Nexthop]) -> Vec<NetlinkStep> {
    let now: HashMap<u32, &Nexthop> = now.iter().map(|nexthop| (nexthop.id, nexthop)).collect();
    let mut wanted: Vec<Nexthop> = wanted.collect();
    wanted.sort_by_key(Nexthop::rank);
    wanted
        .into_iter()
        .filter_map(|wanted| match now.get(&wanted.id) {
            None => Some(NetlinkStep::AddNexthop(wanted)),
            Some(now) if **now != wanted => Some(NetlinkStep::ChangeNexthop(wanted)),
            Some(_) => None,
        })
        .collect()
}

/// The recorded routes in scope, each as it is named now, and whether it comes with an address. On other links, those that come
/// with addresses are put in order with those in scope: the recorded ones, and behind them those of links that the record lacks,
/// which came later.
pub(crate) fn recorded(
    wanted: &NetState,
    is_in_scope: impl Fn(&Route) -> bool,
    renamed: impl Fn(&Route) -> Route,
    now: &NetState,
) -> Vec<(Route, bool)> {
    let devices = own::devices(&wanted.links);
    let both = wanted.routes.iter().chain(&now.routes);
    let own = OwnRoutes::new(wanted, &devices, both);
    let of_others = of_other_links(now, &devices);
    let in_scope = wanted.routes.iter().filter(|route| is_in_scope(route));
    let places: HashSet<_> = in_scope.map(Route::place).collect();
    let present: HashSet<&Route> = now.routes.iter().collect();
    let mut routes: Vec<(Route, bool)> = Vec::new();
    for route in &wanted.routes {
        let now = renamed(route);
        let comes = own.has(route) || of_others.contains(&&now);
        let is_beside = || comes && places.contains(&route.place()) && present.contains(&now);
        if is_in_scope(route) || is_beside() {
            routes.push((now, comes));
        }
    }
    if of_others.is_empty() {
        return routes;
    }
    // Those that shared their place with no other when they were recorded.
    let alone = now.routes.iter().filter(|one| {
        let is_alone = !places.contains(&one.place());
        is_alone && own.has(one) && is_in_scope(one) && !of_others.contains(one)
    });
    routes.extend(alone.map(|one| (one.clone(), true)));
    let places: HashSet<_> = routes.iter().map(|(one, _)| one.place()).collect();
    let known: HashSet<Route> = routes.iter().map(|(one, _)| one.clone()).collect();
    let later = of_others.into_iter();
    let later = later.filter(|one| places.contains(&one.place()) && !known.contains(one));
    routes.extend(later.map(|one| (one.clone(), true)));
    routes
}

/// Whether a route of the host sends packets nowhere, and so belongs to no link. The nexthop object that it may refer to is there.
pub(crate) fn needs_no_link(route: &Route, now: &NetState) -> bool {
    let is_there = |id: u32| now.nexthops.iter().any(|nexthop| nexthop.id == id);
    route.sends_nowhere() && route.nexthop.is_none_or(is_there)
}

/// The present routes that come with addresses, of links that are not among `devices`.
fn of_other_links<'a>(now: &'a NetState, devices: &HashMap<&IfName, Device>) -> Vec<&'a Route> {
    let is_of_other = |route: &&Route| {
        let devs = route.devs();
        !devs.is_empty() && !devs.into_iter().any(|dev| devices.contains_key(dev))
    };
    let mut routes: Vec<&Route> = now.routes.iter().filter(is_of_other).collect();
    if !routes.is_empty() {
        let devices = own::devices(&now.links);
        let own = OwnRoutes::new(now, &devices, now.routes.iter());
        routes.retain(|route| own.has(route));
    }
    routes
}

/// Leaves the objects to which the kernel gives no place without carrier, and the routes to these, for later.
fn leave_for_carrier(
    wanted: &mut Vec<(Route, bool)>,
    nexthops: &mut Vec<NetlinkStep>,
    now: &NetState,
    plan: &mut Plan,
) {
    let without_carrier: HashSet<&IfName> = now.without_carrier().collect();
    let mut missing = HashSet::new();
    nexthops.retain(|step| {
        let (NetlinkStep::AddNexthop(nexthop) | NetlinkStep::ChangeNexthop(nexthop)) = step else {
            return true;
        };
        let has_missing = nexthop.group.iter().any(|hop| missing.contains(&hop.id));
        let waits = has_missing || nexthop.dev.iter().any(|dev| without_carrier.contains(dev));
        if waits {
            plan.later.push(step.clone().into());
            if matches!(step, NetlinkStep::AddNexthop(_)) {
                missing.insert(nexthop.id);
            }
        }
        !waits
    });
    wanted.retain(|(route, _)| {
        let waits = route.nexthop.is_some_and(|id| missing.contains(&id));
        if waits {
            let (route, position) = (route.clone(), Position::Last);
            let step = NetlinkStep::AddRoute { route, position };
            plan.later.push(step.into());
        }
        !waits
    });
}

/// The steps for routes, with those for `nexthops` before the first that may need one; `age` in seconds since the checkpoint
/// was written.
///
/// Those that `come` with addresses are only put in order once they are there.
pub(crate) fn steps(
    mut wanted: Vec<(Route, bool)>,
    now: &NetState,
    mut nexthops: Vec<NetlinkStep>,
    age: u32,
    plan: &mut Plan,
) {
    leave_for_carrier(&mut wanted, &mut nexthops, now, plan);
    let observed = &now.routes;
    let present: HashSet<&Route> = observed.iter().collect();
    let mut awaited = HashSet::new();
    wanted.retain(|(route, comes)| {
        let is_awaited = *comes && !present.contains(route);
        if is_awaited {
            awaited.insert(route.place());
        }
        !is_awaited
    });
    // Some come only with carrier.
    plan.is_unsettled |= !awaited.is_empty();
    let wanted = wanted.into_iter().map(|(route, _)| route);
    let passing = observed.iter().filter(|now| now.expires.is_some());
    let passing: HashSet<&Route> = passing.collect();
    let wanted: Vec<Route> = wanted
        .filter_map(|route| match passing.get(&route) {
            // The kernel knows what is left.
            Some(now) => Some((*now).clone()),
            None => aged(route, age, plan),
        })
        .collect();
    if wanted == *observed && nexthops.is_empty() {
        return;
    }
    let mut places: HashMap<_, (Vec<&Route>, Vec<&Route>)> = HashMap::new();
    for route in observed {
        places.entry(route.place()).or_default().1.push(route);
    }
    let mut order = Vec::new();
    for route in &wanted {
        let here = &mut places.entry(route.place()).or_default().0;
        if here.is_empty() {
            order.push(route.place());
        }
        here.push(route);
    }
    let mut steps: Vec<(Rank, NetlinkStep)> = nexthops
        .into_iter()
        .map(|step| (Route::LAST, step))
        .collect();
    for place in &order {
        let (wanted, present) = &places[place];
        in_one_place(wanted, present, awaited.contains(place), &mut steps);
    }
    steps.sort_by_key(|(rank, _)| *rank);
    plan.extend(steps.into_iter().map(|(_, step)| step));
}

/// A route to a gateway is accepted only after the route to that gateway.
type Rank = (bool, u8);

/// The steps for routes with the same destination, table and metric, of which the kernel uses the first. Where the place `is_shared`
/// with a route that comes with an address, that may be there.
fn in_one_place(
    wanted: &[&Route],
    present: &[&Route],
    is_shared: bool,
    steps: &mut Vec<(Rank, NetlinkStep)>,
) {
    let known: HashSet<&Route> = present.iter().copied().collect();
    let missing: Vec<&Route> = wanted
        .iter()
        .filter(|route| !known.contains(**route))
        .copied()
        .collect();
    if let ([then], [now]) = (wanted, present)
        && !missing.is_empty()
        && now.is_version_of(then)
    {
        return steps.push((then.rank(), NetlinkStep::ChangeRoute((*then).clone())));
    }
    if let Some(right) = order::first_misplaced(wanted, present) {
        let behind = &wanted[right..];
        let rank = behind.iter().map(|route| route.rank()).max();
        let step = rewrite(behind, &known, |route| OrderedObject::Route(route.clone()));
        return steps.push((rank.unwrap_or_default(), step));
    }
    let is_alone = wanted.len() == 1 && !is_shared;
    if is_alone || missing.len() < wanted.len() || !add_by_rank(wanted, steps) {
        let position = if is_alone {
            Position::Only
        } else {
            Position::Last
        };
        // Each behind the one before, although one of them might be accepted earlier.
        let rank = missing.iter().map(|route| route.rank()).max();
        for route in missing.into_iter().cloned() {
            let step = NetlinkStep::AddRoute { route, position };
            steps.push((rank.unwrap_or_default(), step));
        }
    }
}

/// Deletes those of `behind` that are `present`, and adds all of them in order.
fn rewrite<T: Eq + Hash>(
    behind: &[&T],
    present: &HashSet<&T>,
    object: impl Fn(&T) -> OrderedObject,
) -> NetlinkStep {
    let gone = behind.iter().filter(|one| present.contains(**one));
    NetlinkStep::Rewrite(Box::new(Rewrite {
        gone: gone.map(|one| object(one)).collect(),
        added: behind.iter().map(|one| object(one)).collect(),
    }))
}

/// Adds all routes of a place at their ranks, before or behind those that are there then. Nothing is added where that does not
/// lead to their order; IPv6 routes can only be appended.
fn add_by_rank(wanted: &[&Route], steps: &mut Vec<(Rank, NetlinkStep)>) -> bool {
    let mut by_rank: Vec<(Rank, usize)> = wanted
        .iter()
        .enumerate()
        .map(|(at, route)| (route.rank(), at))
        .collect();
    by_rank.sort_unstable();
    // The first and the last of those that are there.
    let mut there: Option<(usize, usize)> = None;
    let mut added = Vec::new();
    for (rank, at) in by_rank {
        let (position, now) = match there {
            Some((_, last)) if at < last && wanted[at].is_ipv6() => return false,
            Some((first, last)) if at < first => (Position::First, (at, last)),
            Some((_, last)) if at < last => return false,
            Some((first, _)) => (Position::Last, (first, at)),
            None => (Position::Last, (at, at)),
        };
        there = Some(now);
        let route = wanted[at].clone();
        added.push((rank, NetlinkStep::AddRoute { route, position }));
    }
    steps.extend(added);
    true
}

/// The route with its remaining lifetime; `None`, with a warning, when it has expired.
fn aged(mut route: Route, age: u32, plan: &mut Plan) -> Option<Route> {
    let Some(left) = route.expires else {
        return Some(route);
    };
    if left.0 <= age {
        plan.problems.push(PlanCause::LifetimeOver.warning(&route));
        return None;
    }
    route.expires = Some((left.0 - age).into());
    Some(route)
}

/// The steps for rules: of those with the same priority, the kernel applies the first that matches.
pub(crate) fn rules(wanted: &[Rule], observed: &[Rule], plan: &mut Plan) {
    if wanted == observed {
        return;
    }
    let priority = |rule: &Rule| (rule.ipv6, rule.priority);
    let mut places: HashMap<_, (Vec<&Rule>, Vec<&Rule>)> = HashMap::new();
    for rule in observed {
        places.entry(priority(rule)).or_default().1.push(rule);
    }
    for rule in wanted {
        places.entry(priority(rule)).or_default().0.push(rule);
    }
    for rule in wanted {
        let Some((wanted, present)) = places.remove(&priority(rule)) else {
            continue;
        };
        let known: HashSet<&Rule> = present.iter().copied().collect();
        let Some(right) = order::first_misplaced(&wanted, &present) else {
            let missing = wanted.into_iter().filter(|rule| !known.contains(rule));
            plan.extend(missing.cloned().map(NetlinkStep::AddRule));
            continue;
        };
        plan.push(rewrite(&wanted[right..], &known, |rule| {
            OrderedObject::Rule(rule.clone())
        }));
    }
}
