//! From a link as it is to the link as it was: everything but its creation.

use std::collections::BTreeSet;

use super::{Change, Observed, Plan, Step};
use crate::model::address::{DADFAILED, Maker};
use crate::model::link::Flags;
use crate::model::sysctl::{Folder, Settings, SysctlKey, Sysctls};
use crate::model::{Address, Code, IfName, Link, LinkKind, NetState, Problem, Route};

/// `net/ipv6/conf/<interface>/mtu`.
const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");

/// `net/ipv6/conf/<interface>/addr_gen_mode`, and its value once a secret is written (`IN6_ADDR_GEN_MODE_*`).
const ADDR_GEN_MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
const STABLE_PRIVACY: i64 = 2;
/// The mode in which the kernel makes no link-local address.
const NO_ADDRESS: i64 = 1;
/// `net/ipv6/conf/<interface>/disable_ipv6`.
const DISABLE_IPV6: SysctlKey = SysctlKey::known("disable_ipv6");

/// A new link as its creation leaves it: down, with the settings that new links start with.
pub(super) fn newborn(wanted: &Link, observed: Observed<'_>) -> Option<Link> {
    let mut sysctls = observed.new_link?.clone();
    // The one setting that does not start from `default`: it follows the link's MTU.
    if let Some(mtu) = sysctls.ipv6.get_mut(&IPV6_MTU) {
        *mtu = wanted.mtu.into();
    }
    let flags = Flags { multicast: true, ..Flags::default() };
    Some(Link { flags, alias: None, altnames: Vec::new(), group: 0, master: None, sysctls, ..wanted.clone() })
}

/// The steps for one link's own attributes, before it goes up.
pub(super) fn attributes(wanted: &Link, now: &Link, state: &NetState, plan: &mut Plan) {
    let is_bond_port = is_bond_port(wanted, state);
    let dev = &now.name;
    let mut set =
        |change, was: Option<String>| plan.steps.push(Step::SetLink { dev: dev.clone(), change, now: was });
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
        set(Change::TxQueueLen(wanted.txqueuelen), Some(now.txqueuelen.to_string()));
    }
    if wanted.group != now.group {
        set(Change::Group(wanted.group), Some(now.group.to_string()));
    }
    if let Some(alias) = wanted.alias.as_ref().filter(|alias| now.alias.as_ref() != Some(alias)) {
        set(Change::Alias(alias.clone()), None);
    }
    let altnames: Vec<_> =
        wanted.altnames.iter().filter(|name| !now.altnames.contains(name)).cloned().collect();
    if !altnames.is_empty() {
        set(Change::Altnames(altnames), None);
    }
    let settable = |flags: Flags| Flags { up: false, carrier: false, ..flags };
    if !is_bond_port && settable(wanted.flags) != settable(now.flags) {
        set(Change::Flags(now.flags, wanted.flags), None);
    }
}

/// The steps for one link's sysctls: what differs, nothing else.
pub(super) fn sysctls(wanted: &Link, now: &Link, state: &NetState, plan: &mut Plan) {
    let Sysctls { ipv4, ipv6, neigh4, neigh6, stable_secret } = &wanted.sysctls;
    let mut current = now.sysctls.clone();
    if let Some(secret) = stable_secret.filter(|secret| current.stable_secret != Some(*secret)) {
        plan.steps.push(Step::stable_secret(&now.name, secret));
        // Writing the secret switches the mode as well, so that has to be written again whatever it is now.
        if let Some(mode) = current.ipv6.get_mut(&ADDR_GEN_MODE) {
            *mode = STABLE_PRIVACY;
        }
    }
    if LinkLocal::of(wanted, state) == LinkLocal::Unwanted {
        // The mode is set without the side effect of making an address, after the link is up.
        current.ipv6.remove(&ADDR_GEN_MODE);
    }
    let folders = [
        (Folder::Ipv4Conf, ipv4, &current.ipv4),
        (Folder::Ipv6Conf, ipv6, &current.ipv6),
        (Folder::Ipv4Neigh, neigh4, &current.neigh4),
        (Folder::Ipv6Neigh, neigh6, &current.neigh6),
    ];
    for (folder, wanted, current) in folders {
        plan.steps.extend(differing(wanted, current).map(|(key, value, was)| Step::Sysctl {
            dev: now.name.clone(),
            folder,
            key: key.clone(),
            value: value.to_string(),
            now: was.to_string(),
        }));
    }
}

/// A setting that this kernel does not show is not one that could be written.
fn differing<'a>(wanted: &'a Settings, now: &'a Settings) -> impl Iterator<Item = (&'a SysctlKey, i64, i64)> {
    let both = wanted.iter().filter_map(|(key, value)| Some((key, *value, *now.get(key)?)));
    both.filter(|(_, value, now)| value != now)
}

/// Whether a link had the link-local IPv6 address that the kernel makes when a link goes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkLocal {
    /// It had, or it is not known, or the link has no IPv6.
    Welcome,
    /// It had none: the kernel has to be kept from making one.
    Unwanted,
}

impl LinkLocal {
    fn of(wanted: &Link, state: &NetState) -> Self {
        let has_ipv6 = wanted.sysctls.ipv6.get(&DISABLE_IPV6) == Some(&0);
        let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE);
        let makes_one = mode.is_some_and(|mode| *mode != NO_ADDRESS);
        let had_one = state.addresses_of(&wanted.name).any(|address| address.maker == Maker::Kernel);
        // Without carrier it has none yet, which says nothing.
        let is_plain = wanted.flags.up && wanted.flags.carrier && wanted.master.is_none();
        if has_ipv6 && makes_one && is_plain && !had_one { Self::Unwanted } else { Self::Welcome }
    }
}

/// The steps that take a link up.
pub(super) fn up(wanted: &Link, now: &Link, state: &NetState, plan: &mut Plan) {
    let birth = LinkLocal::of(wanted, state);
    let goes_up = wanted.flags.up && !now.flags.up && !is_bond_port(wanted, state);
    let mode_now = now.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    if goes_up && birth == LinkLocal::Unwanted {
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
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE).filter(|_| birth == LinkLocal::Unwanted);
    let Some(mode) = mode.and_then(|mode| u8::try_from(*mode).ok()) else { return };
    let step = Step::set(&now.name, Change::AddrGenMode(mode));
    if goes_up || (now.flags.up && !now.flags.carrier && mode_now != Some(mode.into())) {
        // The kernel makes the address when the carrier comes, if the mode says so by then.
        plan.later.push(step);
    } else if mode_now != Some(mode.into()) {
        plan.steps.push(step);
    }
}

/// The steps for addresses and neighbours of the links that `name_now` knows, by their present names.
pub(super) fn addresses(
    wanted: &NetState,
    observed: Observed<'_>,
    name_now: &impl Fn(&IfName) -> Option<IfName>,
    plan: &mut Plan,
) {
    for address in in_adding_order(&wanted.addresses) {
        let Some(dev) = name_now(&address.dev) else { continue };
        let Some(address) = aged(Address { dev, ..address.clone() }, observed.age, plan) else { continue };
        let same = observed.state.addresses.iter().find(|now| now.is_same(&address));
        if let Some(now) = same.filter(|now| now.flags & DADFAILED != 0) {
            let message =
                "another machine on the network has this address (duplicate address detection failed)";
            plan.problems.push(Problem::error(Code::AddressConflict, now.to_string(), message));
        }
        match same {
            // The kernel makes these as soon as the link is up; made by hand they would not be the same.
            _ if address.comes_by_itself() => {}
            None => plan.steps.push(Step::AddAddress(address)),
            Some(now) if !now.has_attributes_of(&address) => plan.steps.push(Step::ChangeAddress(address)),
            Some(_) => {}
        }
    }
    for neighbour in &wanted.neighbours {
        let Some(dev) = name_now(&neighbour.dev) else { continue };
        let neighbour = crate::model::Neighbour { dev, ..neighbour.clone() };
        if !observed.state.neighbours.contains(&neighbour) {
            plan.steps.push(Step::AddNeighbour(neighbour));
        }
    }
}

/// The order in which addresses must be added to be listed as they were: the kernel lists IPv4 addresses oldest
/// first, which makes the first of a subnet primary, and IPv6 addresses newest first.
fn in_adding_order(listed: &[Address]) -> impl Iterator<Item = &Address> {
    let (v4, v6): (Vec<_>, Vec<_>) = listed.iter().partition(|address| address.local.is_ipv4());
    v4.into_iter().chain(v6.into_iter().rev())
}

/// The address with what is left of its lifetime; `None`, with a warning, when that is over.
fn aged(mut address: Address, age: u32, plan: &mut Plan) -> Option<Address> {
    let Some(valid) = address.valid_lft else { return Some(address) };
    if address.comes_by_itself() {
        return Some(address);
    }
    if valid <= age {
        let message = "its lifetime ended since the checkpoint was written; whoever leased it must renew it";
        plan.problems.push(Problem::warning(Code::Unsupported, address.to_string(), message));
        return None;
    }
    address.valid_lft = Some(valid - age);
    address.preferred_lft = address.preferred_lft.map(|seconds| seconds.saturating_sub(age));
    Some(address)
}

/// The steps for routes, in the order in which the kernel accepts them.
pub(super) fn routes(wanted: impl Iterator<Item = Route>, observed: &[Route], plan: &mut Plan) {
    let mut wanted: Vec<Route> = wanted.collect();
    wanted.sort_by_key(Route::rank);
    for (at, route) in wanted.iter().enumerate() {
        if !observed.contains(route) {
            let others = wanted.iter().enumerate().filter(|(other, _)| *other != at);
            let append = others.map(|(_, other)| other).any(|other| other.shares_place_with(route));
            plan.steps.push(Step::AddRoute { route: route.clone(), append });
        }
    }
}

/// The qdisc that links made in software have by themselves.
const NO_QDISC: &str = "noqueue";

/// The loss of a root qdisc, which netfix can see but not put back.
pub(super) fn lost_qdisc(wanted: &Link, now: Option<&Link>) -> Option<Problem> {
    let then = wanted.qdisc.as_deref()?;
    // A link that is down has none yet, and one that is missing will get the plain one.
    let current = match now {
        Some(now) if !now.flags.up => return None,
        Some(now) => now.qdisc.as_deref()?,
        None => NO_QDISC,
    };
    let is_lost = wanted.flags.up && then != current;
    is_lost.then(|| {
        let message =
            format!("the qdisc {then} is lost, {current} is in its place, and netfix cannot restore it yet");
        Problem::error(Code::Unsupported, wanted.name.to_string(), message)
    })
}

/// Whether the link is a port of a bond, which decides its MAC, its MTU and whether it is up.
pub(super) fn is_bond_port(link: &Link, state: &NetState) -> bool {
    let master = link.master.as_ref().and_then(|name| state.link(name));
    master.is_some_and(|master| matches!(master.kind, LinkKind::Bond(_)))
}

/// A port that left its bridge or VRF, which netfix can see but not put back.
pub(super) fn lost_master(wanted: &Link, now: Option<&Link>, state: &NetState) -> Option<Problem> {
    let master = wanted.master.as_ref().filter(|_| !is_bond_port(wanted, state))?;
    if now.is_some_and(|now| now.master.as_ref() == Some(master)) {
        return None;
    }
    let message = format!("was a port of {master}, and netfix cannot make it one again yet");
    Some(Problem::error(Code::Unsupported, wanted.name.to_string(), message))
}

/// A link of the right name that is not the right link: nothing may be done to it.
pub(super) fn conflict(wanted: &Link, now: &Link) -> Option<Problem> {
    let problem = |message: String| Some(Problem::error(Code::LinkConflict, now.name.to_string(), message));
    let (then, kind) = (wanted.kind.name(), now.kind.name());
    if then != kind {
        return problem(format!("is a {kind} now, the checkpoint has a {then} of that name"));
    }
    let fixed = |kind: &LinkKind| match kind {
        LinkKind::Vlan(vlan) => Some((u16::from(vlan.id), vlan.protocol.to_string())),
        _ => None,
    };
    if let (Some((id, protocol)), Some((id_now, protocol_now))) = (fixed(&wanted.kind), fixed(&now.kind))
        && (id, &protocol) != (id_now, &protocol_now)
    {
        return problem(format!("has VLAN {id_now} {protocol_now}, the checkpoint has {id} {protocol}"));
    }
    None
}

/// The names among `links` that stand on a link whose name is in `below`, directly or not, and `below` itself.
pub(super) fn closure(below: BTreeSet<IfName>, links: &[Link]) -> BTreeSet<IfName> {
    let mut names = below;
    loop {
        let stands_on = |link: &&Link| {
            let on_parent =
                matches!(&link.parent, Some(crate::model::Parent::Own(parent)) if names.contains(parent));
            let is_bond = matches!(link.kind, LinkKind::Bond(_));
            let has_port = is_bond
                && links
                    .iter()
                    .any(|port| port.master.as_ref() == Some(&link.name) && names.contains(&port.name));
            !names.contains(&link.name) && (on_parent || has_port)
        };
        let more: Vec<_> = links.iter().filter(stands_on).map(|link| link.name.clone()).collect();
        if more.is_empty() {
            return names;
        }
        names.extend(more);
    }
}
