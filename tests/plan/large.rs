//! A pod with many objects: the same plan as by comparing each object with each other one, in a time that grows with their
//! number only.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use netfix::model::{Address, IfName, Link, LinkKind, NetState, Route, Rule};
use netfix::plan::{self, HostLinks, Observed, Plan, Step};
use serde_json::json;

const DEV: &str = "eth0";

fn name(text: &str) -> IfName {
    text.parse().expect("a name")
}

/// A generator of numbers (xorshift64), the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn often(&mut self) -> bool {
        self.below(3) > 0
    }
}

fn links() -> Vec<Link> {
    let kind = || LinkKind::Other {
        driver: "veth".to_owned(),
    };
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
    };
    plan::pod(wanted, &BTreeSet::new(), observed, &HostLinks::default())
}

/// The plan's steps by comparing each object with each other one.
fn by_comparing_all(wanted: &NetState, now: &NetState) -> Vec<Step> {
    let mut steps = Vec::new();
    for address in &wanted.addresses {
        match now.addresses.iter().find(|other| other.is_same(address)) {
            None => steps.push(Step::AddAddress(address.clone())),
            Some(other) if other.label != address.label => {
                steps.push(Step::ChangeAddress(address.clone()));
            }
            Some(_) => {}
        }
    }
    let missing = wanted.neighbours.iter();
    let missing = missing.filter(|one| !now.neighbours.contains(one));
    steps.extend(missing.cloned().map(Step::AddNeighbour));
    let mut routes: Vec<&Route> = wanted.routes.iter().collect();
    let has_gateway =
        |route: &Route| matches!(route, Route::V4(route) if route.hops[0].gateway.is_some());
    routes.sort_by_key(|route| has_gateway(route));
    for route in routes
        .into_iter()
        .filter(|route| !now.routes.contains(route))
    {
        let mut others = wanted.routes.iter().filter(|other| *other != route);
        steps.push(Step::AddRoute {
            route: route.clone(),
            append: others.any(|other| other.shares_place_with(route)),
        });
    }
    let missing = wanted.rules.iter().filter(|one| !now.rules.contains(one));
    steps.extend(missing.cloned().map(Step::AddRule));
    steps
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
fn the_plan_of_any_small_state_is_that_of_comparing_each_object_with_each_other() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut appended, mut reported) = (0, 0);
    for round in 0..3000 {
        let (wanted, now) = (small(&mut numbers), small(&mut numbers));
        let plan = planned(&wanted, &now);
        assert_eq!(plan.steps, by_comparing_all(&wanted, &now), "{round}");
        let objects: Vec<_> = plan.problems.iter().map(|one| one.object.clone()).collect();
        assert_eq!(objects, reported_by_comparing_all(&wanted, &now), "{round}");
        let is_appended = |step: &&Step| matches!(step, Step::AddRoute { append: true, .. });
        appended += plan.steps.iter().filter(is_appended).count();
        reported += objects.len();
    }
    assert!(appended > 100 && reported > 100, "{appended}, {reported}");
}

/// A state of so many links, and as many addresses, routes, rules and neighbours; `shift` makes others of half of them.
fn large(count: u64, shift: u64) -> NetState {
    let all = move || shift..shift + count;
    let mut links = links();
    links.extend(all().map(|at| {
        let kind = LinkKind::Other {
            driver: "veth".to_owned(),
        };
        Link::plain(name(&format!("v{at}")), kind)
    }));
    NetState {
        links,
        addresses: all().map(|at| address(at, 32, &format!("v{at}"))).collect(),
        routes: all().map(|at| route(at, 1, Some(at & 0xff), DEV)).collect(),
        rules: all().map(rule).collect(),
        neighbours: all().map(|at| neighbour(at, DEV)).collect(),
        unsupported: all().map(|at| format!("route {at}")).collect(),
    }
}

/// The best of three.
fn time(count: u64) -> Duration {
    let (wanted, now) = (large(count, 0), large(count, count / 2));
    let once = || {
        let begin = Instant::now();
        let plan = planned(&wanted, &now);
        let lost = plan::snapshot_quality::loss(&wanted, &now);
        assert!(lost.is_some() && plan.steps.len() as u64 > count);
        begin.elapsed()
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
