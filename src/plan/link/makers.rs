//! Links that other programs made again after a loss: a daemon, a CNI plugin, a person. A daemon has published the MAC, addresses and
//! data of its new link, and other machines use them: they stay as they are, and what differs is reported.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::iter;
use std::net::IpAddr;

use super::diff;
use crate::model::net::address::Maker;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::kind::MacvlanMode;
use crate::model::problem::PlanCause;
use crate::model::{
    Address, Hardware, IfName, Indexed, IpFamily, Link, LinkKind, Mac, NetState, Parent,
};
use crate::plan::Plan;
use crate::plan::verdict::loss;

/// The links that other programs made again, and that are in use: in a pod that has lost its network a link on one of the host's was
/// made by half, and the restore completes it.
pub(super) fn of_others(wanted: &Indexed<'_>, now: &Indexed<'_>) -> BTreeSet<IfName> {
    let recorded = wanted.state.links.iter();
    let mut others: Vec<&Link> = recorded
        .filter(|link| {
            now.link(&link.name)
                .is_some_and(|now| is_another(link, now))
        })
        .filter(|link| giver(link, wanted).is_none())
        .collect();
    if others.iter().any(|link| link.is_on_host())
        && loss::loss(wanted.state, &[], now.state).is_some()
    {
        others.retain(|link| !link.is_on_host());
    }
    others.into_iter().map(|link| link.name.clone()).collect()
}

/// Whether it is a new link of a program. netfix gives each link its MAC when it makes it; devices come from their drivers, and a bond
/// and a macvlan that owns its parent have the MAC of the device below.
fn is_another(then: &Link, now: &Link) -> bool {
    let is_known = then.hardware.as_ref().is_some_and(Hardware::is_known);
    let is_pair = then.kind.name() == "veth" && !matches!(then.peer, Some(Parent::Host(_)));
    let is_device = is_known || is_pair || then.kind == LinkKind::Physical;
    let is_from_below = match &then.kind {
        LinkKind::Bond(_) => true,
        LinkKind::Macvlan(own) | LinkKind::Macvtap(own) => own.mode == MacvlanMode::Passthru,
        other => other.name() == "team",
    };
    then.index != 0 && then.index != now.index && !is_device && !is_from_below
}

/// The parent whose MAC a VLAN has: setting it would stop it from following the parent.
pub(in crate::plan) fn giver<'a>(link: &Link, state: &Indexed<'a>) -> Option<&'a Link> {
    match (&link.kind, &link.parent) {
        (LinkKind::Vlan(_), Some(Parent::Own(parent))) => {
            state.link(parent).filter(|parent| parent.mac == link.mac)
        }
        _ => None,
    }
}

/// The link as it is to be: that of another program has the MAC that it has now, and so has a VLAN that follows it.
pub(super) fn target<'w>(
    wanted: &'w Link,
    now: &Link,
    (state, present): (&Indexed<'_>, &Indexed<'_>),
    others: &BTreeSet<IfName>,
    plan: &mut Plan,
) -> Cow<'w, Link> {
    const MAX_NESTING: usize = 8;
    let other_mac = diff::other_mac(wanted, now, state, present);
    if !others.contains(&wanted.name) {
        let givers = iter::successors(giver(wanted, state), |link| giver(link, state));
        let mut givers = givers.take(MAX_NESTING);
        let follows = other_mac.is_some() && givers.any(|giver| others.contains(&giver.name));
        if !follows {
            return Cow::Borrowed(wanted);
        }
        let mut target = wanted.clone();
        target.mac = now.mac;
        return Cow::Owned(target);
    }
    if wanted.kind.has_data() && wanted.kind != now.kind {
        let problem = PlanCause::MadeWithOtherData.warning(&wanted.name);
        plan.problems.push(problem);
    }
    let mut target = wanted.clone();
    if let Some((now, then)) = now.mac.zip(other_mac) {
        let cause = PlanCause::MadeWithOtherMac { now, then };
        plan.problems.push(cause.warning(&wanted.name));
        target.mac = Some(now);
    }
    // Its daemon knows where a MAC is now.
    let own = now.fdb.iter().filter(|entry| !entry.master);
    let known: HashSet<Mac> = own.map(|entry| entry.lladdr).collect();
    let is_known = |entry: &FdbEntry| !entry.master && known.contains(&entry.lladdr);
    let every = Mac([0; 6]);
    target
        .fdb
        .retain(|entry| entry.lladdr == every || !is_known(entry));
    Cow::Owned(target)
}

/// The recorded state without what other programs have replaced on their links: the link-local address of another MAC; and the
/// neighbours that have another MAC; and the addresses of a family, with its routes and neighbours, where the link has only others.
pub(in crate::plan) fn leave<'a>(
    wanted: Cow<'a, NetState>,
    now: &NetState,
    others: &BTreeSet<IfName>,
    plan: &mut Plan,
) -> Cow<'a, NetState> {
    if others.is_empty() {
        return wanted;
    }
    let (then, present) = (Indexed::new(&wanted), Indexed::new(now));
    let mac = |links: &Indexed<'_>, dev| links.link(dev).and_then(|link| link.mac);
    let devs = others.iter();
    let with_other_mac: HashSet<&IfName> = devs
        .clone()
        .filter(|dev| mac(&then, dev) != mac(&present, dev))
        .collect();
    let families = devs.flat_map(|dev| IpFamily::BOTH.map(|family| (dev, family)));
    let replaced: HashSet<(&IfName, IpFamily)> = families
        .filter(|(dev, family)| is_replaced((&then, &present), dev, *family, plan))
        .collect();
    let known = now.neighbours.iter();
    let known = known.filter(|one| others.contains(&one.dev));
    let known: HashSet<_> = known.map(|one| (&one.dev, one.dst, one.proxy)).collect();
    let family = |ip: IpAddr| IpFamily::of(ip.is_ipv4());
    let mut left = wanted.into_owned();
    left.addresses.retain(|one| {
        let is_of_mac = one.maker == Maker::Kernel && !one.is_of_secret();
        let is_replaced = is_own(one) && replaced.contains(&(&one.dev, family(one.local)));
        let goes_with_mac = is_of_mac && with_other_mac.contains(&one.dev);
        !(is_replaced || goes_with_mac)
    });
    left.neighbours.retain(|one| {
        !known.contains(&(&one.dev, one.dst, one.proxy))
            && !replaced.contains(&(&one.dev, family(one.dst)))
    });
    left.routes.retain(|route| {
        let mut devs = route.devs().into_iter();
        !devs.any(|dev| replaced.contains(&(dev, route.family())))
    });
    Cow::Owned(left)
}

/// An address that was added by a person or a program.
fn is_own(address: &Address) -> bool {
    address.maker == Maker::Admin && !address.is_plain_link_local()
}

/// Whether a link has only other addresses of a family than the recorded ones, which is reported.
fn is_replaced(
    (then, now): (&Indexed<'_>, &Indexed<'_>),
    dev: &IfName,
    family: IpFamily,
    plan: &mut Plan,
) -> bool {
    let of_family = |state: &Indexed<'_>| -> Vec<Address> {
        let all = state.addresses_of(dev).iter().copied();
        let own = all.filter(|one| is_own(one) && IpFamily::of(one.local.is_ipv4()) == family);
        own.cloned().collect()
    };
    let (then, now) = (of_family(then), of_family(now));
    let known: HashSet<IpAddr> = then.iter().map(|one| one.local).collect();
    // A virtual address that came beside them replaces none.
    let has_moving = then.iter().all(Address::is_of_one_host);
    let is_other = |now: &Address| now.is_owned() && (has_moving || !now.is_of_one_host());
    let is_known = |now: &Address| known.contains(&now.local);
    let Some(first) = then.first() else {
        return false;
    };
    let is_replaced = now.iter().any(is_other) && !now.iter().any(is_known);
    if is_replaced {
        let more = then.len() - 1;
        let cause = PlanCause::MadeWithOtherAddresses { more };
        plan.problems.push(cause.warning(first));
    }
    is_replaced
}
