//! The steps from a link's present state to its stored one, without its creation.

use std::collections::BTreeSet;

use crate::model::net::link::Flags;
use crate::model::net::link::sysctl::{Folder, SysctlKey};
use crate::model::net::raw::RawAttribute;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::{IfName, Indexed, Link, LinkKind, Mac, Parent, Problem};
use crate::plan::link_ipv6::{self, ADDR_GEN_MODE, DISABLE_IPV6};
use crate::plan::{Change, NetlinkStep, Plan, Step};

/// `net/ipv6/conf/<interface>/stable_secret`, and the mode that is set when it is written (`IN6_ADDR_GEN_MODE_STABLE_PRIVACY`).
const STABLE_SECRET: SysctlKey = SysctlKey::known("stable_secret");
const STABLE_PRIVACY: i64 = 2;

/// The steps for one link's own attributes, before it goes up.
pub(crate) fn attributes(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let is_bond_port = is_bond_port(wanted, state);
    let comes_with_port = comes_with_port(wanted, state, present);
    let dev = &now.name;
    let mut set = |change, was: Option<String>| {
        plan.push(NetlinkStep::SetLink {
            dev: dev.clone(),
            change,
            now: was,
        });
    };
    // A bond decides its ports' MAC.
    if !is_bond_port {
        let mac = wanted
            .mac
            .filter(|_| !comes_with_port && !wanted.kind.is_ipvlan());
        if let Some(mac) = mac.filter(|mac| now.mac != Some(*mac)) {
            set(Change::Mac(mac), now.mac.map(|mac| mac.to_string()));
        }
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
    let altnames: Vec<_> = wanted
        .altnames
        .iter()
        .filter(|name| !now.altnames.contains(name))
        .cloned()
        .collect();
    if !altnames.is_empty() {
        set(Change::Altnames(altnames), None);
    }
    let settable = |flags: Flags| Flags {
        up: false,
        carrier: false,
        ..flags
    };
    if !is_bond_port && settable(wanted.flags) != settable(now.flags) {
        set(Change::Flags(now.flags, wanted.flags), None);
    }
}

/// Whether its MTU is its own: a bond gives its own one to a port, once.
pub(super) fn decides_mtu(wanted: &Link, now: &Link, state: &Indexed<'_>) -> bool {
    now.master == wanted.master || !is_bond_port(wanted, state)
}

/// The steps for what is not the default; a default may be that of another driver.
fn beyond_defaults(wanted: &Link, now: &Link, plan: &mut Plan) {
    let limits = wanted.offload.iter();
    let differs = limits.filter(|(limit, value)| now.offload.get(limit) != Some(value));
    let offload: Vec<_> = differs.map(|(limit, value)| (*limit, *value)).collect();
    if !offload.is_empty() {
        plan.push(Step::set(&now.name, Change::Offload(offload)));
    }
    let groups = wanted.groups.iter();
    let groups = groups.filter(|group| !now.groups.contains(group));
    let groups: Vec<Mac> = groups.copied().collect();
    if !groups.is_empty() {
        let dev = now.name.clone();
        plan.push(Step::JoinGroups { dev, groups });
    }
    if wanted.protodown && !now.protodown {
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
    plan.extend(differ.map(|(key, value)| Step::Sysfs {
        dev: now.name.clone(),
        key: key.clone(),
        value: value.clone(),
    }));
}

/// Whether a bridge has the MAC of a port that is missing: it gets it with the port, and would keep one that was set.
fn comes_with_port(wanted: &Link, state: &Indexed<'_>, present: &Indexed<'_>) -> bool {
    let is_led_by =
        |port: &&Link| port.mac == wanted.mac && port.master.as_ref() == Some(&wanted.name);
    let mut ports = state.state.links.iter().filter(is_led_by);
    let is_missing = |port: &Link| {
        let now = present.link(&port.name);
        now.is_none_or(|now| now.master != port.master)
    };
    wanted.takes_ports() && ports.any(is_missing)
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
    let is_switched_on = link_ipv6::to_switch_on(wanted, now).is_some();
    // Steps of their own.
    let is_apart = |folder, key| {
        folder == Folder::Ipv6Conf
            && (key == ADDR_GEN_MODE || (key == DISABLE_IPV6 && is_switched_on))
    };
    let folders = wanted.sysctls.folders().into_iter();
    for ((folder, wanted), (_, current)) in folders.zip(now.sysctls.folders()) {
        let differing = wanted.differing(current);
        let differing = differing.filter(|(key, ..)| !is_apart(folder, *key));
        plan.extend(differing.map(|(key, value, was)| Step::Sysctl {
            dev: now.name.clone(),
            folder,
            key,
            value: value.to_string(),
            now: was.to_string(),
        }));
    }
    beyond_defaults(wanted, now, plan);
    link_ipv6::switch_on(wanted, now, mode_now, state, plan);
}

/// Whether the link is a port of a bond, which decides its MAC, its MTU and whether it is up.
pub(crate) fn is_bond_port(link: &Link, state: &Indexed<'_>) -> bool {
    let master = link.master.as_ref().and_then(|name| state.link(name));
    master.is_some_and(|master| matches!(master.kind, LinkKind::Bond(_)))
}

/// What is wrong if the link cannot become a port of its former master again.
pub(super) fn lost_master(
    wanted: &Link,
    now: Option<&Link>,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
) -> Option<Problem> {
    let then = wanted.master.as_ref();
    let then = then.filter(|_| !is_bond_port(wanted, state))?;
    match now.and_then(|now| now.master.as_ref()) {
        Some(now) if now == then => None,
        Some(now) => {
            let (now, then) = (now.clone(), then.clone());
            Some(ConflictCause::OtherMaster { now, then }.error(&wanted.name))
        }
        None if can_join(then, state, present) => None,
        None => {
            let master = then.clone();
            Some(PlanCause::MasterLost { master }.error(&wanted.name))
        }
    }
}

/// Whether the master is still there, and netfix can add a port to it.
fn can_join(master: &IfName, state: &Indexed<'_>, present: &Indexed<'_>) -> bool {
    let takes_ports = |link: Option<&Link>| link.is_some_and(Link::takes_ports);
    takes_ports(state.link(master)) && takes_ports(present.link(master))
}

/// The steps that make the link a port of its bridge or VRF again, with its settings there.
pub(crate) fn port(
    wanted: &Link,
    now: &Link,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    let Some(master) = wanted
        .master
        .as_ref()
        .filter(|_| !is_bond_port(wanted, state))
    else {
        return;
    };
    if now.master.is_none() && can_join(master, state, present) {
        let change = Change::Master(master.clone());
        plan.push(Step::set(&now.name, change));
    } else if now.master.as_ref() == Some(master) {
        let known = now.port.iter().map(|raw| raw.number);
        let known: BTreeSet<u16> = known.collect();
        let differs = |raw: &&RawAttribute| known.contains(&raw.number) && !now.port.contains(raw);
        let settings: Vec<_> = wanted.port.iter().filter(differs).cloned().collect();
        if !settings.is_empty() {
            plan.push(Step::set(&now.name, Change::Port(settings)));
        }
    }
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

/// `below`, and the names of all `links` above a link in `below`.
pub(crate) fn closure(below: BTreeSet<IfName>, links: &[Link]) -> BTreeSet<IfName> {
    let mut names = below;
    loop {
        let is_above = |link: &&Link| {
            let on_parent =
                matches!(&link.parent, Some(Parent::Own(parent)) if names.contains(parent));
            let is_bond = matches!(link.kind, LinkKind::Bond(_));
            let has_port = is_bond
                && links.iter().any(|port| {
                    port.master.as_ref() == Some(&link.name) && names.contains(&port.name)
                });
            !names.contains(&link.name) && (on_parent || has_port)
        };
        let more: Vec<_> = links
            .iter()
            .filter(is_above)
            .map(|link| link.name.clone())
            .collect();
        if more.is_empty() {
            return names;
        }
        names.extend(more);
    }
}
