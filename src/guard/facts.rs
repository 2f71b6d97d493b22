//! What a look found, for the decision: the host's links under pods, and the pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::guard::sight::{InsideSight, LinkSight, PodSight};
use crate::model::{
    Hardware, HostSide, IfName, Indexed, Link, LinkGraph, LinkKind, NetState, PodInfo, Tie,
};
use crate::plan::{HostLinks, PodVerdict};
use crate::records::matched::Matched;
use crate::records::survey::Surveyed;
use crate::situation::{Comparison, host_losses};

/// The host's devices and its links under pods, by their recorded names.
pub(super) fn links(
    surveyed: &Surveyed,
    graph: &LinkGraph<'_>,
    compared: &Comparison,
) -> BTreeMap<IfName, LinkSight> {
    let present = Indexed::new(&surveyed.host.state);
    let matched = surveyed.matched.iter();
    let under = matched.flat_map(|one| graph.under(&one.claims().links));
    let mut under: BTreeSet<IfName> = under.map(|link| link.name).collect();
    under.extend(surveyed.matched.iter().flat_map(|one| stack(one, graph)));
    // What the host has on a device is lost with it, also where no pod is on that.
    let devices = surveyed.baseline.devices.iter().cloned();
    let devices = devices.filter(|_| !surveyed.is_selection).collect();
    let sight = |name: &IfName| {
        let link = graph.link(name)?;
        let mut sight = sight(link, graph, &compared.links, &present);
        sight.is_host_only = !under.contains(name);
        Some((name.clone(), sight))
    };
    (&under | &devices).iter().filter_map(sight).collect()
}

fn sight(link: &Link, graph: &LinkGraph<'_>, links: &HostLinks, host: &Indexed<'_>) -> LinkSight {
    let is_device = !link.can_be_made() && link.parent.is_none();
    let found = host.link(&links.name_now(&link.name));
    // Another device may have its name.
    let found = found.filter(|_| !is_device || links.present.contains(&link.name));
    let is_own = |made: &Hardware| link.hardware.as_ref().is_some_and(|own| made.is_same(own));
    let below = graph.below(&link.name).iter();
    let below = below.filter(|(tie, lower)| *tie != Tie::Member && graph.link(lower).is_some());
    let master = |master: &IfName| links.name_now(master);
    LinkSight {
        recorded: link.index,
        now: found.map(|found| found.index),
        is_device,
        is_host_only: false,
        comes: links.functions.iter().any(is_own),
        below: below.map(|(_, lower)| (*lower).clone()).collect(),
        has_ports: link.parent.is_none() && !is_device,
        master: link.master.clone(),
        is_attached: found.is_some_and(|found| found.master == link.master.as_ref().map(master)),
    }
}

/// The recorded links of the host under a pod, also of one behind the port of a bridge.
fn stack(pod: &Matched, graph: &LinkGraph<'_>) -> Vec<IfName> {
    let own = pod.checkpoint.netfix.iter();
    let names = own.flat_map(|own| own.stack.iter().map(|link| &link.name));
    names
        .filter(|name| graph.link(name).is_some())
        .cloned()
        .collect()
}

/// The pods that have a record.
pub(super) fn pods(
    surveyed: &Surveyed,
    graph: &LinkGraph<'_>,
    compared: &Comparison,
) -> Vec<PodSight> {
    let side = HostSide::new(&surveyed.host.state);
    let pods = surveyed.matched.iter().zip(&compared.pods);
    let pod = |matched: &Matched, verdict: &PodVerdict| {
        let claims = matched.claims();
        let is_lost = matches!(verdict, PodVerdict::Lost(_));
        let entries = claims.links.iter().filter_map(|link| graph.entry_of(link));
        let mut on: Vec<IfName> = entries.cloned().collect();
        if on.is_empty() {
            on.extend(stack(matched, graph));
        }
        PodSight {
            id: matched.info.id.clone(),
            on,
            title: matched.info.title(),
            is_lost,
            loss: match verdict {
                PodVerdict::Lost(loss) => Some(loss.clone()),
                _ => None,
            },
            // One with a table that is not read whole has its links and addresses.
            is_unknown: matches!(verdict, PodVerdict::Unknown(problem) if problem.is_error()),
            is_torn: false,
            has_no_uplink: matched.lost_uplink(&side).is_some(),
            inside: inside(&claims, verdict, &compared.links, &surveyed.host.state),
        }
    };
    pods.map(|(matched, compared)| pod(matched, &compared.verdict))
        .collect()
}

/// The running pods whose record cannot be read, and that no other record has.
pub(super) fn damaged(surveyed: &Surveyed) -> Vec<String> {
    let unmatched = surveyed.unmatched.iter().map(|one| &one.pod.info);
    let is_damaged = |info: &&PodInfo| surveyed.damaged.iter().any(|one| one.id == info.id);
    unmatched.filter(is_damaged).map(PodInfo::title).collect()
}

/// The devices of the host under what it has lost.
pub(super) fn host_on(surveyed: &Surveyed, graph: &LinkGraph<'_>) -> BTreeSet<IfName> {
    if surveyed.is_selection {
        return BTreeSet::new();
    }
    let lost = host_losses(surveyed).into_iter();
    let lost: BTreeSet<IfName> = lost.map(|(name, _)| name).collect();
    let devices = surveyed.baseline.devices.iter();
    let under = devices.filter(|name| !graph.all_above([*name]).is_disjoint(&lost));
    under.cloned().collect()
}

/// What became of the devices of the host inside a pod. One that somebody moved back has its former ifindex.
fn inside(pod: &NetState, verdict: &PodVerdict, links: &HostLinks, host: &NetState) -> InsideSight {
    let PodVerdict::Lost(loss) = verdict else {
        return InsideSight::None;
    };
    let devices = pod
        .links
        .iter()
        .filter(|link| link.kind == LinkKind::Physical);
    let devices: Vec<_> = devices
        .filter_map(|link| Some((link, link.hardware.as_ref()?)))
        .collect();
    let has_returned = |(link, then): &(&Link, &Hardware)| {
        let mut now = host.links.iter();
        let is_same = |one: &Link| one.hardware.as_ref().is_some_and(|own| own.is_same(then));
        let found = now.find(|one| is_same(one));
        found.is_some_and(|found| link.is_made_anew(found))
            || links.functions.iter().any(|made| made.is_same(then))
    };
    if devices.iter().any(has_returned) {
        InsideSight::Returned
    } else if devices.iter().any(|(link, _)| link.title() == loss.link) {
        InsideSight::Absent
    } else {
        InsideSight::None
    }
}
