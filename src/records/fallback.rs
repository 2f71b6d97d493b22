//! Records of pods for which the present checkpoints have none that can be used: the newest generation that has one, then libcni's
//! cache. Neither is read while every running pod has its record; of pods that have interfaces, only the cache is.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::inventory::kubelet_endpoint;
use crate::inventory::observe::{Host, Pod};
use crate::inventory::visit::visit;
use crate::kernel::state::{links_addresses_and_routes, links_and_addresses};
use crate::matching::{NetnsKey, Selection};
use crate::model::checkpoint::Extension;
use crate::model::problem::{ForeignCause, MatchingCause};
use crate::model::{Checkpoint, NetState, NodeIdentity, NodeState, PodId, PodInfo, Problem};
use crate::plan::snapshot_quality::lacks_unrestorable;
use crate::records::cni_cache::{self, CACHE, Cache, CachedPod};
use crate::records::contest;
use crate::records::matched::{Matched, RecordOrigin};
use crate::records::pair::Paired;
use crate::records::survey::{Finding, Unmatched, mark_private};
use crate::runtime::{RuntimeAnswer, RuntimeConfig};
use crate::store::PastCheckpoints;

/// Where records come from besides the present checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fallback {
    Nothing,
    Generations,
    /// The generations; of the cache only whether it has a pod for which they have nothing.
    CacheLater,
    GenerationsAndCache,
}

impl Fallback {
    /// The part for which no runtime is queried: pods that have a record must not wait for a runtime.
    pub(crate) fn before_queries(self) -> Self {
        match self {
            Self::GenerationsAndCache => Self::CacheLater,
            Self::Nothing | Self::Generations | Self::CacheLater => self,
        }
    }
}

/// What a survey may use besides the given records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FallbackRequest<'a> {
    pub fallback: Fallback,
    /// Pods to which this run gave interfaces by such a record. They are no longer without any, and still have no other record.
    pub recovered: &'a BTreeSet<NetnsKey>,
    /// The runtimes to query for the sandboxes of the pods, where that has not been done; `None`: not to be queried.
    pub runtimes: Option<&'a RuntimeConfig>,
}

static NO_POD: BTreeSet<NetnsKey> = BTreeSet::new();

impl FallbackRequest<'_> {
    /// The given records alone.
    pub(crate) const NONE: Self = Self {
        fallback: Fallback::Nothing,
        recovered: &NO_POD,
        runtimes: None,
    };
    /// Everything that is there, without a query.
    pub(crate) const ALL: Self = Self {
        fallback: Fallback::GenerationsAndCache,
        ..Self::NONE
    };
}

/// The search for records of the pods that have none.
pub(super) struct FallbackSearch<'a> {
    pub request: FallbackRequest<'a>,
    pub selection: &'a Selection,
    pub sources: contest::Sources<'a>,
    pub node: &'a NodeIdentity,
    pub host: &'a Host,
    /// The host's state as it was recorded in this boot.
    pub recorded: Option<&'a NodeState>,
    pub paired: &'a mut Paired,
    pub unmatched: &'a mut Vec<Unmatched>,
    pub answer: &'a mut Option<RuntimeAnswer>,
}

impl FallbackSearch<'_> {
    /// Completes the records; returns whether the cache, which is for later, has more.
    pub(super) fn run(mut self) -> bool {
        if self.request.fallback == Fallback::Nothing {
            return false;
        }
        self.replace_unrestorable();
        let is_for_later = match self.request.fallback {
            Fallback::Nothing => false,
            Fallback::Generations => {
                self.in_generations();
                false
            }
            Fallback::CacheLater => {
                self.in_generations();
                self.replace_cut_off();
                self.cache().is_some()
            }
            Fallback::GenerationsAndCache => {
                self.in_generations();
                self.in_cache();
                self.replace_cut_off();
                false
            }
        };
        let by_id = |a: &Matched, b: &Matched| a.info.id.cmp(&b.info.id);
        self.paired.matched.sort_by(by_id);
        is_for_later
    }

    /// Whether a pod has lost what a record would describe, by what is known without one.
    fn is_bare(&self, one: &Unmatched) -> bool {
        let is_damaged = || self.is_damaged(&one.pod.info.id);
        one.finding == Finding::Bare
            || self.request.recovered.contains(&one.pod.netns.key())
            || (one.finding == Finding::Nothing && one.is_bare() && is_damaged())
    }

    fn is_damaged(&self, id: &PodId) -> bool {
        let mut damaged = self.paired.damaged.iter();
        damaged.any(|damaged| damaged.info.id == *id)
    }

    /// Whether a pod with interfaces once had a checkpoint, which is damaged or was removed.
    fn had_checkpoint(&self, one: &Unmatched) -> bool {
        let id = &one.pod.info.id;
        let was_seen = || self.recorded.is_some_and(|node| node.seen(id).is_some());
        let is_missing = one.finding == Finding::HasInterfaces && !one.has_record;
        self.is_damaged(id) || (is_missing && was_seen())
    }

    /// Gives pods that lack a link which their checkpoint could not restore that of the newest generation which can.
    fn replace_unrestorable(&mut self) {
        let nothing = NetState::default();
        let mut wanted = Vec::new();
        for (at, one) in self.paired.matched.iter_mut().enumerate() {
            let own = one.checkpoint.netfix.as_ref();
            let is_of_command = one.origin == RecordOrigin::Requested;
            let Some(own) = own.filter(|_| is_of_command) else {
                continue;
            };
            if lacks_unrestorable(&own.state, &nothing) {
                let now = one.pod.read(self.host, |socket, view| {
                    links_and_addresses(socket, Some(view))
                });
                let now = now.unwrap_or_else(|_| own.state.clone());
                wanted.extend(lacks_unrestorable(&own.state, &now).then_some((at, now)));
            }
        }
        if wanted.is_empty() {
            return;
        }
        for (generation, checkpoints) in PastCheckpoints::new(self.sources.store) {
            wanted.retain(|(at, now)| {
                let one = &mut self.paired.matched[*at];
                let can = |_: &PodId, own: &Extension| !lacks_unrestorable(&own.state, now);
                let Some((_, found)) = newest_about(&one.pod, &checkpoints, self.node, can) else {
                    return true;
                };
                one.use_generation(found.clone(), generation);
                let problem = from_generation(generation, &one.info);
                self.paired.problems.push(problem);
                false
            });
        }
    }

    /// Gives pods the checkpoints of the newest generation that has one about them.
    fn in_generations(&mut self) {
        let is_wanted = |one: &Unmatched| self.is_bare(one) || self.had_checkpoint(one);
        // Without a runtime's answer, a pod may have another name than its damaged file.
        let is_hidden = |info: &PodInfo| {
            let mut running = self.unmatched.iter();
            !running.any(|one| one.pod.info.id == info.id)
        };
        let has_hidden = self.paired.damaged.iter().any(|one| is_hidden(&one.info));
        let mut wanted: Vec<bool> = self.unmatched.iter().map(is_wanted).collect();
        if !has_hidden && !wanted.contains(&true) {
            return;
        }
        for (generation, checkpoints) in PastCheckpoints::new(self.sources.store) {
            for at in (0..self.unmatched.len()).rev() {
                let one = &self.unmatched[at];
                let is_usable = |id: &PodId, _: &Extension| wanted[at] || self.is_damaged(id);
                let found = newest_about(&one.pod, &checkpoints, self.node, is_usable);
                let Some((id, checkpoint)) = found else {
                    continue;
                };
                let info = checkpoint.pod(id);
                if self.selection.wants_pod(&info) || self.selection.wants_pod(&one.pod.info) {
                    wanted.remove(at);
                    let pod = self.unmatched.remove(at).pod;
                    self.use_checkpoint(info, checkpoint.clone(), pod, generation);
                }
            }
            if !has_hidden && !wanted.contains(&true) {
                return;
            }
        }
    }

    fn use_checkpoint(&mut self, info: PodInfo, checkpoint: Checkpoint, pod: Pod, generation: u64) {
        self.paired
            .problems
            .push(from_generation(generation, &info));
        self.paired.forgive(&info.id);
        self.paired.forgive(&pod.info.id);
        let origin = RecordOrigin::Generation(generation);
        let matched = Matched::new(info, (checkpoint, None), pod, origin);
        self.paired.matched.push(matched);
    }

    /// Gives pods that lack an interface what libcni recorded when they were created.
    fn in_cache(&mut self) {
        let Some(mut cache) = self.cache() else {
            return;
        };
        self.query();
        for (netns, sandbox) in self.cached(&cache) {
            let mut places = self.unmatched.iter();
            let Some(at) = places.position(|one| one.pod.netns.key() == netns) else {
                continue;
            };
            let pod = &self.unmatched[at].pod;
            // Where no runtime answers, a path alone does not prove that it is still the same sandbox.
            if self.answer.is_none() && pod.info.sandbox.is_none() {
                continue;
            }
            let is_selected = self.selection.wants_pod(&pod.info);
            let mut cached = cache.take(&sandbox, &pod.info);
            if cached.can_be_made() && (is_selected || self.selection.wants_pod(&cached.info)) {
                self.paired.problems.append(&mut cached.problems);
                let pod = self.unmatched.remove(at).pod;
                self.use_cached(cached, pod);
            }
        }
    }

    /// The cache, where it may have one of these pods.
    fn cache(&mut self) -> Option<Cache> {
        self.unmatched.iter().find(|one| self.may_lack(one))?;
        // Without a cache there is nothing to add to what is reported already.
        let cache = cni_cache::read(self.sources.cni_cache).ok()?;
        (!self.cached(&cache).is_empty()).then_some(cache)
    }

    fn use_cached(&mut self, cached: CachedPod, pod: Pod) {
        let problem = ForeignCause::FromCniCache.warning(CACHE);
        self.paired.problems.push(problem.of(&cached.info.id));
        self.paired.forgive(&cached.info.id);
        self.paired.forgive(&pod.info.id);
        self.paired.matched.extend(cached.matched(pod));
    }

    /// Whether the cache may show that a pod has lost something.
    fn may_lack(&self, one: &Unmatched) -> bool {
        let is_known = one.has_interfaces() && one.finding != Finding::Private;
        self.is_bare(one) || is_known
    }

    /// The pods that lack something which the cache has, each with the sandbox of its entries.
    fn cached(&mut self, cache: &Cache) -> Vec<(NetnsKey, String)> {
        let places = 0..self.unmatched.len();
        let places: Vec<usize> = places
            .filter(|at| self.may_lack(&self.unmatched[*at]))
            .collect();
        let all: Vec<&Pod> = places.iter().map(|at| &self.unmatched[*at].pod).collect();
        let found = cache.find(self.node, &all).into_iter();
        let mut found: Vec<_> = found.map(|(at, sandbox)| (places[at], sandbox)).collect();
        found.retain(|(at, sandbox)| {
            self.is_bare(&self.unmatched[*at])
                || lacks(cache, sandbox, &mut self.unmatched[*at].pod, self.host)
        });
        let found = found.into_iter();
        found
            .map(|(at, sandbox)| (self.unmatched[at].pod.netns.key(), sandbox))
            .collect()
    }

    /// Gives pods that were cut off when they were recorded what libcni has recorded since, where they lack some of it. Their records
    /// name the sandbox: no runtime is queried.
    fn replace_cut_off(&mut self) {
        let is_one = |one: &Matched| {
            let own = one.checkpoint.netfix.as_ref();
            let is_of_command = one.origin == RecordOrigin::Requested;
            is_of_command && own.is_some_and(|own| own.cut_off)
        };
        let matched = &self.paired.matched;
        let places: Vec<usize> = (0..matched.len())
            .filter(|at| is_one(&matched[*at]))
            .collect();
        if places.is_empty() {
            return;
        }
        let Ok(mut cache) = cni_cache::read(self.sources.cni_cache) else {
            return;
        };
        let all: Vec<&Pod> = places.iter().map(|at| &matched[*at].pod).collect();
        let mut found = cache.find(self.node, &all);
        found.sort_by_key(|(at, _)| Reverse(*at));
        for (at, sandbox) in found {
            let one = &mut self.paired.matched[places[at]];
            let is_proven = one.info.sandbox.as_ref() == Some(&sandbox);
            if is_proven && lacks(&cache, &sandbox, &mut one.pod, self.host) {
                let old = self.paired.matched.remove(places[at]);
                let mut cached = cache.take(&sandbox, &old.info);
                self.paired.problems.append(&mut cached.problems);
                self.use_cached(cached, old.pod);
            }
        }
    }

    /// Queries the runtimes for the sandboxes of these pods, unless that was done when the pods were found.
    fn query(&mut self) {
        let runtimes = self.request.runtimes.filter(|_| self.answer.is_none());
        match runtimes.map(kubelet_endpoint::query) {
            None => {}
            Some(Ok(answer)) => {
                answer.introduce(self.unmatched.iter_mut().map(|one| &mut one.pod));
                let known: Vec<_> = self.paired.matched.iter().map(|one| &one.info).collect();
                mark_private(self.unmatched, &known, Some(&answer));
                *self.answer = Some(answer);
            }
            Some(Err(problems)) => {
                let problems = problems.into_iter().map(Problem::demoted);
                self.paired.problems.extend(problems);
            }
        }
    }
}

/// Whether a pod is not as the cache describes its sandbox; of one that cannot be read whole that is not known.
fn lacks(cache: &Cache, sandbox: &str, pod: &mut Pod, host: &Host) -> bool {
    let read = visit(&mut [&mut *pod], |pod| {
        pod.read(host, |socket, view| {
            links_addresses_and_routes(socket, Some(view))
        })
    });
    let now = read.into_iter().next().and_then(|read| read.ok()?.ok());
    now.is_some_and(|now| cache.lacks(sandbox, &pod.info, &now).is_some())
}

fn from_generation(generation: u64, pod: &PodInfo) -> Problem {
    let problem = MatchingCause::FromGeneration { generation }.warning("checkpoint");
    problem.of(&pod.id)
}

/// The newest of these checkpoints that is about a pod.
fn newest_about<'a>(
    pod: &Pod,
    checkpoints: &'a [(PodId, Checkpoint)],
    node: &NodeIdentity,
    is_usable: impl Fn(&PodId, &Extension) -> bool,
) -> Option<&'a (PodId, Checkpoint)> {
    let about = checkpoints.iter().filter_map(|one| {
        let (id, checkpoint) = one;
        let own = checkpoint.netfix.as_ref()?;
        let is_it = is_usable(id, own) && own.is_about(node, &pod.identity, &pod.info);
        is_it.then_some((own, one))
    });
    Some(about.max_by_key(|(own, _)| own.rank())?.1)
}
