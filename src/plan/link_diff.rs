//! The steps from a link's present state to its stored one, without its creation.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::model::address::{DADFAILED, Maker};
use crate::model::link::Flags;
use crate::model::problem::{ConflictCause, PlanCause};
use crate::model::sysctl::{Folder, SysctlKey};
use crate::model::{Address, IfName, Indexed, Link, LinkKind, Neighbour, NetState, Problem, Route};
use crate::plan::{Change, Observed, Plan, Step};

/// `net/ipv6/conf/<interface>/mtu`.
const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");

/// `net/ipv6/conf/<interface>/addr_gen_mode`, and its value once a secret is written (`IN6_ADDR_GEN_MODE_*`).
const STABLE_SECRET: SysctlKey = SysctlKey::known("stable_secret");
const ADDR_GEN_MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
const STABLE_PRIVACY: i64 = 2;
/// The mode in which the kernel adds no link-local address.
const NO_ADDRESS: i64 = 1;
/// `net/ipv6/conf/<interface>/disable_ipv6`.
const DISABLE_IPV6: SysctlKey = SysctlKey::known("disable_ipv6");

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
        sysctls,
        ..wanted.clone()
    })
}

/// The steps for one link's own attributes, before it goes up.
pub(crate) fn attributes(wanted: &Link, now: &Link, state: &Indexed<'_>, plan: &mut Plan) {
    let is_bond_port = is_bond_port(wanted, state);
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
        if let Some(mac) = wanted.mac.filter(|mac| now.mac != Some(*mac)) {
            set(Change::Mac(mac), now.mac.map(|mac| mac.to_string()));
        }
        if wanted.mtu != now.mtu {
            set(Change::Mtu(wanted.mtu), Some(now.mtu.to_string()));
        }
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
    if let Some(alias) = wanted
        .alias
        .as_ref()
        .filter(|alias| now.alias.as_ref() != Some(alias))
    {
        set(Change::Alias(alias.clone()), None);
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

/// The step for the data of the link's kind, but for a bond's.
pub(crate) fn kind_data(wanted: &Link, now: &Link, plan: &mut Plan) {
    let change = match (&wanted.kind, &now.kind) {
        (LinkKind::Vlan(then), LinkKind::Vlan(now)) if then.vlan_flags != now.vlan_flags => {
            Change::Vlan(then.clone())
        }
        (LinkKind::Macvlan(then), LinkKind::Macvlan(now)) if then != now => {
            Change::Macvlan(then.clone())
        }
        _ => return,
    };
    plan.steps.push(Step::set(&now.name, change));
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
    if adds_link_local(wanted, state) {
        // Set by netlink after the link is up: unlike a write to the sysctl, that adds no address.
        current.ipv6.remove(&ADDR_GEN_MODE);
    }
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
}

/// Whether the kernel would add a link-local IPv6 address when the link goes up, and the link had none.
fn adds_link_local(wanted: &Link, state: &Indexed<'_>) -> bool {
    let has_ipv6 = wanted.sysctls.ipv6.get(&DISABLE_IPV6) == Some(&0);
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE);
    let makes_one = mode.is_some_and(|mode| *mode != NO_ADDRESS);
    let mut addresses = state.addresses_of(&wanted.name).iter();
    let had_one = addresses.any(|address| address.maker == Maker::Kernel);
    // Without carrier no link has one yet.
    let is_plain = wanted.flags.up && wanted.flags.carrier && wanted.master.is_none();
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
        plan.steps.push(Step::Sysctl {
            dev: now.name.clone(),
            folder: Folder::Ipv6Conf,
            key: ADDR_GEN_MODE,
            value: NO_ADDRESS.to_string(),
            now: mode_now.map_or_else(String::new, |mode| mode.to_string()),
        });
    }
    if goes_up {
        plan.steps.push(Step::set(&now.name, Change::Up));
    }
    let mode = wanted
        .sysctls
        .ipv6
        .get(&ADDR_GEN_MODE)
        .filter(|_| adds_link_local);
    let Some(mode) = mode.and_then(|mode| u8::try_from(*mode).ok()) else {
        return;
    };
    let step = Step::set(&now.name, Change::AddrGenMode(mode));
    if goes_up || (now.flags.up && !now.flags.carrier && mode_now != Some(mode.into())) {
        // With another mode, the kernel would add the address as soon as there is carrier.
        plan.later.push(step);
    } else if mode_now != Some(mode.into()) {
        plan.steps.push(step);
    }
}

/// The steps for addresses and neighbours of the links for which `name_now` returns the present name.
pub(crate) fn addresses(
    wanted: &NetState,
    observed: Observed<'_>,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) {
    let mut present = HashMap::new();
    for now in &observed.state.addresses {
        present.entry(now.key()).or_insert(now);
    }
    for address in in_adding_order(&wanted.addresses) {
        let Some(dev) = name_now(&address.dev) else {
            continue;
        };
        let Some(address) = aged(
            Address {
                dev,
                ..address.clone()
            },
            observed.age,
            plan,
        ) else {
            continue;
        };
        let same = present.get(&address.key()).copied();
        if let Some(now) = same.filter(|now| now.flags & DADFAILED != 0) {
            plan.problems.push(PlanCause::DuplicateAddress.error(now));
        }
        match same {
            // The kernel adds these once the link is up; added by netfix they would have other attributes.
            _ if address.comes_by_itself() => {}
            None => plan.steps.push(Step::AddAddress(address)),
            Some(now) if !now.has_attributes_of(&address) => {
                plan.steps.push(Step::ChangeAddress(address));
            }
            Some(_) => {}
        }
    }
    let present: HashSet<&Neighbour> = observed.state.neighbours.iter().collect();
    for neighbour in &wanted.neighbours {
        let Some(dev) = name_now(&neighbour.dev) else {
            continue;
        };
        let neighbour = Neighbour {
            dev,
            ..neighbour.clone()
        };
        if !present.contains(&neighbour) {
            plan.steps.push(Step::AddNeighbour(neighbour));
        }
    }
}

/// The order in which to add addresses for the kernel to list them as before: it lists IPv4 addresses oldest first (the
/// first of a subnet is primary), and IPv6 addresses newest first.
pub(crate) fn in_adding_order(listed: &[Address]) -> impl Iterator<Item = &Address> {
    let (v4, v6): (Vec<_>, Vec<_>) = listed.iter().partition(|address| address.local.is_ipv4());
    v4.into_iter().chain(v6.into_iter().rev())
}

/// The address with its remaining lifetime; `None`, with a warning, when it has expired.
fn aged(mut address: Address, age: u32, plan: &mut Plan) -> Option<Address> {
    let Some(valid) = address.valid_lft else {
        return Some(address);
    };
    if address.comes_by_itself() {
        return Some(address);
    }
    if valid <= age {
        plan.problems
            .push(PlanCause::LifetimeOver.warning(&address));
        return None;
    }
    address.valid_lft = Some(valid - age);
    address.preferred_lft = address
        .preferred_lft
        .map(|seconds| seconds.saturating_sub(age));
    Some(address)
}

/// The steps for routes, in the order in which the kernel accepts them.
pub(crate) fn routes(wanted: impl Iterator<Item = Route>, observed: &[Route], plan: &mut Plan) {
    let mut wanted: Vec<Route> = wanted.collect();
    wanted.sort_by_cached_key(Route::rank);
    let observed: HashSet<&Route> = observed.iter().collect();
    let mut in_place: HashMap<_, usize> = HashMap::new();
    for route in &wanted {
        *in_place.entry(route.place()).or_default() += 1;
    }
    for route in wanted {
        if !observed.contains(&route) {
            let append = in_place[&route.place()] > 1;
            plan.steps.push(Step::AddRoute { route, append });
        }
    }
}

/// The default qdisc of software links.
const NO_QDISC: &str = "noqueue";

/// Reports what no step restores: the place in a bridge or VRF, and the root qdisc.
pub(crate) fn cannot_restore(
    wanted: &Link,
    now: Option<&Link>,
    state: &Indexed<'_>,
    plan: &mut Plan,
) {
    plan.problems.extend(lost_master(wanted, now, state));
    plan.problems.extend(lost_qdisc(wanted, now));
}

fn lost_qdisc(wanted: &Link, now: Option<&Link>) -> Option<Problem> {
    let then = wanted.qdisc.as_deref()?;
    // A link that is down has none yet, and one that is missing will get the plain one.
    let current = match now {
        Some(now) if !now.flags.up => return None,
        Some(now) => now.qdisc.as_deref()?,
        None => NO_QDISC,
    };
    let is_lost = wanted.flags.up && then != current;
    let (now, then) = (current.to_owned(), then.to_owned());
    is_lost.then(|| PlanCause::QdiscLost { now, then }.error(&wanted.name))
}

/// Whether the link is a port of a bond, which decides its MAC, its MTU and whether it is up.
pub(crate) fn is_bond_port(link: &Link, state: &Indexed<'_>) -> bool {
    let master = link.master.as_ref().and_then(|name| state.link(name));
    master.is_some_and(|master| matches!(master.kind, LinkKind::Bond(_)))
}

fn lost_master(wanted: &Link, now: Option<&Link>, state: &Indexed<'_>) -> Option<Problem> {
    let master = wanted
        .master
        .as_ref()
        .filter(|_| !is_bond_port(wanted, state))?;
    if now.is_some_and(|now| now.master.as_ref() == Some(master)) {
        return None;
    }
    let master = master.clone();
    Some(PlanCause::MasterLost { master }.error(&wanted.name))
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
