//! IPv6 of one link: whether it has it, and when the kernel may add a link-local address to it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::diff::is_bond_port;
use crate::model::net::address::Maker;
use crate::model::net::link::sysctl::{Folder, SysctlKey, Sysctls};
use crate::model::{IfName, Indexed, Link, LinkKind, NetState};
use crate::plan::{Change, NetlinkStep, Observed, Plan, Step};

/// With a smaller MTU, in bytes, the kernel takes IPv6 from a link (`IPV6_MIN_MTU`; RFC 8200, section 5).
const MIN_MTU: u32 = 1280;

/// `net/ipv6/conf/<interface>/mtu`.
pub(in crate::plan) const IPV6_MTU: SysctlKey = SysctlKey::known("mtu");
/// `net/ipv6/conf/<interface>/addr_gen_mode`.
pub(crate) const ADDR_GEN_MODE: SysctlKey = SysctlKey::known("addr_gen_mode");
/// The modes in which the kernel adds no link-local address, and one that is derived from a secret (`IN6_ADDR_GEN_MODE_*`).
pub(crate) const NO_ADDRESS: i64 = 1;
pub(crate) const STABLE_PRIVACY: i64 = 2;
/// `net/ipv6/conf/<interface>/disable_ipv6`.
pub(crate) const DISABLE_IPV6: SysctlKey = SysctlKey::known("disable_ipv6");

/// Whether this step gives its link initial settings: a new link's, or those of IPv6 to one whose MTU becomes large enough.
pub(crate) fn begins_anew(step: &Step) -> bool {
    match step {
        Step::AddLink(_) => true,
        other => gives_ipv6(other),
    }
}

/// Whether this step sets an MTU with which its link gets IPv6.
fn gives_ipv6(step: &Step) -> bool {
    match step {
        Step::Netlink(NetlinkStep::SetLink {
            change: Change::Mtu(mtu),
            now: Some(now),
            ..
        }) => now.parse().is_ok_and(|now| is_enough(now, *mtu)),
        _ => false,
    }
}

/// Whether the second MTU is enough for IPv6, and the first was not.
fn is_enough(now: u32, then: u32) -> bool {
    then >= MIN_MTU && now < MIN_MTU
}

/// The link after a new MTU is set. If it gets IPv6 with it, that is switched off until all settings are those of the record:
/// the kernel has added an address by its own, if the link is up.
pub(super) fn with_new_mtu<'a>(
    wanted: &Link,
    now: &'a Link,
    new_link: Option<&Sysctls>,
    plan: &mut Plan,
) -> Cow<'a, Link> {
    if !is_enough(now.mtu, wanted.mtu)
        || now.kind == LinkKind::Loopback
        || wanted.sysctls.ipv6.is_empty()
    {
        return Cow::Borrowed(now);
    }
    let off = new_link.and_then(|initial| initial.ipv6.get(&DISABLE_IPV6).copied());
    plan.push(write(now, DISABLE_IPV6, 1, off.unwrap_or_default()));
    let Some(initial) = new_link else {
        return Cow::Borrowed(now);
    };
    let mut then = now.clone();
    let settings = &mut then.sysctls;
    settings.neigh6.clone_from(&initial.neigh6);
    settings.ipv6.clone_from(&initial.ipv6);
    settings.ipv6.insert(IPV6_MTU, wanted.mtu.into());
    settings.ipv6.insert(DISABLE_IPV6, 1);
    Cow::Owned(then)
}

/// The objects that can be added already: not those of IPv6 on links whose IPv6 begins with settings that are not known yet.
pub(crate) fn addable<'a>(
    wanted: &'a NetState,
    observed: Observed<'_>,
    plan: &Plan,
) -> Cow<'a, NetState> {
    if observed.new_link.is_some() {
        return Cow::Borrowed(wanted);
    }
    let steps = plan.steps.iter().filter(|step| gives_ipv6(step));
    let unknown: BTreeSet<&IfName> = steps.flat_map(Step::devs).collect();
    if unknown.is_empty() {
        return Cow::Borrowed(wanted);
    }
    let mut addable = wanted.clone();
    let is_on = |dev: &IfName| unknown.contains(dev);
    addable
        .addresses
        .retain(|address| address.local.is_ipv4() || !is_on(&address.dev));
    addable
        .neighbours
        .retain(|neighbour| neighbour.dst.is_ipv4() || !is_on(&neighbour.dev));
    addable.routes.retain(|route| {
        let is_v4 = route.destination().addr().is_ipv4();
        is_v4 || !route.devs().into_iter().any(is_on)
    });
    Cow::Owned(addable)
}

/// The step that writes a setting of the link's IPv6.
pub(crate) fn write(link: &Link, key: SysctlKey, value: i64, now: i64) -> Step {
    Step::Sysctl {
        dev: link.name.clone(),
        folder: Folder::Ipv6Conf,
        key,
        value: value.to_string(),
        now: now.to_string(),
    }
}

/// What `disable_ipv6` is where IPv6 is to be switched on: after all other settings, which say how the kernel then adds an
/// address and asks for routers.
pub(super) fn to_switch_on(wanted: &Link, now: &Link) -> Option<i64> {
    let of = |link: &Link| link.sysctls.ipv6.get(&DISABLE_IPV6).copied();
    of(now).filter(|now| *now != 0 && of(wanted) == Some(0))
}

/// The steps that set the mode, which was `mode_now`, and then switch IPv6 on.
pub(super) fn switch_on(
    wanted: &Link,
    now: &Link,
    mode_now: Option<i64>,
    state: &Indexed<'_>,
    plan: &mut Plan,
) {
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    let adds_link_local = adds_link_local(wanted, state);
    if mode_now.is_some() && mode != mode_now && !adds_link_local {
        plan.extend(mode.and_then(|mode| set_mode(now, mode)));
    }
    let Some(off) = to_switch_on(wanted, now) else {
        return;
    };
    if adds_link_local && now.flags.up {
        plan.extend(set_mode(now, NO_ADDRESS));
    }
    plan.push(write(now, DISABLE_IPV6, 0, off));
}

/// By netlink: unlike a write to the sysctl, that adds no address to a link.
pub(crate) fn set_mode(now: &Link, mode: i64) -> Option<Step> {
    let mode = u8::try_from(mode).ok()?;
    Some(Step::set(&now.name, Change::AddrGenMode(mode)))
}

/// Whether the kernel would add a link-local IPv6 address when the link goes up, and the link had none.
fn adds_link_local(wanted: &Link, state: &Indexed<'_>) -> bool {
    let has_ipv6 = wanted.sysctls.ipv6.get(&DISABLE_IPV6) == Some(&0);
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE);
    let makes_one = mode.is_some_and(|mode| *mode != NO_ADDRESS);
    has_ipv6 && makes_one && lacks_link_local(wanted, state)
}

/// Whether the link is one to which the kernel would have added an address of its mode by now, and has none.
pub(crate) fn lacks_link_local(link: &Link, state: &Indexed<'_>) -> bool {
    let mut addresses = state.addresses_of(&link.name).iter();
    let mode = link.sysctls.gen_mode();
    let has_one = addresses.any(|one| one.maker == Maker::Kernel && one.is_of_mode(mode));
    let master = link.master.as_ref().map(|name| state.link(name));
    let decides = master.is_none_or(|master| master.is_some_and(Link::takes_ports));
    // Without carrier no link has one yet. One that is held down has carrier for a moment only.
    let has_carrier = link.flags.carrier && !link.protodown;
    link.flags.up && has_carrier && decides && !has_one
}

/// The steps that take a link up.
pub(super) fn up(wanted: &Link, now: &Link, state: &Indexed<'_>, plan: &mut Plan) {
    let adds_link_local = adds_link_local(wanted, state);
    // A bond takes a port up when it gets it, and not later.
    let waits_for_bond = is_bond_port(wanted, state) && now.master != wanted.master;
    let goes_up = wanted.flags.up && !now.flags.up && !waits_for_bond;
    let mode_now = now.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    if goes_up && adds_link_local {
        plan.extend(set_mode(now, NO_ADDRESS));
    }
    if goes_up {
        plan.push(Step::set(&now.name, Change::Up));
    }
    let mode = wanted.sysctls.ipv6.get(&ADDR_GEN_MODE).copied();
    let Some(mode) = mode.filter(|_| adds_link_local) else {
        return;
    };
    let is_other = mode_now != Some(mode) || to_switch_on(wanted, now).is_some();
    if goes_up || (now.flags.up && !now.flags.carrier && is_other) {
        // With another mode, the kernel would add the address as soon as there is carrier.
        plan.later.extend(set_mode(now, mode));
    } else if is_other {
        plan.extend(set_mode(now, mode));
    }
}
