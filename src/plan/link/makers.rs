//! Links that other programs made again after a loss: a daemon, a CNI plugin, a person. A daemon has published the MAC, addresses and
//! data of its new link, and other machines use them: they stay as they are, and what differs is reported.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::iter;

use super::diff;
use crate::model::net::address::Maker;
use crate::model::net::link::fdb::FdbEntry;
use crate::model::net::link::kind::MacvlanMode;
use crate::model::problem::PlanCause;
use crate::model::{
    Address, Hardware, IfName, Indexed, IpFamily, Link, LinkKind, Mac, NetState, Parent,
};
use crate::plan::{Plan, loss};

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
    if others.iter().any(|link| link.is_on_host()) && loss::loss(wanted.state, now.state).is_some()
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
    let mut left = wanted.into_owned();
    for dev in others {
        let mac = |state: &NetState| state.link(dev).and_then(|link| link.mac);
        let has_other_mac = mac(&left) != mac(now);
        let is_of_mac = |one: &Address| one.maker == Maker::Kernel && !one.is_of_secret();
        left.addresses
            .retain(|one| one.dev != *dev || !has_other_mac || !is_of_mac(one));
        let present = now.neighbours.iter().filter(|one| one.dev == *dev);
        let known: HashSet<_> = present.map(|one| (one.dst, one.proxy)).collect();
        left.neighbours
            .retain(|one| one.dev != *dev || !known.contains(&(one.dst, one.proxy)));
        for family in IpFamily::BOTH {
            leave_family(&mut left, now, (dev, family), plan);
        }
    }
    Cow::Owned(left)
}

/// Takes the addresses of a family from the state of a link that has only others now.
fn leave_family(
    wanted: &mut NetState,
    now: &NetState,
    (dev, family): (&IfName, IpFamily),
    plan: &mut Plan,
) {
    let is_of = |one: &Address| {
        let is_own = one.maker == Maker::Admin && !one.is_plain_link_local();
        one.dev == *dev && is_own && IpFamily::of(one.local.is_ipv4()) == family
    };
    let then: Vec<&Address> = wanted.addresses.iter().filter(|one| is_of(one)).collect();
    let is_known = |now: &Address| then.iter().any(|then| then.local == now.local);
    // A virtual address that came beside them replaces none.
    let has_moving = then.iter().all(|one| one.is_of_one_host());
    let is_other = |now: &&Address| now.is_owned() && (has_moving || !now.is_of_one_host());
    let present: Vec<&Address> = now.addresses.iter().filter(|one| is_of(one)).collect();
    let is_replaced = present.iter().any(is_other) && !present.iter().any(|now| is_known(now));
    let Some(first) = then.first().filter(|_| is_replaced) else {
        return;
    };
    let more = then.len() - 1;
    let cause = PlanCause::MadeWithOtherAddresses { more };
    plan.problems.push(cause.warning(*first));
    wanted.addresses.retain(|one| !is_of(one));
    let is_theirs = |of: IpFamily, devs: Vec<&IfName>| of == family && devs.contains(&dev);
    wanted
        .routes
        .retain(|route| !is_theirs(route.family(), route.devs()));
    wanted.neighbours.retain(|one| {
        let of = IpFamily::of(one.dst.is_ipv4());
        !is_theirs(of, vec![&one.dev])
    });
}
