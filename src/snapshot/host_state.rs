//! What a snapshot records of the host, and what the host has lost. Pure.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::changes::{Gone, HostChange, HostDecision, PodChange, PodDecision};
use super::facts::{Archive, Moment};
use crate::model::checkpoint::SCHEMA;
use crate::model::net::route::PROTOCOL_KERNEL;
use crate::model::pod::empty::EmptyNetns;
use crate::model::problem::SnapshotCause;
use crate::model::{
    IfName, Link, LinkGraph, LossCause, NetState, NodeState, PodId, Problem, Route, StackLink, Tie,
};
use crate::plan::snapshot_quality;
use crate::plan::snapshot_quality::{
    host_loss, less_restorable, missing_nic, silent_below_host, unsupported_and_lost,
};

/// What the decision for the host depends on.
pub(super) struct Known<'a> {
    pub moment: &'a Moment,
    pub stored: &'a Archive,
    pub pods: &'a [PodDecision],
    /// Checkpoints that do not count any more.
    pub gone: &'a BTreeMap<PodId, Gone>,
    /// Whether every namespace was found and read.
    pub is_whole: bool,
    /// Whether a person gives up what the host has lost.
    pub is_accepted: bool,
}

impl Known<'_> {
    /// The host's present state is recorded, unless something is lost. One that was not read whole replaces no other.
    /// `empty` are the namespaces with nothing to record.
    pub(super) fn decide(&self, empty: Vec<EmptyNetns>) -> HostDecision {
        let mut pods = self.pods.iter();
        let has_lost_pod = pods.any(|one| matches!(one.change, PodChange::Lost));
        // Without the pods' links it is clear that theirs below is gone.
        let lost = (!has_lost_pod).then(|| self.lost_link()).flatten();
        let lost = lost.or_else(|| self.lost());
        let is_silent = self.stored.has_silent(None, &self.moment.answers);
        let former = &self.moment.former_indexes;
        let is_given_up = self.is_accepted && (lost.is_some() || is_silent || !former.is_empty());
        let has_lost = has_lost_pod || (lost.is_some() && !is_given_up);
        let mut problems = match lost {
            Some(_) if is_given_up => Vec::new(),
            // What took the pods' links took this, too.
            Some(problem) if has_lost_pod => vec![problem.demoted()],
            Some(problem) => vec![problem],
            None if has_lost_pod => Vec::new(),
            None => {
                let host = &self.moment.host;
                let mut problems = snapshot_quality::unsupported_on_host(host, self.under_pods());
                problems.extend(snapshot_quality::duplicates(host));
                problems.extend(snapshot_quality::of_pairs(host));
                problems
            }
        };
        problems.extend(is_given_up.then(|| SnapshotCause::HostGivenUp.info("host")));
        let is_whole = self.is_whole && !self.may_hide_loss();
        let is_good = !has_lost && (is_whole || self.stored.node.is_none());
        let change = if is_good || is_given_up {
            let former = if is_given_up {
                BTreeMap::new()
            } else {
                former.clone()
            };
            HostChange::Record(Box::new(self.present(empty, former)))
        } else {
            HostChange::Keep(empty.into_iter().filter(|netns| netns.accepted).collect())
        };
        HostDecision {
            change,
            has_lost,
            is_given_up,
            problems,
        }
    }

    /// What a link that carries pods or the host itself has lost since the host's state was recorded.
    fn lost(&self) -> Option<Problem> {
        let recorded = self.stored.node.as_ref()?;
        let under: BTreeSet<&IfName> = self.links_under_pods().map(|under| &under.name).collect();
        let (then, now) = (&recorded.state, &self.moment.host);
        let generation = self.stored.generation_of_node();
        let gone = unsupported_and_lost(then, now, &under).into_iter().next();
        let answers = recorded.answers.of_host();
        if let Some((link, what)) = host_loss(then, &answers, now, under) {
            return Some(SnapshotCause::HostLost { what, generation }.error(&link));
        }
        if let Some(link) = self.missing_nic(then) {
            let what = LossCause::LinkGone;
            return Some(SnapshotCause::HostLost { what, generation }.error(link));
        }
        if let Some(link) = silent_below_host(then, &answers, now) {
            return Some(SnapshotCause::HostNoCarrier.error(&link));
        }
        gone.map(|lost| SnapshotCause::HostObjectLost.error(lost.object))
            .or_else(|| less_restorable(then, now, generation, true))
    }

    /// A recorded NIC that is neither on the host nor in a pod, where every namespace was read.
    fn missing_nic<'s>(&self, then: &'s NetState) -> Option<&'s IfName> {
        let inside = self.moment.devices_inside.as_ref()?;
        missing_nic(then, &self.moment.host, inside)
    }

    /// The problem with a link under a checkpoint of this boot that is gone under any name, or that was up and is down.
    fn lost_link(&self) -> Option<Problem> {
        self.links_under_pods().find_map(|under| {
            let mut links = self.moment.links_after.iter();
            let cause = match links.find(|now| is_it(under, now)) {
                None => SnapshotCause::HostLinkGone,
                Some(now) if self.was_up(under) && !now.flags.up => SnapshotCause::HostLinkDown,
                Some(_) => return None,
            };
            Some(cause.error(&under.name))
        })
    }

    fn was_up(&self, under: &StackLink) -> bool {
        let recorded = self.stored.node.as_ref();
        let then = recorded.and_then(|recorded| recorded.state.link(&under.name));
        then.is_some_and(|then| then.flags.up)
    }

    /// Whether a link under a pod that is not selected was made anew since the host's state was recorded: the pod may be lost, and
    /// the recorded number is what shows that.
    fn may_hide_loss(&self) -> bool {
        let Some(recorded) = self.stored.node.as_ref() else {
            return false;
        };
        let is_selected = |id: &PodId| self.pods.iter().any(|one| one.pod.info.id == *id);
        let is_remade = |under: &StackLink| {
            let mut links = self.moment.links_after.iter();
            let now = links.find(|now| is_it(under, now));
            let then = recorded.state.link(&under.name);
            then.zip(now)
                .is_some_and(|(then, now)| then.index != now.index)
        };
        let mut unselected = self
            .stored
            .stacks(&self.moment.node)
            .filter(|(id, _)| !self.gone.contains_key(*id) && !is_selected(id));
        !self.moment.everything && unselected.any(|(_, under)| is_remade(under))
    }

    /// The host's links under every checkpoint of this boot that stays.
    fn links_under_pods(&self) -> impl Iterator<Item = &StackLink> {
        let all = self.stored.stacks(&self.moment.node);
        all.filter(|(id, _)| !self.gone.contains_key(*id))
            .map(|(_, link)| link)
    }

    /// The names of the host's links under these, and of those that are parents of pods' links now.
    fn under_pods(&self) -> impl Iterator<Item = &IfName> {
        let interfaces = self.pods.iter().flat_map(|one| &one.pod.interfaces);
        interfaces
            .filter_map(|interface| interface.parent.as_ref())
            .chain(self.links_under_pods().map(|under| &under.name))
    }

    /// The host's present state, as it is recorded.
    fn present(&self, empty: Vec<EmptyNetns>, former_indexes: BTreeMap<u32, IfName>) -> NodeState {
        let under = self.under_pods().collect();
        let old = self.stored.node.as_ref();
        NodeState {
            schema: SCHEMA,
            created: self.moment.created.clone(),
            created_boottime: self.moment.created_boottime,
            node: self.moment.node.clone(),
            host: self.moment.netns.clone(),
            state: lasting(&self.moment.host, &under),
            empty,
            seen: old.map(|old| old.seen.clone()).unwrap_or_default(),
            seen_boottime: old.map(|old| old.seen_boottime.clone()).unwrap_or_default(),
            complete: old.and_then(|old| old.complete.clone()),
            complete_boottime: old.and_then(|old| old.complete_boottime),
            large: BTreeMap::new(),
            proxies: old.map(|old| old.proxies.clone()).unwrap_or_default(),
            answers: old.map(|old| old.answers.clone()).unwrap_or_default(),
            former_indexes,
        }
    }
}

/// Whether a link of the host is the one of a checkpoint: by its name, or by its hardware under any name.
fn is_it(under: &StackLink, now: &Link) -> bool {
    let is_same_device = match (&under.hardware, &now.hardware) {
        (Some(then), Some(now)) => then.is_same(now),
        _ => false,
    };
    is_same_device || now.name == under.name
}

/// The host's state without the ends of pods' veth pairs, which come and go with the pods; `under` are links under pods. Of their
/// routes those of the kernel are kept that are before a recorded one in its place.
fn lasting(host: &NetState, under: &BTreeSet<&IfName>) -> NetState {
    let mut state = host.clone().lasting();
    let graph = LinkGraph::new(&host.links);
    let carries = |link: &Link| {
        // A port of a bridge that is one end of a pair is a pod's.
        let bears = |(tie, upper): &(Tie, &Link)| *tie != Tie::Member && !upper.is_bridge();
        under.contains(&link.name) || graph.above(&link.name).iter().any(bears)
    };
    // A pod's that has a backup loses that with a NIC, and not itself.
    let is_kept = |link: &Link| !link.is_pair() || link.backup_port.is_some() || carries(link);
    state.links.retain(is_kept);
    let names: BTreeSet<IfName> = state.links.iter().map(|link| link.name.clone()).collect();
    state
        .addresses
        .retain(|address| names.contains(&address.dev));
    state
        .neighbours
        .retain(|neighbour| names.contains(&neighbour.dev));
    let is_there = |dev: &Option<IfName>| dev.as_ref().is_some_and(|dev| names.contains(dev));
    state.sockets.retain(|socket| is_there(&socket.dev));
    let is_kept = |route: &Route| route.devs().iter().all(|dev| names.contains(*dev));
    let mut places = HashSet::new();
    let mut routes = Vec::new();
    for route in state.routes.drain(..).rev() {
        if is_kept(&route) {
            places.insert(route.place());
            routes.push(route);
        } else if places.contains(&route.place()) && route.nature().2 == PROTOCOL_KERNEL {
            routes.push(route);
        }
    }
    routes.reverse();
    state.routes = routes;
    state.with_own_ways()
}
