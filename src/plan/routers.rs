//! What the kernel made from the advertisements of routers: restored where it does not listen to them any more, else missed
//! until a router has advertised it again.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use super::link::ipv6::{DISABLE_IPV6, IPV6_MTU};
use crate::model::net::address::{Maker, TEMPORARY};
use crate::model::net::link::sysctl::{Settings, SysctlKey};
use crate::model::net::route::Metric;
use crate::model::problem::PlanCause;
use crate::model::{Address, IfName, Indexed, Link, NetState, Problem, Route};

const ACCEPT: SysctlKey = SysctlKey::known("accept_ra");
const ACCEPT_DEFAULT: SysctlKey = SysctlKey::known("accept_ra_defrtr");
const ACCEPT_PREFIX: SysctlKey = SysctlKey::known("accept_ra_pinfo");
const ACCEPT_ROUTE: SysctlKey = SysctlKey::known("accept_ra_rtr_pref");
const LONGEST_ROUTE: SysctlKey = SysctlKey::known("accept_ra_rt_info_max_plen");
const AUTOCONF: SysctlKey = SysctlKey::known("autoconf");
const FORWARDING: SysctlKey = SysctlKey::known("forwarding");
const HOP_LIMIT: SysctlKey = SysctlKey::known("hop_limit");
/// Settings of the neighbours of a link that an advertisement changes.
pub(crate) const ADVERTISED_NEIGH: [SysctlKey; 3] = [
    SysctlKey::known("base_reachable_time_ms"),
    SysctlKey::known("gc_stale_time"),
    SysctlKey::known("retrans_time_ms"),
];

/// The state with what no advertisement would bring back, to be restored like what programs add; and a warning about what a
/// router is to bring to links for which `name_now` returns the present name.
pub(super) fn split<'a>(
    wanted: Cow<'a, NetState>,
    now: &NetState,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
) -> (Cow<'a, NetState>, Vec<Problem>) {
    let is_advertised = |one: &Address| is_advertised(one);
    if wanted.advertised.is_empty() && !wanted.addresses.iter().any(is_advertised) {
        return (wanted, Vec::new());
    }
    let mut state = wanted.into_owned();
    let settings: BTreeMap<IfName, Settings> = state
        .links
        .iter()
        .map(|link| (link.name.clone(), link.sysctls.ipv6.clone()))
        .collect();
    let settings = |dev: &IfName| settings.get(dev);
    let mut awaited = Awaited::new(now);
    for address in state.addresses.iter_mut().filter(|one| is_advertised(one)) {
        if !settings(&address.dev).is_some_and(brings_addresses) {
            address.maker = Maker::Admin;
        } else if let Some(dev) = name_now(&address.dev) {
            awaited.address(&dev, address);
        }
    }
    let there: HashSet<&Route> = now.advertised.iter().collect();
    for route in &state.advertised {
        let devs = route.devs();
        let [dev] = devs.as_slice() else { continue };
        let Some(dev_now) = name_now(dev) else {
            continue;
        };
        let now = route.clone().renamed(|_| dev_now.clone());
        if settings(dev).is_some_and(|settings| brings(settings, route)) {
            awaited.route(&dev_now, &now);
        } else if !there.contains(&now) {
            state.routes.push(route.clone());
        }
    }
    (Cow::Owned(state), awaited.problems)
}

/// An address that the kernel derived from a prefix of a router; not one of those that it replaces from time to time.
fn is_advertised(address: &Address) -> bool {
    address.maker == Maker::Network && address.flags & TEMPORARY == 0
}

/// Whether the kernel listens to the routers on a link with these settings.
pub(crate) fn listens(settings: &Settings) -> bool {
    let is_off = |key| settings.get(key).is_none_or(|value| *value == 0);
    let accepts = match settings.get(&ACCEPT) {
        Some(0) => false,
        Some(1) | None => is_off(&FORWARDING),
        Some(_) => true,
    };
    accepts && is_off(&DISABLE_IPV6)
}

/// The link as it is to be: what a router has set on it stays while its route is there, and an MTU of a router is left to it. The
/// kernel notes the hop limit and a new MTU at the route.
pub(super) fn target<'w>(
    wanted: &'w Link,
    now: &Link,
    (state, present): (&Indexed<'_>, &Indexed<'_>),
) -> Cow<'w, Link> {
    if wanted.sysctls == now.sysctls || !listens(&wanted.sysctls.ipv6) {
        return Cow::Borrowed(wanted);
    }
    let mut target = Cow::Borrowed(wanted);
    let mut keep = |key: SysctlKey| {
        let settings = &mut target.to_mut().sysctls;
        for (settings, now) in [
            (&mut settings.ipv6, &now.sysctls.ipv6),
            (&mut settings.neigh6, &now.sysctls.neigh6),
        ] {
            if let (Some(value), Some(now)) = (settings.get_mut(&key), now.get(&key)) {
                *value = *now;
            }
        }
    };
    if let Some(route) = default_of_router(now, present) {
        ADVERTISED_NEIGH.into_iter().for_each(&mut keep);
        for (key, metric) in [(HOP_LIMIT, Metric::Hoplimit), (IPV6_MTU, Metric::Mtu)] {
            if is_noted(now, &key, route, metric) {
                keep(key);
            }
        }
    }
    let recorded = default_of_router(wanted, state);
    if recorded.is_some_and(|route| is_noted(wanted, &IPV6_MTU, route, Metric::Mtu)) {
        keep(IPV6_MTU);
    }
    target
}

/// The default route that a router has brought to a link.
fn default_of_router<'a>(link: &Link, state: &Indexed<'a>) -> Option<&'a Route> {
    let mut advertised = state.state.advertised.iter();
    advertised.find(|route| route.is_default() && route.devs().contains(&&link.name))
}

/// Whether the route has the value of a setting of its link.
fn is_noted(link: &Link, key: &SysctlKey, route: &Route, metric: Metric) -> bool {
    let noted = route.metrics.get(&metric).copied().map(i64::from);
    route.is_ipv6() && noted.is_some() && link.sysctls.ipv6.get(key).copied() == noted
}

/// Whether a setting is on, which it is by default.
fn is_on(settings: &Settings, key: &SysctlKey) -> bool {
    settings.get(key) != Some(&0)
}

fn brings_addresses(settings: &Settings) -> bool {
    listens(settings) && is_on(settings, &ACCEPT_PREFIX) && is_on(settings, &AUTOCONF)
}

fn brings(settings: &Settings, route: &Route) -> bool {
    let length = route.destination().prefix_len();
    let longest = settings.get(&LONGEST_ROUTE).copied().unwrap_or_default();
    let is_on = |key| is_on(settings, key);
    let accepts = match route.gateways().is_empty() {
        true => is_on(&ACCEPT_PREFIX),
        false if length == 0 => is_on(&ACCEPT_DEFAULT),
        false => is_on(&ACCEPT_ROUTE) && i64::from(length) <= longest,
    };
    accepts && listens(settings)
}

/// What is missing on links that are up, where a router has brought nothing of its kind: one that has other prefixes now has
/// withdrawn the former ones.
struct Awaited<'a> {
    now: Indexed<'a>,
    advertised: HashSet<(&'a IfName, Brought)>,
    present: HashSet<&'a Route>,
    reported: HashSet<(IfName, Brought)>,
    problems: Vec<Problem>,
}

/// What an advertisement brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Brought {
    Address,
    Default,
    Route,
}

impl Brought {
    fn of(route: &Route) -> Self {
        if route.is_default() {
            Self::Default
        } else {
            Self::Route
        }
    }
}

impl<'a> Awaited<'a> {
    fn new(now: &'a NetState) -> Self {
        let brought = |route: &'a Route| {
            let devs = route.devs().into_iter();
            devs.map(|dev| (dev, Brought::of(route)))
        };
        Self {
            now: Indexed::new(now),
            advertised: now.advertised.iter().flat_map(brought).collect(),
            present: now.routes.iter().collect(),
            reported: HashSet::new(),
            problems: Vec::new(),
        }
    }

    fn address(&mut self, dev: &IfName, address: &Address) {
        let mut now = self.now.addresses_of(dev).iter();
        let is_there = now.any(|now| is_advertised(now) || now.is_same(address));
        self.miss(
            dev,
            Brought::Address,
            is_there,
            format!("address {address}"),
        );
    }

    fn route(&mut self, dev: &IfName, route: &Route) {
        let what = Brought::of(route);
        let is_there = self.advertised.contains(&(dev, what)) || self.present.contains(route);
        self.miss(dev, what, is_there, format!("route {route}"));
    }

    fn miss(&mut self, dev: &IfName, what: Brought, is_there: bool, object: String) {
        let is_up = self.now.link(dev).is_some_and(|link| link.flags.up);
        if is_up && !is_there && self.reported.insert((dev.clone(), what)) {
            self.problems.push(PlanCause::NotAdvertised.warning(object));
        }
    }
}
