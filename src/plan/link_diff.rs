//! The steps from a link's present state to its stored one, without its creation.

use std::collections::BTreeSet;

use crate::model::address::Maker;
use crate::model::link::Flags;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::raw::RawAttribute;
use crate::model::sysctl::{Folder, SysctlKey};
use crate::model::sysfs::SysfsSettings;
use crate::model::{IfName, Indexed, Link, LinkKind, Mac, Problem, Traffic};
use crate::plan::{Change, Observed, Plan, Step, traffic};

/// `net/ipv6/conf/<interface>/mtu`.
const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");

/// `net/ipv6/conf/<interface>/addr_gen_mode`, and its value once a secret is written (`IN6_ADDR_GEN_MODE_*`).
const STABLE_SECRET: SysctlKey = SysctlKey::known("stable_secret");
pub(super) const ADDR_GEN_MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
const STABLE_PRIVACY: i64 = 2;
/// The mode in which the kernel adds no link-local address.
pub(super) const NO_ADDRESS: i64 = 1;
/// `net/ipv6/conf/<interface>/disable_ipv6`.
pub(super) const DISABLE_IPV6: SysctlKey = SysctlKey::known("disable_ipv6");

/// A new link right after its creation: down, with initial settings.
pub(crate) fn fresh_link(wanted: &Link, observed: Observed<'_>) -> Option<Link> {
    let mut sysctls = observed.new_link?.clone();
    // The one setting that is not from `default`: it follows the link's MTU.
    if let Some(mtu) = sysctls.ipv6.get_mut(&IPV6_MTU) {
        *mtu = wanted.mtu.into();
    }
    let flags = Flags {
        multicast: true,
        ..Flags::default()
    };
    Some(Link {
        flags,
        alias: None,
        altnames: Vec::new(),
        group: 0,
        master: None,
        broadcast: None,
        groups: Vec::new(),
        protodown: false,
        dormant: false,
        token: None,
        traffic: Traffic::default(),
        sysctls,
        sysfs: SysfsSettings::new(),
        ..wanted.clone()
    })
}

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
        plan.steps.push(Step::SetLink {
            dev: dev.clone(),
            change,
            now: was,
        });
    };
    // A bond decides its ports' MAC and MTU.
    if !is_bond_port {
        let mac = wanted
            .mac
            .filter(|_| !comes_with_port && !wanted.kind.is_ipvlan());
        if let Some(mac) = mac.filter(|mac| now.mac != Some(*mac)) {
            set(Change::Mac(mac), now.mac.map(|mac| mac.to_string()));
        }
        if wanted.mtu != now.mtu {
            set(Change::Mtu(wanted.mtu), Some(now.mtu.to_string()));
        }
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

/// The steps for what is not the default; a default may be that of another driver.
fn beyond_defaults(wanted: &Link, now: &Link, plan: &mut Plan) {
    let limits = wanted.offload.iter();
    let differs = limits.filter(|(limit, value)| now.offload.get(limit) != Some(value));
    let offload: Vec<_> = differs.map(|(limit, value)| (*limit, *value)).collect();
    if !offload.is_empty() {
        plan.steps
            .push(Step::set(&now.name, Change::Offload(offload)));
    }
    let missing = wanted.groups.iter();
    let missing = missing.filter(|group| !now.groups.contains(group));
    let missing: Vec<Mac> = missing.copied().collect();
    if !missing.is_empty() {
        plan.steps
            .push(Step::set(&now.name, Change::Groups(missing)));
    }
    if wanted.protodown && !now.protodown {
        plan.steps.push(Step::set(&now.name, Change::ProtoDown));
    }
    if wanted.dormant && !now.dormant {
        plan.steps.push(Step::set(&now.name, Change::Dormant));
    }
    if let Some(token) = wanted.token.filter(|token| now.token != Some(*token)) {
        plan.steps.push(Step::set(&now.name, Change::Token(token)));
    }
    let settings = wanted.sysfs.iter();
    let differ = settings.filter(|(key, value)| now.sysfs.get(key) != Some(value));
    plan.steps.extend(differ.map(|(key, value)| {
        let change = Change::Sysfs(key.clone(), value.clone());
        Step::set(&now.name, change)
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
        plan.steps.push(Step::set(&now.name, change));
    }
}

/// The steps for one link's sysctls: what differs, nothing else.
pub(crate) fn sysctls(wanted: &Link, now: &Link, state: &Indexed<'_>, plan: &mut Plan) {
    let mut current = now.sysctls.clone();
    let secret = wanted.sysctls.stable_secret;
    if let Some(secret) = secret.filter(|secret| current.stable_secret != Some(*secret)) {
        plan.steps.push(Step::Sysctl {
            dev: now.name.clone(),
            folder: Folder::Ipv6Conf,
            key: STABLE_SECRET,
            value: secret.to_string(),
            now: String::new(),
        });
        // Writing the secret changes the mode too, so the mode is always written after it.
        if let Some(mode) = current.ipv6.get_mut(&ADDR_GEN_MODE) {
            *mode = STABLE_PRIVACY;
        }
    }
    // Set by netlink: unlike a write to the sysctl, that adds no address to a link that is down.
    let mode_now = current.ipv6.remove(&ADDR_GEN_MODE);
    let folders = wanted.sysctls.folders().into_iter();
    for ((folder, wanted), (_, current)) in folders.zip(current.folders()) {
        for (key, value) in wanted {
            let Some(was) = current.get(key).filter(|was| *was != value) else {
                continue;
            };
            plan.steps.push(Step::Sysctl {
                dev: now.name.clone(),
                folder,
                key: *key,
                value: value.to_string(),
                now: was.to_string(),
            });
        }
    }
    beyond_defaults(wanted, now, plan);
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    if mode_now.is_some() && mode != mode_now && !adds_link_local(wanted, state) {
        plan.steps.extend(mode.and_then(|mode| set_mode(now, mode)));
    }
}

fn set_mode(now: &Link, mode: i64) -> Option<Step> {
    let mode = u8::try_from(mode).ok()?;
    Some(Step::set(&now.name, Change::AddrGenMode(mode)))
}

/// Whether the kernel would add a link-local IPv6 address when the link goes up, and the link had none.
fn adds_link_local(wanted: &Link, state: &Indexed<'_>) -> bool {
    let has_ipv6 = wanted.sysctls.ipv6.get(&DISABLE_IPV6) == Some(&0);
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE);
    let makes_one = mode.is_some_and(|mode| *mode != NO_ADDRESS);
    let mut addresses = state.addresses_of(&wanted.name).iter();
    let had_one = addresses.any(|address| address.maker == Maker::Kernel);
    let master = wanted.master.as_ref().map(|name| state.link(name));
    let decides = master.is_none_or(|master| master.is_some_and(Link::takes_ports));
    // Without carrier no link has one yet.
    let is_plain = wanted.flags.up && wanted.flags.carrier && decides;
    has_ipv6 && makes_one && is_plain && !had_one
}

/// The steps that take a link up.
pub(crate) fn up(wanted: &Link, now: &Link, state: &Indexed<'_>, plan: &mut Plan) {
    let adds_link_local = adds_link_local(wanted, state);
    // A bond takes a port up when it gets it, and not later.
    let waits_for_bond = is_bond_port(wanted, state) && now.master != wanted.master;
    let goes_up = wanted.flags.up && !now.flags.up && !waits_for_bond;
    let mode_now = now.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    if goes_up && adds_link_local {
        plan.steps.extend(set_mode(now, NO_ADDRESS));
    }
    if goes_up {
        plan.steps.push(Step::set(&now.name, Change::Up));
    }
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    let Some(mode) = mode.filter(|_| adds_link_local) else {
        return;
    };
    if goes_up || (now.flags.up && !now.flags.carrier && mode_now != Some(mode)) {
        // With another mode, the kernel would add the address as soon as there is carrier.
        plan.later.extend(set_mode(now, mode));
    } else if mode_now != Some(mode) {
        plan.steps.extend(set_mode(now, mode));
    }
}

/// Reports what no step restores: the place in a team or another master, and some of the traffic control.
pub(crate) fn cannot_restore(
    wanted: &Link,
    now: Option<&Link>,
    state: &Indexed<'_>,
    present: &Indexed<'_>,
    plan: &mut Plan,
) {
    plan.problems
        .extend(lost_master(wanted, now, state, present));
    traffic::cannot_restore(wanted, now, plan);
}

/// Whether the link is a port of a bond, which decides its MAC, its MTU and whether it is up.
pub(crate) fn is_bond_port(link: &Link, state: &Indexed<'_>) -> bool {
    let master = link.master.as_ref().and_then(|name| state.link(name));
    master.is_some_and(|master| matches!(master.kind, LinkKind::Bond(_)))
}

fn lost_master(
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
        plan.steps.push(Step::set(&now.name, change));
    } else if now.master.as_ref() == Some(master) {
        let known = now.port.iter().map(|raw| raw.number);
        let known: BTreeSet<u16> = known.collect();
        let differs = |raw: &&RawAttribute| known.contains(&raw.number) && !now.port.contains(raw);
        let settings: Vec<_> = wanted.port.iter().filter(differs).cloned().collect();
        if !settings.is_empty() {
            plan.steps
                .push(Step::set(&now.name, Change::Port(settings)));
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
            let on_parent = matches!(&link.parent, Some(crate::model::Parent::Own(parent)) if names.contains(parent));
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
