//! What a snapshot records of the host, and what the host has lost. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::archive::Archive;
use super::decide::{Gone, Moment, PodDecision};
use crate::model::checkpoint::SCHEMA;
use crate::model::problem::SnapshotCause;
use crate::model::{
    IfName, Link, LinkKind, NetState, NetnsIdentity, NodeState, Parent, PodId, Problem, StackLink,
};

/// The problem with a link under a checkpoint of this boot that is gone under any name, or that was up and is down.
pub(super) fn lost_link(
    moment: &Moment,
    stored: &Archive,
    gone: &BTreeMap<PodId, Gone>,
) -> Option<Problem> {
    let is_same = |under: &StackLink, now: &Link| match (&under.hardware, &now.hardware) {
        (Some(then), Some(now)) => then.is_same(now),
        _ => false,
    };
    let was_up = |under: &StackLink| {
        let recorded = stored.node.as_ref();
        let then = recorded.and_then(|recorded| recorded.state.link(&under.name));
        then.is_some_and(|then| then.flags.up)
    };
    let lost = |under: &StackLink| {
        let mut links = moment.links_after.iter();
        let now = links.find(|now| now.name == under.name || is_same(under, now));
        let cause = match now {
            None => SnapshotCause::HostLinkGone,
            Some(now) if was_up(under) && !now.flags.up => SnapshotCause::HostLinkDown,
            Some(_) => return None,
        };
        Some(cause.error(&under.name))
    };
    links_under_pods(moment, stored, gone).find_map(lost)
}

/// The host's links under every checkpoint of this boot that stays.
fn links_under_pods<'a>(
    moment: &Moment,
    stored: &'a Archive,
    gone: &'a BTreeMap<PodId, Gone>,
) -> impl Iterator<Item = &'a StackLink> {
    let all = stored.stacks(&moment.node);
    all.filter(|(id, _)| !gone.contains_key(*id))
        .map(|(_, link)| link)
}

/// The host's present state to record; `empty` are the namespaces with nothing to record.
pub(super) fn recorded(
    moment: &Moment,
    pods: &[PodDecision],
    gone: &BTreeMap<PodId, Gone>,
    stored: &Archive,
    empty: Vec<NetnsIdentity>,
) -> NodeState {
    let under_checkpoints: BTreeSet<&IfName> = links_under_pods(moment, stored, gone)
        .map(|under| &under.name)
        .collect();
    let interfaces = pods.iter().flat_map(|one| &one.pod.interfaces);
    let under_pods = interfaces.filter_map(|interface| interface.parent.as_ref());
    let under = under_pods.chain(under_checkpoints).collect();
    let old = stored.node.as_ref();
    NodeState {
        schema: SCHEMA,
        created: moment.created.clone(),
        node: moment.node.clone(),
        state: lasting(&moment.host, &under),
        empty,
        seen: old.map(|old| old.seen.clone()).unwrap_or_default(),
        complete: old.and_then(|old| old.complete.clone()),
        large: BTreeMap::new(),
    }
}

/// The host's state without the ends of pods' veth pairs, which come and go with the pods; `under` are links under pods.
fn lasting(host: &NetState, under: &BTreeSet<&IfName>) -> NetState {
    let mut state = host.clone().lasting();
    let is_pair =
        |link: &Link| matches!(&link.kind, LinkKind::Other { driver } if driver == "veth");
    let carries = |link: &Link| {
        let on_it = |upper: &Link| {
            let is_bond = matches!(upper.kind, LinkKind::Bond(_));
            upper.parent == Some(Parent::Own(link.name.clone()))
                || is_bond && link.master.as_ref() == Some(&upper.name)
        };
        under.contains(&link.name) || host.links.iter().any(on_it)
    };
    state.links.retain(|link| !is_pair(link) || carries(link));
    let names: BTreeSet<IfName> = state.links.iter().map(|link| link.name.clone()).collect();
    state
        .addresses
        .retain(|address| names.contains(&address.dev));
    state
        .neighbours
        .retain(|neighbour| names.contains(&neighbour.dev));
    state
        .routes
        .retain(|route| route.devs().iter().all(|dev| names.contains(*dev)));
    state
}
