//! A pod with many objects: the same plan as by comparing each object with each other one, in a time that grows with their
//! number only.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use netfix::model::net::route::Position;
use netfix::model::{Address, ChainLink, HostSide, IfName, Link, LinkKind, NetState, Route, Rule};
use netfix::plan::{
    self, DaemonState, HostLinks, NetlinkStep, NicRules, Observed, OrderedObject, Plan, Rewrite,
    Step,
};
use nix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::numbers::Numbers;

const DEV: &str = "eth0";

fn name(text: &str) -> IfName {
    text.parse().expect("a name")
}

impl Numbers {
    fn often(&mut self) -> bool {
        self.below(3) > 0
    }
}

fn links() -> Vec<Link> {
    let kind = || LinkKind::other("veth");
    let plain = |text| Link::plain(name(text), kind());
    vec![plain(DEV), plain("eth1")]
}

fn route(number: u64, metric: u64, gateway: Option<u64>, dev: &str) -> Route {
    let gateway = gateway.map(|last| format!("10.0.0.{last}"));
    let mut hop = json!({"dev": dev});
    if let Some(gateway) = gateway {
        hop["gateway"] = gateway.into();
    }
    let (high, low) = (number >> 8 & 0xff, number & 0xff);
    let route = json!({
        "family": "inet", "dst": format!("10.{}.{high}.{low}/32", 1 + (number >> 16)), "table": 254, "protocol": 3,
        "scope": 0, "type": 1, "priority": metric, "hops": [hop],
    });
    serde_json::from_value(route).expect("a route")
}

fn address(number: u64, prefix_len: u8, dev: &str) -> Address {
    let ip = format!("10.{}.{}.1", number >> 8, number & 0xff);
    Address::plain(name(dev), ip.parse().expect("an address"), prefix_len)
}

fn rule(priority: u64) -> Rule {
    Rule {
        priority: u32::try_from(priority).expect("a small number"),
        action: 1,
        table: 254,
        ..Rule::default()
    }
}

fn neighbour(number: u64, dev: &str) -> netfix::model::Neighbour {
    let entry = json!({"dev": dev, "dst": format!("10.0.{}.{}", number >> 8, number & 0xff), "lladdr": "02:00:00:00:00:01"});
    serde_json::from_value(entry).expect("a neighbour")
}

/// A state of few possible objects, so that two of them have many in common.
fn small(numbers: &mut Numbers) -> NetState {
    let dev = |numbers: &mut Numbers| if numbers.often() { DEV } else { "eth1" };
    let mut state = NetState {
        links: links(),
        ..NetState::default()
    };
    for at in 0..6 {
        let gateway = numbers.often().then(|| numbers.below(2));
        let metric = numbers.below(2);
        let route = route(numbers.below(3), metric, gateway, dev(numbers));
        if !state.routes.contains(&route) {
            state.routes.push(route);
        }
        let mut address = address(at, if numbers.often() { 24 } else { 32 }, dev(numbers));
        address.label = numbers.often().then(|| "a".into());
        if numbers.often() {
            state.addresses.push(address);
        }
        if numbers.often() {
            state.rules.push(rule(at));
            state.neighbours.push(neighbour(at, dev(numbers)));
            state.unsupported.push(format!("route {at}"));
        }
    }
    state
}

fn planned(wanted: &NetState, state: &NetState) -> Plan {
    let observed = Observed {
        state,
        new_link: None,
        age: 0,
        daemons: DaemonState::Leave,
        nic: NicRules::default(),
        made: &[],
        kept_indexes: None,
    };
    plan::pod(wanted, &BTreeSet::new(), observed, &HostLinks::default())
}

/// The lists of the kernel after the steps, which it accepts all but for a route whose place is taken.
fn after(steps: &[Step], now: &NetState) -> NetState {
    let mut state = now.clone();
    for step in steps {
        let Step::Netlink(step) = step else {
            panic!("{step}");
        };
        match step {
            NetlinkStep::AddAddress(address) => state.addresses.push(address.clone()),
            NetlinkStep::AddNeighbour(neighbour) => state.neighbours.push(neighbour.clone()),
            NetlinkStep::AddRoute { route, position } => {
                add_route(&mut state.routes, route.clone(), *position);
            }
            NetlinkStep::ChangeRoute(route) => {
                let mut routes = state.routes.iter_mut();
                let now = routes.find(|now| now.shares_place_with(route));
                *now.expect("a version of the route") = route.clone();
            }
            NetlinkStep::AddRule(rule) => state.rules.push(rule.clone()),
            NetlinkStep::Rewrite(rewrite) => take_rewrite(&mut state, rewrite),
            other => panic!("{other}"),
        }
    }
    state
}

fn add_route(routes: &mut Vec<Route>, route: Route, position: Position) {
    let rivals = || routes.iter().map(|now| now.shares_place_with(&route));
    let at = match position {
        Position::Only if rivals().any(|is_rival| is_rival) => return,
        Position::Only | Position::Last => routes.len(),
        Position::First => rivals().position(|is_rival| is_rival).unwrap_or_default(),
    };
    routes.insert(at, route);
}

fn take_rewrite(state: &mut NetState, rewrite: &Rewrite) {
    for object in &rewrite.gone {
        match object {
            OrderedObject::Address(gone) => state.addresses.retain(|now| now != gone),
            OrderedObject::Route(gone) => state.routes.retain(|now| now != gone),
            OrderedObject::Rule(gone) => state.rules.retain(|now| now != gone),
        }
    }
    for object in &rewrite.added {
        match object {
            OrderedObject::Address(address) => state.addresses.push(address.clone()),
            OrderedObject::Route(route) if state.routes.contains(route) => {}
            OrderedObject::Route(route) => state.routes.push(route.clone()),
            OrderedObject::Rule(rule) => state.rules.push(rule.clone()),
        }
    }
}

/// The objects of the lists that count as one order.
fn orders(state: &NetState) -> BTreeMap<String, Vec<String>> {
    let mut orders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut put = |order: String, object: String| orders.entry(order).or_default().push(object);
    for address in &state.addresses {
        put(
            format!("addresses of {}", address.dev),
            format!("{address:?}"),
        );
    }
    for route in &state.routes {
        if route.is_ipv6() {
            continue;
        }
        let place = format!("routes to {} metric {:?}", route.dst, route.priority);
        put(place, format!("{route:?}"));
    }
    for rule in &state.rules {
        put(format!("rules {}", rule.priority), format!("{rule:?}"));
    }
    for neighbour in &state.neighbours {
        put(format!("{neighbour}"), String::new());
    }
    orders
}

/// What differs from the checkpoint, but for objects that it lacks; a route that cannot be added, because another one has its
/// place, is named by that place.
fn differences(wanted: &NetState, now: &NetState) -> Vec<String> {
    let (then, now) = (orders(wanted), orders(now));
    let differs = |(order, objects): (&String, &Vec<String>)| {
        let known = now.get(order).into_iter().flatten();
        let known: Vec<&String> = known.filter(|object| objects.contains(object)).collect();
        (known != objects.iter().collect::<Vec<_>>()).then(|| order.clone())
    };
    then.iter().filter_map(differs).collect()
}

/// The places of routes that are taken: one route is wanted there, and another one is there.
fn taken(wanted: &NetState, now: &NetState) -> BTreeSet<String> {
    let alone = |route: &&Route| {
        let rivals = wanted.routes.iter();
        rivals
            .filter(|other| other.shares_place_with(route))
            .count()
            == 1
            && !now.routes.contains(*route)
            && now
                .routes
                .iter()
                .any(|other| other.shares_place_with(route))
    };
    let one = |route: &Route| NetState {
        routes: vec![route.clone()],
        ..NetState::default()
    };
    let alone = wanted.routes.iter().filter(alone);
    alone
        .flat_map(|route| orders(&one(route)).into_keys())
        .collect()
}

/// The objects that the plan reports: those that no step restores, and those that are not in the checkpoint.
fn reported_by_comparing_all(wanted: &NetState, now: &NetState) -> Vec<String> {
    let mut objects = Vec::new();
    let lost = wanted.unsupported.iter();
    objects.extend(lost.filter(|one| !now.unsupported.contains(one)).cloned());
    let is_known = |one: &&Address| wanted.addresses.iter().any(|then| then.is_same(one));
    let addresses = now.addresses.iter().filter(|one| !is_known(one));
    objects.extend(addresses.map(|one| format!("address {one}")));
    let routes = now.routes.iter();
    let routes = routes.filter(|one| !wanted.routes.contains(one));
    objects.extend(routes.map(|one| format!("route {one}")));
    let rules = now.rules.iter().filter(|one| !wanted.rules.contains(one));
    objects.extend(rules.map(|one| format!("rule {one}")));
    let neighbours = now.neighbours.iter();
    let neighbours = neighbours.filter(|one| !wanted.neighbours.contains(one));
    objects.extend(neighbours.map(|one| format!("neighbour {one}")));
    objects
}

#[test]
fn the_plan_of_any_small_state_leads_to_the_recorded_objects_in_their_order() {
    let mut numbers = Numbers::new(0x9e37_79b9_7f4a_7c15);
    let (mut rewritten, mut first, mut reported) = (0, 0, 0);
    for round in 0..3000 {
        let (wanted, now) = (small(&mut numbers), small(&mut numbers));
        let plan = planned(&wanted, &now);
        let taken = taken(&wanted, &now);
        let after = after(&plan.steps, &now);
        let mut left = differences(&wanted, &after);
        left.retain(|order| !taken.contains(order));
        assert_eq!(
            left,
            [""; 0],
            "{round}: {wanted:#?} {now:#?} {:#?}",
            plan.lines()
        );
        let again = planned(&wanted, &after).steps;
        assert!(again.len() <= taken.len(), "{round}: {again:?}");
        let objects: Vec<_> = plan.problems.iter().map(|one| one.object.clone()).collect();
        assert_eq!(objects, reported_by_comparing_all(&wanted, &now), "{round}");
        let is_rewrite = |step: &&Step| matches!(step, Step::Netlink(NetlinkStep::Rewrite(_)));
        rewritten += plan.steps.iter().filter(is_rewrite).count();
        let is_first = |step: &&Step| {
            let position = Position::First;
            matches!(step, Step::Netlink(NetlinkStep::AddRoute { position: at, .. }) if *at == position)
        };
        first += plan.steps.iter().filter(is_first).count();
        reported += objects.len();
    }
    assert!(
        rewritten > 100 && first > 10 && reported > 100,
        "{rewritten}, {first}, {reported}"
    );
}

/// A state of so many links, and as many addresses, routes, rules and neighbours; `shift` makes others of half of them.
fn large(count: u64, shift: u64) -> NetState {
    let all = move || shift..shift + count;
    let mut links = links();
    links.extend(all().map(|at| {
        let kind = LinkKind::other("veth");
        Link::plain(name(&format!("v{at}")), kind)
    }));
    NetState {
        links,
        addresses: all().map(|at| address(at, 32, &format!("v{at}"))).collect(),
        routes: all().map(|at| route(at, 1, Some(at & 0xff), DEV)).collect(),
        advertised: Vec::new(),
        nexthops: Vec::new(),
        rules: all().map(rule).collect(),
        neighbours: all().map(|at| neighbour(at, DEV)).collect(),
        sockets: Vec::new(),
        ways: Vec::new(),
        learned: Vec::new(),
        unsupported: all().map(|at| format!("route {at}")).collect(),
    }
}

/// So many addresses of one link, routes in one place and rules of one priority.
fn crowded(count: u64) -> NetState {
    let in_one_place = |at| route(0, 1, Some(at & 0xff), if at > 0xff { DEV } else { "eth1" });
    NetState {
        links: links(),
        addresses: (0..count).map(|at| address(at, 16, DEV)).collect(),
        routes: (0..count.min(512)).map(in_one_place).collect(),
        rules: (0..count)
            .map(|at| Rule {
                fwmark: u32::try_from(at).ok(),
                ..rule(1)
            })
            .collect(),
        ..NetState::default()
    }
}

/// So many bridges with a port each, without addresses but for the last; `index` is that of the first link, and `mtu` that of bridges.
fn bridges(count: u32, index: u32, mtu: u32) -> NetState {
    let mut state = NetState::default();
    for at in 0..count {
        let mut bridge = Link::plain(name(&format!("b{at}")), LinkKind::other("bridge"));
        bridge.mtu = mtu;
        let mut port = Link::plain(name(&format!("v{at}")), LinkKind::other("dummy"));
        port.master = Some(bridge.name.clone());
        state.links.extend([bridge, port]);
    }
    for (link, index) in state.links.iter_mut().zip(index..) {
        link.index = index;
        link.flags.up = true;
    }
    let last = state.links.last().map(|link| link.name.to_string());
    let addresses = last.map(|dev| address(u64::from(index), 32, &dev));
    state.addresses.extend(addresses);
    state
}

fn reversed(mut state: NetState) -> NetState {
    state.addresses.reverse();
    state.routes.reverse();
    state.rules.reverse();
    state
}

/// The time that this thread has had of a processor: other programs do not count.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("a clock");
    Duration::from(now)
}

/// A host that routes to as many pods, each behind a pair, and what carries the packets of each.
fn routed(count: u64) -> (NetState, Vec<Vec<ChainLink>>) {
    let (mut host, mut chains) = (NetState::default(), Vec::new());
    for number in 0..count {
        let dev = format!("v{number}");
        let route = route(number, 0, None, &dev);
        let link = json!({"name": dev, "routes": [&route]});
        chains.push(vec![serde_json::from_value(link).expect("a link")]);
        host.links
            .push(Link::plain(name(&dev), LinkKind::other("veth")));
        host.routes.push(route);
    }
    (host, chains)
}

/// The best of three.
fn time(count: u64) -> Duration {
    let (wanted, now) = (large(count, 0), large(count, count / 2));
    let (crowd, other_way) = (crowded(count), reversed(crowded(count)));
    let number = u32::try_from(count).expect("a small number");
    let (layers, made_again) = (
        bridges(number, 1, 1400),
        bridges(number, 2 * number + 1, 1500),
    );
    let (host, chains) = routed(count);
    let once = || {
        let begin = processor_time();
        let side = HostSide::new(&host);
        for chain in &chains {
            assert_eq!(plan::snapshot_quality::chain_loss(chain, &side), None);
        }
        let plan = planned(&wanted, &now);
        let lost = plan::snapshot_quality::loss(&wanted, &[], &now);
        assert!(lost.is_some() && plan.steps.len() as u64 > count);
        assert_eq!(planned(&crowd, &other_way).steps.len(), 3);
        assert_eq!(plan::snapshot_quality::loss(&layers, &[], &layers), None);
        let plan = planned(&layers, &made_again);
        assert!(plan.problems.len() as u64 > count);
        processor_time().saturating_sub(begin)
    };
    (0..3).map(|_| once()).min().unwrap_or_default()
}

#[test]
fn the_time_of_a_plan_grows_with_the_number_of_objects_and_not_with_its_square() {
    let (few, many) = (time(1000), time(16_000));
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    eprintln!("1000 objects of each kind {few:?}, 16000 {many:?}: {ratio:.1} times");
    // 16 times as many objects; their square would be 256 times.
    assert!(ratio < 64.0, "{few:?}, {many:?}");
}
