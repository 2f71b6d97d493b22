//! What differs between a namespace and its twin, object by object and attribute by attribute: from what the kernel reported.

mod scope;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use self::scope::ComparedScope;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::sysctl::{Settings, SysctlKey};
use crate::model::problem::RehearsalCause;
use crate::model::raw_object::{RawKind, RawObject};
use crate::model::text::to_hex;
use crate::model::{IfName, Indexed, Link, Mac, NetState};
use crate::plan::DaemonState;
use crate::plan::routers::ADVERTISED_NEIGH;

/// A namespace as the kernel reports it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Side<'a> {
    pub reported: &'a [RawObject],
    /// With what no message has: settings of neighbours, groups, qdiscs.
    pub state: &'a NetState,
}

/// One difference: an object, and what about it.
pub(super) type Difference = (String, RehearsalCause);

/// The differences between a namespace and its twin, in what goes with the links that were lost. The links in `devices` are
/// stand-ins: only what is on them is compared.
pub(super) fn differences(
    real: Side<'_>,
    twin: Side<'_>,
    lost: &BTreeSet<IfName>,
    devices: &BTreeSet<IfName>,
    daemons: DaemonState,
) -> Vec<Difference> {
    let scope = ComparedScope::new(real, twin.state, lost, devices, daemons);
    let now = grouped(real.reported, &scope);
    let then = grouped(twin.reported, &scope);
    let names: BTreeSet<_> = now.keys().chain(then.keys()).collect();
    let nothing = Vec::new();
    let mut found = Vec::new();
    for name in names {
        let both = [&now, &then].map(|side| side.get(name).unwrap_or(&nothing));
        found.extend(in_group(name.1, both, &scope));
    }
    found.extend(address_orders(real.reported, twin.reported, lost));
    found.extend(beyond_messages(real.state, twin.state, &scope));
    found
}

/// The objects of one name, in the kernel's order.
type NamedGroups<'a> = BTreeMap<(RawKind, &'a str), Vec<&'a RawObject>>;

fn grouped<'a>(reported: &'a [RawObject], scope: &ComparedScope<'_>) -> NamedGroups<'a> {
    let mut groups = NamedGroups::new();
    for one in reported.iter().filter(|one| !scope.is_left_out(one)) {
        let group = groups.entry((one.what, one.name.as_str())).or_default();
        group.push(one);
    }
    groups
}

/// The differences of the objects of one name: routes to one prefix, and at most one of everything else.
fn in_group(
    name: &str,
    [real, twin]: [&Vec<&RawObject>; 2],
    scope: &ComparedScope<'_>,
) -> Vec<Difference> {
    if !real.iter().chain(twin).any(|one| scope.has(one)) {
        return Vec::new();
    }
    let mut there: BTreeMap<Vec<_>, Vec<usize>> = BTreeMap::new();
    for (at, one) in twin.iter().enumerate().rev() {
        let same = there.entry(scope.attributes(one).collect()).or_default();
        same.push(at);
    }
    let mut left: Vec<Option<&RawObject>> = twin.iter().copied().map(Some).collect();
    let mut missing = Vec::new();
    for one in real {
        let same = there.get_mut(&scope.attributes(one).collect::<Vec<_>>());
        match same.and_then(Vec::pop) {
            Some(at) => left[at] = None,
            None => missing.push(*one),
        }
    }
    let mut left: Vec<&RawObject> = left.into_iter().flatten().collect();
    let mut found = Vec::new();
    missing.retain(|one| scope.has(one) && !scope.is_of_network(one) && !scope.is_of_carrier(one));
    left.retain(|one| scope.has(one) && !scope.is_of_carrier(one));
    let mut left = left.into_iter();
    for one in missing {
        if scope.is_left_to_daemon(one) {
            found.push((name.to_owned(), RehearsalCause::LeftToDaemon { more: 0 }));
            continue;
        }
        let cause = left
            .next()
            .map_or(RehearsalCause::NotBack, |other| changed(one, other, scope));
        found.push((name.to_owned(), cause));
    }
    found.extend(left.map(|_| (name.to_owned(), RehearsalCause::Surplus)));
    let sequence = |side: &[&RawObject], other: &[&RawObject]| -> Vec<BTreeMap<String, Vec<u8>>> {
        let known: BTreeSet<_> = other.iter().map(|one| &one.attributes).collect();
        let all = side.iter().map(|one| &one.attributes);
        all.filter(|one| known.contains(one)).cloned().collect()
    };
    // A packet to a link-local address names its link.
    let needs_order = |one: &&RawObject| {
        let to = one.route.and_then(|route| route.to);
        !to.is_some_and(|to| matches!(to, IpAddr::V6(to) if to.is_unicast_link_local()))
    };
    let needs_order = real.iter().all(needs_order);
    if found.is_empty() && needs_order && sequence(real, twin) != sequence(twin, real) {
        found.push((name.to_owned(), RehearsalCause::Order));
    }
    found
}

/// The first attribute in which two objects differ, and how many others do.
fn changed(real: &RawObject, twin: &RawObject, scope: &ComparedScope<'_>) -> RehearsalCause {
    let [now, then] = [real, twin].map(|one| scope.attributes(one).collect::<BTreeMap<_, _>>());
    let names: BTreeSet<&String> = now.keys().chain(then.keys()).copied().collect();
    let mut differing = names
        .into_iter()
        .filter(|name| now.get(*name) != then.get(*name));
    let Some(first) = differing.next() else {
        return RehearsalCause::Order;
    };
    let value = |side: &BTreeMap<&String, &[u8]>| side.get(first).map(|value| shown(value));
    RehearsalCause::Differs {
        attribute: first.clone(),
        now: value(&now),
        then: value(&then),
        more: differing.count(),
    }
}

/// A value for people: text, a number, a MAC, or hexadecimal digits.
fn shown(value: &[u8]) -> String {
    let text = value.strip_suffix(&[0]).unwrap_or(value);
    let is_text = text.len() > 1 && text.iter().all(u8::is_ascii_graphic);
    if is_text {
        return String::from_utf8_lossy(text).into_owned();
    }
    let number = |bytes: &[u8]| {
        let byte = <[u8; 1]>::try_from(bytes).map(|[byte]| u32::from(byte));
        let short = <[u8; 2]>::try_from(bytes).map(|bytes| u16::from_ne_bytes(bytes).into());
        let long = <[u8; 4]>::try_from(bytes).map(u32::from_ne_bytes);
        byte.or(short).or(long)
    };
    match (number(value), <[u8; 6]>::try_from(value)) {
        (Ok(number), _) => number.to_string(),
        (_, Ok(mac)) => Mac(mac).to_string(),
        _ => to_hex(value),
    }
}

/// The links whose addresses are in another order: the first one is the source of packets.
fn address_orders(
    real: &[RawObject],
    twin: &[RawObject],
    lost: &BTreeSet<IfName>,
) -> Vec<Difference> {
    let (then, now) = (orders(real, twin), orders(twin, real));
    let links = lost.iter().filter(|dev| then.get(dev) != now.get(dev));
    links
        .map(|dev| (format!("addresses of {dev}"), RehearsalCause::Order))
        .collect()
}

/// The addresses of each link that another side has too, in their order.
fn orders<'a>(side: &'a [RawObject], other: &[RawObject]) -> BTreeMap<&'a IfName, Vec<&'a str>> {
    let others: BTreeSet<&str> = other.iter().map(|one| one.name.as_str()).collect();
    let mut orders: BTreeMap<_, Vec<&str>> = BTreeMap::new();
    for one in side.iter().filter(|one| one.what == RawKind::Address) {
        let name = one.name.as_str();
        for dev in one.devs.iter().filter(|_| others.contains(name)) {
            orders.entry(dev).or_default().push(name);
        }
    }
    orders
}

/// The differences in what no message of links, addresses or routes has.
fn beyond_messages(real: &NetState, twin: &NetState, scope: &ComparedScope<'_>) -> Vec<Difference> {
    let (mut found, twin) = (Vec::new(), Indexed::new(twin));
    for link in &real.links {
        let is_compared = scope.lost.contains(&link.name) && !scope.devices.contains(&link.name);
        let Some(other) = twin.link(&link.name).filter(|_| is_compared) else {
            continue;
        };
        let is_learned =
            |entry: &FdbEntry| scope.daemons == DaemonState::Leave && entry.is_of_daemon();
        if link
            .fdb
            .iter()
            .any(|one| is_learned(one) && !other.fdb.contains(one))
        {
            let object = format!("forwarding entries of {}", link.name);
            found.push((object, RehearsalCause::LeftToDaemon { more: 0 }));
        }
        let (link, other) = (without(link, is_learned), without(other, is_learned));
        let parts = parts(&link, &other, scope.listening.contains(&link.name))
            .into_iter()
            .filter(|(_, is_same)| !is_same);
        found.extend(parts.map(|(part, _)| {
            let object = format!("{part} of {}", link.name);
            (object, RehearsalCause::Contents)
        }));
    }
    found
}

/// A link without some of its forwarding entries.
fn without(link: &Link, is_left_out: impl Fn(&FdbEntry) -> bool) -> Cow<'_, Link> {
    if !link.fdb.iter().any(&is_left_out) {
        return Cow::Borrowed(link);
    }
    let mut link = link.clone();
    link.fdb.retain(|one| !is_left_out(one));
    Cow::Owned(link)
}

/// Whether the twin has the forwarding entries of a link. What links of other namespaces add to a filter is not known.
fn has_forwarding(real: &Link, twin: &Link) -> bool {
    let is_known = |entry: &&FdbEntry| entry.master || !real.has_filter();
    let is_there = |entry: &FdbEntry| real.fdb.contains(entry);
    real.fdb
        .iter()
        .filter(is_known)
        .eq(twin.fdb.iter().filter(is_known))
        && twin.fdb.iter().all(is_there)
}

/// The parts of a link that are in no message of links, and whether they are equal. The tables of `model/fidelity` name them
/// ([`TwinComparison::Part`](crate::model::fidelity::TwinComparison::Part)).
fn parts(real: &Link, twin: &Link, listens: bool) -> [(&'static str, bool); 9] {
    let of_neighbours = |settings: &Settings| -> Settings {
        let settings = settings.iter().copied();
        let is_kept = |key: &SysctlKey| !(listens && ADVERTISED_NEIGH.contains(key));
        settings.filter(|(key, _)| is_kept(key)).collect()
    };
    [
        ("qdiscs, classes and filters", real.traffic == twin.traffic),
        ("forwarding entries", has_forwarding(real, twin)),
        ("VLANs", real.vlans == twin.vlans),
        ("multicast database", real.mdb == twin.mdb),
        ("link-layer groups", real.groups == twin.groups),
        (
            "packet steering and NAPI settings",
            real.sysfs == twin.sysfs,
        ),
        (
            "IPv4 neighbour settings",
            real.sysctls.neigh4 == twin.sysctls.neigh4,
        ),
        (
            "IPv6 neighbour settings",
            of_neighbours(&real.sysctls.neigh6) == of_neighbours(&twin.sysctls.neigh6),
        ),
        (
            "stable_secret",
            real.sysctls.stable_secret == twin.sysctls.stable_secret,
        ),
    ]
}

#[cfg(test)]
mod tests;
