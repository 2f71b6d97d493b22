//! What the host has lost since its good record, and what only changed.

use std::collections::BTreeSet;

use super::loss::{Since, owned};
use super::names;
use crate::model::{
    AnswerRecord, Hardware, IfName, IpFamily, Link, LinkGraph, LossCause, NetState, stack,
};
use crate::plan::daemons;

/// What the host has lost since its good record: a link with addresses, or these, if it is a device, carries pods (`under`) or is on
/// top of such a link; what went with a device that was made anew; the default route; or a way of its packets, or what carried them.
/// Other links belong to other programs.
#[must_use]
pub fn host_losses(
    good: &NetState,
    answers: &[AnswerRecord],
    now: &NetState,
    under: BTreeSet<&IfName>,
) -> Vec<(IfName, LossCause)> {
    let now = &*names::as_recorded(good, now);
    let kept = daemons::without_withdrawn(good, now);
    let both = Since::new(good, answers, &kept, now);
    let good = &*kept;
    let remade = remade(good, now, under.iter().copied());
    let graph = LinkGraph::new(&good.links);
    let mut own = graph.devices();
    own.extend(under.into_iter().cloned());
    let carrying = graph.all_above(&own);
    let of_links = good
        .links_but_loopback()
        .filter(|link| carrying.contains(&link.name));
    // A device that is missing may have been moved.
    let is_there = |name: &IfName| {
        let link = good.link(name);
        link.is_some_and(|link| now.present(&link.name, link.hardware.as_ref()).is_some())
    };
    let with_device = graph.changed_with(remade.iter().filter(|name| is_there(name)));
    let lost = of_links.filter_map(|link| {
        let what = both.of_host_link(link, with_device.contains(&link.name))?;
        Some((link, what))
    });
    let lost = lost.chain(both.default_route());
    let lost = lost.map(|(link, what)| (link.name.clone(), what));
    lost.chain(both.lost_ways(|dev| carrying.contains(dev)))
        .chain(below_ways(&graph, (now, answers), &carrying, stopped))
        .collect()
}

/// The first of what the host has lost.
#[must_use]
pub fn host_loss(
    good: &NetState,
    answers: &[AnswerRecord],
    now: &NetState,
    under: BTreeSet<&IfName>,
) -> Option<(IfName, LossCause)> {
    host_losses(good, answers, now, under).into_iter().next()
}

/// What carried the packets of the host below the links that they still go out of, and has no carrier any more.
#[must_use]
pub fn silent_below_host(
    good: &NetState,
    answers: &[AnswerRecord],
    now: &NetState,
) -> Option<IfName> {
    let silent = |then: &Link, now: &Link| {
        let is_silent = then.flags.carrier && !now.flags.carrier;
        is_silent.then_some(LossCause::LinkDown)
    };
    let graph = LinkGraph::new(&good.links);
    let carrying = graph.all_above(&graph.devices());
    // A link that is down takes the carrier of those above it: that is the loss.
    let now = (now, answers);
    if !below_ways(&graph, now, &carrying, stopped).is_empty() {
        return None;
    }
    let lost = below_ways(&graph, now, &carrying, silent);
    lost.into_iter().next().map(|(name, _)| name)
}

/// Why a link that is there does not carry packets, then and now.
type Fault = fn(&Link, &Link) -> Option<LossCause>;

fn stopped(then: &Link, now: &Link) -> Option<LossCause> {
    let is_blocked = now.blocked && !then.blocked;
    let blocked = is_blocked.then_some(LossCause::PortBlocked);
    if now.flags.up {
        blocked
    } else {
        Some(LossCause::LinkDown)
    }
}

/// What carried the packets of the host out of links that they still go out of, of these `carrying` ones, and does not any more.
fn below_ways(
    good: &LinkGraph<'_>,
    (now, answers): (&NetState, &[AnswerRecord]),
    carrying: &BTreeSet<IfName>,
    fault: Fault,
) -> Vec<(IfName, LossCause)> {
    let out = now.ways.iter().filter_map(|way| Some(way.exit.hop()?.0));
    let out: BTreeSet<&IfName> = out.filter(|dev| carrying.contains(*dev)).collect();
    let out = out.into_iter().filter_map(|dev| good.link(dev));
    let lost = out.filter_map(|link| {
        let present = now.present(&link.name, link.hardware.as_ref());
        let own = present.and_then(|now| Some((now.name.clone(), fault(link, now)?)));
        own.or_else(|| fault_below(good, link, (now, answers, fault), 0))
    });
    lost.collect()
}

/// Why nothing carries the packets of a link of the host any more, which is there: what is below it, by the good state.
fn fault_below(
    good: &LinkGraph<'_>,
    link: &Link,
    (now, answers, fault): (&NetState, &[AnswerRecord], Fault),
    depth: usize,
) -> Option<(IfName, LossCause)> {
    /// More than the kernel nests means a loop.
    const DEEPEST: usize = 8;
    let mut lower = good.carriers(link);
    if let Some(used) = stack::used_port(&lower, answers, now) {
        lower = vec![used];
    }
    let lower = lower.into_iter().filter_map(|name| good.link(name));
    let faults = lower.map(|then| {
        let is_port = |lower: &Link| lower.master.as_ref() == Some(&link.name);
        let what = match now.present(&then.name, then.hardware.as_ref()) {
            None => LossCause::LinkGone,
            Some(lower) => match fault(then, lower).filter(|_| then.flags.up) {
                Some(what) => what,
                None if is_port(then) && !is_port(lower) => LossCause::NoPort,
                None if depth < DEEPEST => {
                    return fault_below(good, then, (now, answers, fault), depth + 1);
                }
                None => return None,
            },
        };
        Some((then.name.clone(), what))
    });
    faults.collect::<Option<Vec<_>>>()?.into_iter().next()
}

/// The recorded devices of the host, with those `under` pods, that are missing, or were made anew since: their drivers were reloaded.
pub(crate) fn remade<'a>(
    good: &NetState,
    now: &NetState,
    under: impl Iterator<Item = &'a IfName>,
) -> BTreeSet<IfName> {
    let mut devices = LinkGraph::new(&good.links).devices();
    devices.extend(under.cloned());
    devices.retain(|name| {
        let then = good.link(name).filter(|then| !then.kind.can_be_made());
        then.is_some_and(|then| {
            let now = now.present(&then.name, then.hardware.as_ref());
            now.is_none_or(|now| now.index != then.index || then.is_made_anew(now))
        })
    });
    devices
}

/// The recorded devices of the host that have another ifindex now, with their present state.
pub(crate) fn renumbered<'a>(
    good: &'a NetState,
    now: &'a NetState,
) -> impl Iterator<Item = (&'a Link, &'a Link)> {
    let devices = good.links.iter().filter(|link| link.is_device());
    let pairs =
        devices.filter_map(|then| Some((then, now.present(&then.name, then.hardware.as_ref())?)));
    pairs.filter(|(then, now)| then.index != now.index)
}

/// A recorded NIC of the host that is missing, and not among the devices `inside` pods.
#[must_use]
pub fn missing_nic<'a>(
    good: &'a NetState,
    now: &NetState,
    inside: &[Hardware],
) -> Option<&'a IfName> {
    let mut missing = good.links.iter().filter(|link| {
        let known = link.hardware.as_ref().filter(|device| device.is_known());
        let is_inside = |device: &Hardware| inside.iter().any(|one| one.is_same(device));
        known.is_some_and(|device| {
            !is_inside(device) && now.present(&link.name, Some(device)).is_none()
        })
    });
    missing.next().map(|link| &link.name)
}

impl Since<'_> {
    /// What a link of the host has lost, which may have another name now. One that had no addresses may go, or go down, unless that
    /// came with the loss of its device.
    fn of_host_link(&self, link: &Link, with_device: bool) -> Option<LossCause> {
        let had = |family: &IpFamily| owned(&self.good, &link.name, *family).next().is_some();
        match self.now.state.present(&link.name, link.hardware.as_ref()) {
            Some(now) if with_device && link.flags.up && !now.flags.up => Some(LossCause::LinkDown),
            Some(now) => self.addresses(link, &now.name),
            None if with_device => Some(LossCause::LinkGone),
            None => IpFamily::BOTH
                .iter()
                .any(had)
                .then_some(LossCause::LinkGone),
        }
    }
}
