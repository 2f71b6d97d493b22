//! The steps from a link's present state to its stored one, without its creation.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::Hash;

use super::ipv6::{self, ADDR_GEN_MODE, DISABLE_IPV6, IPV6_MTU, STABLE_PRIVACY};
use super::queues;
use crate::model::net::link::Flags;
use crate::model::net::link::sysctl::{Folder, SysctlKey};
use crate::model::problem::ConflictCause;
use crate::model::{Indexed, Link, LinkKind, Mac, Problem};
use crate::plan::{Change, NetlinkStep, Plan, Step};

/// `net/ipv6/conf/<interface>/stable_secret`.
const STABLE_SECRET: SysctlKey = SysctlKey::known("stable_secret");

/// The steps for one link's own attributes, before it goes up.
pub(crate) fn attributes(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let is_bond_port = is_bond_port(wanted, state);
    let mut set = |change, was: Option<String>| {
        plan.push(NetlinkStep::SetLink {
            dev: now.name.clone(),
            change,
            now: was,
        });
    };
    if let Some(mac) = other_mac(wanted, now, state, present) {
        set(Change::Mac(mac), now.mac.map(|mac| mac.to_string()));
    }
    if wanted.mtu != now.mtu && decides_mtu(wanted, now, state) {
        set(Change::Mtu(wanted.mtu), Some(now.mtu.to_string()));
    }
    if wanted.broadcast != now.broadcast {
        let usual = Mac([0xff; 6]);
        set(Change::Broadcast(wanted.broadcast.unwrap_or(usual)), None);
    }
    if wanted.txqueuelen != now.txqueuelen {
        set(
            Change::TxQueueLen(wanted.txqueuelen),
            Some(now.txqueuelen.to_string()),
        );
    }
    if wanted.group != now.group {
        set(Change::Group(wanted.group), Some(now.group.to_string()));
    }
    // One that the checkpoint lacks was added later, and stays.
    if let Some(alias) = wanted.alias.clone()
        && now.alias.as_ref() != Some(&alias)
    {
        let was = now.alias.as_ref().map(ToString::to_string);
        set(Change::Alias(alias), was);
    }
    let altnames = lacking(&wanted.altnames, &now.altnames);
    if !altnames.is_empty() {
        set(Change::Altnames(altnames), None);
    }
    if !is_bond_port && settable(wanted.flags) != settable(now.flags) {
        set(Change::Flags(now.flags, wanted.flags), None);
    }
}

/// The recorded MAC, where the link has another one of its own.
pub(super) fn other_mac(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
) -> Option<Mac> {
    // A bond decides its ports' MAC.
    let gets_mac = || {
        is_bond_port(wanted, state)
            || wanted.kind.is_ipvlan()
            || comes_with_port(wanted, state, present)
            || follows_ports(now, present, |port| port.mac)
    };
    wanted
        .mac
        .filter(|mac| now.mac != Some(*mac) && !gets_mac())
}

/// The flags that are changed together.
fn settable(flags: Flags) -> Flags {
    Flags {
        up: false,
        carrier: false,
        ..flags
    }
}

/// What of `wanted` is not there.
pub(super) fn lacking<T: Clone + Eq + Hash>(wanted: &[T], now: &[T]) -> Vec<T> {
    let present: HashSet<&T> = now.iter().collect();
    let missing = wanted.iter().filter(|one| !present.contains(one));
    missing.cloned().collect()
}

/// Whether its MTU is its own: a bond gives its own one to a port, once.
pub(super) fn decides_mtu(wanted: &Link, now: &Link, state: &Indexed<'_>) -> bool {
    now.master == wanted.master || !is_bond_port(wanted, state)
}

/// The link as it is to be: a bridge whose MTU is that of a port keeps it, with what IPv6 derives from it.
pub(super) fn target<'w>(wanted: &'w Link, now: &Link, present: &Indexed<'_>) -> Cow<'w, Link> {
    if wanted.mtu == now.mtu || !follows_ports(now, present, |port| Some(port.mtu)) {
        return Cow::Borrowed(wanted);
    }
    let mut target = wanted.clone();
    target.mtu = now.mtu;
    if let Some(mtu) = target.sysctls.ipv6.get_mut(&IPV6_MTU)
        && *mtu == i64::from(wanted.mtu)
    {
        *mtu = now.mtu.into();
    }
    Cow::Owned(target)
}

/// Whether a bridge has the lowest of a number of its ports, or no port, and so does not keep a number of its own: it would keep one
/// that is set.
fn follows_ports<T: Ord>(
    now: &Link,
    present: &Indexed<'_>,
    number: impl Fn(&Link) -> Option<T>,
) -> bool {
    let ports = present.ports_of(&now.name).iter();
    let lowest = ports.filter_map(|port| number(port)).min();
    now.is_bridge() && lowest.is_none_or(|lowest| number(now) == Some(lowest))
}

/// The steps for what is not the default; a default may be that of another driver.
fn beyond_defaults(wanted: &Link, now: &Link, plan: &mut Plan) {
    let offload: Vec<_> = wanted
        .offload
        .iter()
        .filter(|(limit, value)| now.offload.get(limit) != Some(value))
        .map(|(limit, value)| (*limit, *value))
        .collect();
    if !offload.is_empty() {
        plan.push(Step::set(&now.name, Change::Offload(offload)));
    }
    let groups = lacking(&wanted.groups, &now.groups);
    if !groups.is_empty() {
        let dev = now.name.clone();
        plan.push(Step::JoinGroups { dev, groups });
    }
    // With carrier on its lower link the kernel gives it carrier, although it is held down.
    let is_held = wanted.protodown && !wanted.flags.carrier;
    plan.is_unsettled |= is_held;
    if wanted.protodown && !now.protodown || is_held && now.flags.carrier {
        plan.push(Step::set(&now.name, Change::ProtoDown));
    }
    if wanted.dormant && !now.dormant {
        plan.push(Step::set(&now.name, Change::Dormant));
    }
    if let Some(token) = wanted.token.filter(|token| now.token != Some(*token)) {
        plan.push(Step::set(&now.name, Change::Token(token)));
    }
    let settings = wanted.sysfs.iter();
    let differ = settings.filter(|(key, value)| now.sysfs.get(key) != Some(value));
    let (mut gone, mut number) = (Vec::new(), None);
    for (key, value) in differ {
        if let Some(present) = queues::number_without(key, now, plan) {
            gone.push(key);
            number = Some(present);
        } else {
            plan.push(Step::Sysfs {
                dev: now.name.clone(),
                key: key.clone(),
                value: value.clone(),
            });
        }
    }
    queues::report(&now.name, number, &gone, plan);
}

/// Whether a bridge has the MAC of a port that is missing: it gets it with the port, and would keep one that was set.
fn comes_with_port(wanted: &Link, state: &Indexed<'_>, present: &Indexed<'_>) -> bool {
    let is_missing = |port: &Link| {
        let now = present.link(&port.name);
        now.is_none_or(|now| now.master != port.master)
    };
    let mut ports = state.ports_of(&wanted.name).iter();
    wanted.takes_ports() && ports.any(|port| port.mac == wanted.mac && is_missing(port))
}

/// The step for the data of the link's kind, but for a bond's.
pub(crate) fn kind_data(wanted: &Link, now: &Link, plan: &mut Plan) {
    let differs = match (&wanted.kind, &now.kind) {
        (LinkKind::Vlan(then), LinkKind::Vlan(now)) => then.vlan_flags != now.vlan_flags,
        (LinkKind::Macvlan(then), LinkKind::Macvlan(now))
        | (LinkKind::Macvtap(then), LinkKind::Macvtap(now)) => then != now,
        (LinkKind::Ipvlan(then), LinkKind::Ipvlan(now))
        | (LinkKind::Ipvtap(then), LinkKind::Ipvtap(now)) => then != now,
        _ => false,
    };
    if differs {
        let change = Change::Kind(wanted.kind.clone());
        plan.push(Step::set(&now.name, change));
    }
}

/// The steps for one link's sysctls: what differs, nothing else.
pub(crate) fn sysctls(wanted: &Link, now: &Link, state: &Indexed<'_>, plan: &mut Plan) {
    let mut mode_now = now.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    let secret = wanted.sysctls.stable_secret;
    if let Some(secret) = secret.filter(|secret| now.sysctls.stable_secret != Some(*secret)) {
        plan.push(Step::Sysctl {
            dev: now.name.clone(),
            folder: Folder::Ipv6Conf,
            key: STABLE_SECRET,
            value: secret.to_string(),
            now: String::new(),
        });
        // Writing the secret changes the mode too, so the mode is always written after it.
        mode_now = mode_now.map(|_| STABLE_PRIVACY);
    }
    let is_switched_on = ipv6::to_switch_on(wanted, now).is_some();
    let folders = wanted.sysctls.folders().into_iter();
    for ((folder, wanted), (_, current)) in folders.zip(now.sysctls.folders()) {
        for (key, value, was) in wanted.differing(current) {
            let has_own_step = key == ADDR_GEN_MODE || (key == DISABLE_IPV6 && is_switched_on);
            if folder == Folder::Ipv6Conf && has_own_step {
                continue;
            }
            plan.push(Step::Sysctl {
                dev: now.name.clone(),
                folder,
                key,
                value: value.to_string(),
                now: was.to_string(),
            });
        }
    }
    beyond_defaults(wanted, now, plan);
    ipv6::switch_on(wanted, now, mode_now, state, plan);
}

/// Whether the link is a port of a bond, which decides its MAC, its MTU and whether it is up.
pub(crate) fn is_bond_port(link: &Link, state: &Indexed<'_>) -> bool {
    let master = link.master.as_ref().and_then(|name| state.link(name));
    master.is_some_and(|master| matches!(master.kind, LinkKind::Bond(_)))
}

/// Another link with the name of the stored one, which netfix must not change.
pub(crate) fn conflict(wanted: &Link, now: &Link) -> Option<Problem> {
    let words = |kind: &LinkKind| match kind {
        LinkKind::Vlan(vlan) => format!("{} {}", vlan.id, vlan.protocol),
        other => other.name().to_owned(),
    };
    let (now_is, then) = (words(&now.kind), words(&wanted.kind));
    let cause = match (&wanted.kind, &now.kind) {
        _ if wanted.kind.name() != now.kind.name() => ConflictCause::OtherKind {
            now: now.kind.name().to_owned(),
            then: wanted.kind.name().to_owned(),
        },
        (LinkKind::Vlan(_), LinkKind::Vlan(_)) if now_is != then => {
            ConflictCause::OtherVlan { now: now_is, then }
        }
        _ => return None,
    };
    Some(cause.error(&now.name))
}
