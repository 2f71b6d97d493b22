//! A restore that was decided: a window of `upgrade`, then another look and the watch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::clock;
use crate::context::Context;
use crate::guard::accounts;
use crate::guard::decide::{self, Decided, GuardDecision, Wanted};
use crate::guard::observation::{FOREVER, GuardObservation, observe};
use crate::guard::request::{GuardRequest, LookResult, keep};
use crate::guard::sight::PodSight;
use crate::guard::watched::{self, WatchEnd};
use crate::inventory::kubelets;
use crate::kubelet::unit::UnitToPause;
use crate::matching::Selection;
use crate::model::window::{GuardRecord, GuardWatch, UnplannedEnd, Window, WindowPod};
use crate::model::{Exit, IfName, PodId, Problem};
use crate::records::matched::Matched;
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::store::{Store, StoreError};
use crate::upgrade::driver::unplanned::{UnplannedLoss, drive_unplanned};
use crate::upgrade::ledger::Upgraded;
use crate::window::rebuild_check::query::RuntimeQuery;

/// How long the restore of all pods may wait for the word of a runtime about some.
const ANSWER: Duration = Duration::from_secs(1);
/// The runtimes whose kubelet checks the namespaces of pods, and rebuilds those without a network: dockershim's and cri-dockerd's.
const CHECKED_BY_KUBELET: &str = "docker";

/// Restores under the lock. Another netfix may be at work, and may have restored everything before this has it.
pub(super) fn restore(
    mut request: GuardRequest,
    known: &GuardRecord,
    mut asked: RuntimeQuery,
    context: &mut Context,
    tell: &mut dyn FnMut(&mut Decided),
) -> Result<LookResult, Refusal> {
    let store = context.store.clone();
    let guard = store.clone().patient(FOREVER, |_| {}).lock("guard")?;
    let mut seen = observe(&request, &store)?;
    seen.leave(&mut asked);
    let mut decided = decide::decide(known, &seen.sight, request.choice);
    tell(&mut decided);
    let GuardDecision::Restore(wanted) = &decided.decision else {
        drop(guard);
        let watched = watched::end_if_over(&mut decided.record, &request.upgrade, &store);
        keep(&store, known, &mut decided.record);
        return Ok(LookResult {
            problems: seen.unknown,
            watched: Vec::from_iter(watched),
            ..decided.left()
        });
    };
    let (mut record, mut problems) = (decided.record.clone(), Vec::new());
    accounts::begins(&mut record, wanted, clock::boottime());
    // On disk before the restore: a guard that dies in each of them must not restore without end.
    problems.extend(unsaved(guard.save_guard(&record)));
    let loss = seen.loss(wanted, &record, &request, asked);
    let (since, selection) = (loss.since, request.upgrade.selection.clone());
    request.prepare(wanted, &seen.surveyed);
    let mut upgraded = drive_unplanned(loss, &request.upgrade, guard, context)?;
    request.upgrade.selection = selection;
    let vain = noted(&mut record, wanted, &mut upgraded);
    let left = match observe(&request, &store) {
        Ok(mut after) => {
            let why = |id: &PodId| what_failed(&upgraded.problems, id);
            let sights = (since, [&seen.sight, &after.sight]);
            accounts::ends(&mut record, wanted, sights, why);
            problems.append(&mut after.unknown);
            after.left(&mut record, &request, tell)
        }
        Err(refusal) => {
            problems.extend(refusal.problems);
            Exit::Failed
        }
    };
    let watched = watch(&mut record, &upgraded, &request, &store);
    problems.extend(written(&store, &record, vain));
    let upgraded = Some(upgraded);
    Ok(LookResult {
        record,
        left,
        upgraded,
        watched,
        problems,
    })
}

/// The watch after this restore begins, and with that the one after an earlier restore ends.
fn watch(
    record: &mut GuardRecord,
    upgraded: &Upgraded,
    request: &GuardRequest,
    store: &Store,
) -> Vec<WatchEnd> {
    let mut watched = Vec::from_iter(watched::end(record, &request.upgrade, store));
    record.watch = upgraded.window.as_ref().map(|window| GuardWatch {
        window: window.id.clone(),
        until: clock::boottime() + clock::milliseconds(request.upgrade.settle),
    });
    watched.extend(watched::end_if_over(record, &request.upgrade, store));
    watched
}

/// Counts a restore; returns its window if that was an attempt in vain.
fn noted(record: &mut GuardRecord, wanted: &Wanted, upgraded: &mut Upgraded) -> Option<Window> {
    let vain = upgraded
        .window
        .take_if(|_| wanted.is_retry() && upgraded.restored.is_unchanged());
    record.restores += u64::from(vain.is_none());
    record.last = Some(UnplannedEnd {
        window: upgraded.window.as_ref().map(|window| window.id.clone()),
        at: clock::wall(),
        exit: upgraded.end as u8,
    });
    vain
}

/// Writes what is known after a restore. An attempt in vain every ten minutes would push out the records of losses.
fn written(store: &Store, record: &GuardRecord, vain: Option<Window>) -> Option<Problem> {
    let saved = store.clone().lock("guard").and_then(|guard| {
        guard.save_guard(record)?;
        vain.map_or(Ok(()), |window| guard.forget_window(&window.id))
    });
    unsaved(saved)
}

/// A full disk must not stop a restore.
fn unsaved(saved: Result<(), StoreError>) -> Option<Problem> {
    saved.err().map(|error| error.problem().demoted())
}

/// What kept a restore from completing a pod.
fn what_failed(problems: &[Problem], pod: &PodId) -> String {
    let mut own = problems.iter().filter(|one| one.pod.as_ref() == Some(pod));
    let failed = own.find(|one| one.is_error());
    let failed = failed.cloned();
    failed
        .map(|one| Problem { pod: None, ..one }.line(None))
        .unwrap_or_default()
}

impl GuardObservation {
    /// Takes down which of the lost pods their runtime has no more or is tearing down: what it does not say in time is not so.
    fn leave(&mut self, asked: &mut RuntimeQuery) {
        let both = self.sight.pods.iter().zip(&self.surveyed.matched);
        let lost = both.filter(|(pod, one)| pod.is_lost && one.info.sandbox.is_some());
        let lost: Vec<_> = lost.map(|(_, one)| &one.info).collect();
        let answer = (!lost.is_empty()).then(|| asked.within(ANSWER)).flatten();
        let torn = answer.map(|answer| answer.torn_down(lost));
        let torn = torn.unwrap_or_default();
        for pod in &mut self.sight.pods {
            pod.is_torn = torn.contains(&pod.id);
        }
    }

    /// What follows from a look after a restore; returns how it ends.
    fn left(
        &self,
        record: &mut GuardRecord,
        request: &GuardRequest,
        tell: &mut dyn FnMut(&mut Decided),
    ) -> Exit {
        let mut decided = decide::decide(record, &self.sight, request.choice);
        tell(&mut decided);
        let is_lost_again = matches!(decided.decision, GuardDecision::Restore(_));
        let after = decided.left();
        *record = after.record;
        record.again_at = record.again_at.or(is_lost_again.then(clock::boottime));
        after.left
    }

    /// The loss as a window has it.
    fn loss(
        &self,
        wanted: &Wanted,
        record: &GuardRecord,
        request: &GuardRequest,
        asked: RuntimeQuery,
    ) -> UnplannedLoss {
        let of_links = wanted
            .lost
            .iter()
            .filter_map(|name| request.losses.get(name));
        let both = self.sight.pods.iter().zip(&self.surveyed.matched);
        let both = both.filter(|(pod, _)| wanted.has(&pod.id));
        let tried = |pod: &PodSight| record.incomplete.get(&pod.id).map(|tried| tried.since);
        let of_pods = both.clone().filter_map(|(pod, _)| tried(pod));
        let since = of_links.copied().chain(of_pods).min();
        let since = since.unwrap_or(self.sight.now);
        let pods = both.map(|(pod, matched)| {
            // One that was lost before this guard looked has no known moment.
            let at = tried(pod).or_else(|| self.lost_at(pod, &request.losses));
            let at = at.filter(|_| pod.is_lost);
            WindowPod {
                lost: at.map(|at| at.saturating_sub(since)),
                ..WindowPod::new(matched.info.clone(), matched.summary().interfaces)
            }
        });
        let mut pods: Vec<_> = pods.collect();
        pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
        UnplannedLoss {
            since,
            links: wanted.lost.clone(),
            without: wanted.without.clone(),
            untouched: wanted.untouched.clone(),
            pods,
            stayed: self.stayed(&record.settled),
            host: self.surveyed.host.state.links_and_addresses(),
            logged: request.logged,
            asked,
        }
    }

    /// The ifindexes of the recorded links that are there as when all was well.
    fn stayed(&self, settled: &BTreeMap<IfName, u32>) -> BTreeSet<u32> {
        let links = self.sight.links.iter();
        let stayed = links.filter(|(name, link)| {
            let then = settled.get(*name).copied().unwrap_or(link.recorded);
            link.now == Some(then)
        });
        stayed.filter_map(|(_, link)| link.now).collect()
    }

    /// When the first of the links under a pod was lost.
    fn lost_at(&self, pod: &PodSight, losses: &BTreeMap<IfName, u64>) -> Option<u64> {
        let under = pod.on.iter().flat_map(|name| self.sight.all_below(name));
        under.filter_map(|name| losses.get(&name)).min().copied()
    }
}

impl GuardRequest {
    /// The request for the window of this restore.
    fn prepare(&mut self, wanted: &Wanted, surveyed: &Surveyed) {
        let is_wanted = |one: &&Matched| wanted.has(&one.info.id);
        let pods = || surveyed.matched.iter().filter(is_wanted);
        if wanted.pods.is_some() {
            let inodes = pods().map(|one| one.pod.identity.inode);
            self.upgrade.selection = Selection::of_inodes(inodes);
        }
        if !wanted.waits {
            self.upgrade.wait = Duration::ZERO;
        }
        let is_checked =
            pods().any(|one| one.info.sandbox.is_some() && one.info.source == CHECKED_BY_KUBELET);
        if is_checked && kubelets::running().is_ok_and(|running| !running.is_empty()) {
            self.upgrade.pause = UnitToPause::Kubelet;
        }
    }
}
