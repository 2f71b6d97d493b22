//! One look: observes the machine, decides, and restores. It runs in a process of its own, which gives all memory back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use crate::clock;
use crate::context::Context;
use crate::guard::accounts;
use crate::guard::decide::{self, Choice, Decided, GuardDecision, Wanted};
use crate::guard::facts;
use crate::guard::sight::{HoldSight, PodSight, Sight, WindowSight};
use crate::guard::watched::{self, Watched};
use crate::inventory::{kubelets, node};
use crate::kubelet::resume::finish_abandoned;
use crate::kubelet::unit::UnitToPause;
use crate::matching::Selection;
use crate::model::pod::identity::Holder;
use crate::model::problem::{Cause, InventoryCause, StoreCause};
use crate::model::window::{GuardRecord, GuardWatch, UnplannedEnd, Window, WindowPod};
use crate::model::{Exit, IfName, LinkGraph, PodId, PodInfo, Problem};
use crate::plan::PodVerdict;
use crate::records::matched::Matched;
use crate::records::prepare::SurveyRequest;
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::restore::course::torn_down;
use crate::runtime::RuntimeConfig;
use crate::situation::{Depth, Situation};
use crate::store::{Store, StoreError};
use crate::upgrade::driver::unplanned::{UnplannedLoss, drive_unplanned};
use crate::upgrade::ledger::{GUARD, Upgraded};
use crate::upgrade::request::UpgradeRequest;
use crate::window::log_file::DEFAULT_LIMIT;
use crate::window::observed::is_deserted;
use crate::window::records::is_owner_alive;
use crate::window::session::WindowSession;

/// How long the restore of all pods may wait for the word of a runtime about some.
const ANSWER: Duration = Duration::from_secs(1);
/// How long another netfix is waited for: a window of hours has the lock for hours.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The runtimes whose kubelet checks the namespaces of pods, and rebuilds those without a network: dockershim's and cri-dockerd's.
const CHECKED_BY_KUBELET: &str = "docker";

/// The request for a look.
pub(crate) struct GuardRequest {
    pub upgrade: UpgradeRequest<'static>,
    pub choice: Choice,
    /// When links of the host were lost (`CLOCK_BOOTTIME`, milliseconds), as far as events reported it.
    pub losses: BTreeMap<IfName, u64>,
    /// The kernel's last record when nothing was lost.
    pub logged: Option<u64>,
    /// The process that watches.
    pub watcher: Option<Holder>,
    /// What the last look knew; `None`: as it is on disk.
    pub known: Option<GuardRecord>,
}

/// What a look leaves.
pub(crate) struct LookResult {
    /// For the next look.
    pub record: GuardRecord,
    /// How it ends where nothing is restored, and no other look follows.
    pub left: Exit,
    /// The restore, if one took place.
    pub upgraded: Option<Upgraded>,
    /// The watches that are over.
    pub watched: Vec<Watched>,
    pub problems: Vec<Problem>,
}

/// Looks once, and restores where that is decided; `tell` receives each decision before anything is done.
pub(crate) fn look(
    mut request: GuardRequest,
    context: &mut Context,
    tell: &mut dyn FnMut(&mut Decided),
) -> Result<LookResult, Refusal> {
    let store = context.store.clone();
    let mut problems = Vec::new();
    let known = request.known.take();
    let is_first = known.is_none();
    let mut known = known.unwrap_or_else(|| GuardRecord {
        // Each start says what it finds.
        said: String::new(),
        ..load(&store, &mut problems)
    });
    known.watcher = request.watcher.or(known.watcher);
    if !store.exists() {
        let mut decided = decide::decide(&known, &empty_sight(), request.choice);
        tell(&mut decided);
        return Ok(decided.left());
    }
    if !request.choice.reports_only {
        problems.extend(close_deserted(&store)?);
    }
    let mut first = observe(&request, &store)?;
    let mut decided = decide::decide(&known, &first.sight, request.choice);
    if !matches!(decided.decision, GuardDecision::Restore(_)) {
        tell(&mut decided);
        let is_reported = matches!(decided.decision, GuardDecision::WouldRestore(_));
        let is_new = decided.record.said != known.said;
        decided.record.reported += u64::from(is_reported && is_new);
        problems.append(&mut first.unknown);
        // A watch names them once: no restore helps them.
        problems.extend(first.cut_off.into_iter().filter(|_| is_first));
        // Of a guard that is gone.
        let end = if is_first {
            watched::end
        } else {
            watched::end_if_over
        };
        let watched = end(&mut decided.record, &request.upgrade, &store);
        keep(&store, &known, &decided.record);
        return Ok(LookResult {
            problems,
            watched: Vec::from_iter(watched),
            ..decided.left()
        });
    }
    let torn = first.torn(&decided, &request.upgrade.runtimes);
    let mut looked = restore(request, &known, torn, context, tell)?;
    looked.problems.extend(problems);
    Ok(looked)
}

/// Restores under the lock. Another netfix may be at work, and may have restored everything before this has it.
fn restore(
    mut request: GuardRequest,
    known: &GuardRecord,
    torn: Option<Receiver<BTreeSet<PodId>>>,
    context: &mut Context,
    tell: &mut dyn FnMut(&mut Decided),
) -> Result<LookResult, Refusal> {
    let store = context.store.clone();
    let guard = store.clone().patient(FOREVER, |_| {}).lock("guard")?;
    let mut seen = observe(&request, &store)?;
    // What a runtime does not say is not so.
    let torn = torn.and_then(|torn| torn.recv_timeout(ANSWER).ok());
    let torn = torn.unwrap_or_default();
    for pod in &mut seen.sight.pods {
        pod.is_torn = torn.contains(&pod.id);
    }
    let mut decided = decide::decide(known, &seen.sight, request.choice);
    tell(&mut decided);
    let mut record = decided.record.clone();
    let GuardDecision::Restore(wanted) = &decided.decision else {
        let _ = guard.save_guard(&record);
        drop(guard);
        let watched = watched::end_if_over(&mut decided.record, &request.upgrade, &store);
        return Ok(LookResult {
            problems: seen.unknown,
            watched: Vec::from_iter(watched),
            ..decided.left()
        });
    };
    let mut problems = Vec::new();
    accounts::begins(&mut record, wanted, clock::boottime());
    // On disk before the restore: a guard that dies in each of them must not restore without end.
    let saved = guard.save_guard(&record).err();
    problems.extend(saved.map(|error| error.problem().demoted()));
    let loss = seen.loss(wanted, &record, &request);
    let since = loss.since;
    let selection = request.upgrade.selection.clone();
    request.prepare(wanted, &seen.surveyed);
    let mut upgraded = drive_unplanned(loss, &request.upgrade, guard, context)?;
    request.upgrade.selection = selection;
    let vain = noted(&mut record, wanted, &mut upgraded);
    let left = match observe(&request, &store) {
        Ok(mut after) => {
            let why = |id: &PodId| what_failed(&upgraded.problems, id);
            let sights = (since, [&seen.sight, &after.sight]);
            accounts::ends(&mut record, wanted, sights, why);
            let mut decided = decide::decide(&record, &after.sight, request.choice);
            tell(&mut decided);
            problems.append(&mut after.unknown);
            let is_lost_again = matches!(decided.decision, GuardDecision::Restore(_));
            let after = decided.left();
            record = after.record;
            record.again_at = record.again_at.or(is_lost_again.then(clock::boottime));
            after.left
        }
        Err(refusal) => {
            problems.extend(refusal.problems);
            Exit::Failed
        }
    };
    // What was lost in the watch of an earlier restore ends it.
    let mut watched = Vec::from_iter(watched::end(&mut record, &request.upgrade, &store));
    record.watch = upgraded.window.as_ref().map(|window| GuardWatch {
        window: window.id.clone(),
        until: clock::boottime() + clock::milliseconds(request.upgrade.settle),
    });
    watched.extend(watched::end_if_over(&mut record, &request.upgrade, &store));
    problems.extend(written(&store, &record, vain));
    Ok(LookResult {
        record,
        left,
        upgraded: Some(upgraded),
        watched,
        problems,
    })
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
    saved.err().map(|error| error.problem().demoted())
}

impl Decided {
    /// Nothing was restored.
    fn left(self) -> LookResult {
        LookResult {
            left: match self.decision {
                GuardDecision::Well
                | GuardDecision::LeftToWindow { .. }
                | GuardDecision::Held { .. } => Exit::Done,
                GuardDecision::NoPod { .. } => Exit::Refused,
                _ => Exit::Failed,
            },
            record: self.record,
            upgraded: None,
            watched: Vec::new(),
            problems: Vec::new(),
        }
    }
}

/// The record on disk. A damaged one is replaced.
fn load(store: &Store, problems: &mut Vec<Problem>) -> GuardRecord {
    store.load_guard().unwrap_or_else(|error| {
        problems.push(error.problem().demoted());
        GuardRecord::default()
    })
}

/// Writes what is known, unless another netfix has the lock: the process that watches has it in memory.
fn keep(store: &Store, known: &GuardRecord, record: &GuardRecord) {
    if known == record && store.load_guard().is_ok_and(|stored| stored == *record) {
        return;
    }
    let store = store.clone().patient(Duration::ZERO, |_| {});
    if let Ok(guard) = store.lock("guard") {
        let _ = guard.save_guard(record);
    }
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

/// What was observed.
struct GuardObservation {
    /// Why pods could not be observed, or records not be read.
    unknown: Vec<Problem>,
    /// The pods that are cut off and have no good record.
    cut_off: Vec<Problem>,
    sight: Sight,
    surveyed: Surveyed,
}

/// A sight of nothing, at this moment: all that there is without a checkpoint.
fn empty_sight() -> Sight {
    Sight {
        now: clock::boottime(),
        boot: node::node_identity().boot_id,
        ..Sight::default()
    }
}

fn observe(request: &GuardRequest, store: &Store) -> Result<GuardObservation, Refusal> {
    let (selection, runtimes) = (&request.upgrade.selection, &request.upgrade.runtimes);
    let wanted = SurveyRequest {
        nic: request.upgrade.nic,
        index: request.upgrade.index,
        ..SurveyRequest::new(selection.clone(), runtimes.clone())
    };
    let Situation { surveyed, compared } = Situation::look(&wanted, store, Depth::Loss)?;
    let unread = surveyed.problems.iter().filter(|one| is_unread(one));
    let mut unknown: Vec<Problem> = unread.cloned().collect();
    let recorded = surveyed.node_state.as_ref();
    let graph = LinkGraph::new(&surveyed.baseline.state.links);
    let has_pods = !(surveyed.matched.is_empty() && surveyed.unmatched.is_empty());
    let sight = Sight {
        snapshot: recorded.map(|recorded| recorded.created.clone()),
        window: open_window(store)?,
        hold: hold(store),
        is_unread: !unknown.is_empty(),
        links: facts::links(&surveyed, &graph, &compared),
        pods: facts::pods(&surveyed, &graph, &compared),
        damaged: facts::damaged(&surveyed),
        host: facts::host(&surveyed),
        no_match: (!(selection.is_everything() || has_pods)).then(|| selection.to_string()),
        ..empty_sight()
    };
    let mut cut_off: Vec<Problem> = surveyed.cut_off().collect();
    for (matched, pod) in surveyed.matched.iter().zip(&compared.pods) {
        match &pod.verdict {
            PodVerdict::Unknown(problem) => unknown.push(problem.clone()),
            PodVerdict::CutOff { what, .. } => {
                cut_off.push(what.problem().of(&matched.info.id));
            }
            PodVerdict::InSync | PodVerdict::Drifted | PodVerdict::Lost(_) => {}
        }
    }
    Ok(GuardObservation {
        unknown,
        cut_off,
        sight,
        surveyed,
    })
}

/// Whether a record could not be read or a namespace not be entered, which another look may do. A corrupt record stays so: `check`
/// reports it.
fn is_unread(problem: &Problem) -> bool {
    match &*problem.cause {
        Cause::Store(cause) => matches!(cause, StoreCause::CannotRead { .. }),
        Cause::Inventory(cause) => matches!(
            cause,
            InventoryCause::CannotObserve { .. }
                | InventoryCause::CannotOpenNetns { .. }
                | InventoryCause::CannotEnterNetns { .. }
        ),
        _ => false,
    }
}

/// A damaged file keeps nobody still.
fn hold(store: &Store) -> Option<HoldSight> {
    let hold = store.load_hold().ok().flatten()?;
    let left = clock::milliseconds(hold.left());
    let until = hold.until;
    Some(HoldSight { until, left })
}

/// Closes a window in which nobody is at work any more: what it left is restored like any other loss.
fn close_deserted(store: &Store) -> Result<Vec<Problem>, Refusal> {
    let is_left = |window: &Window| !window.is_unplanned() && is_deserted(window);
    let deserted = || Ok::<_, StoreError>(store.open_window()?.filter(is_left));
    if hold(store).is_some() || deserted()?.is_none() {
        return Ok(Vec::new());
    }
    let guard = store.clone().patient(FOREVER, |_| {}).lock("guard")?;
    let closed = deserted()?.map(|window| {
        let session = WindowSession::take_over(window, guard, false, DEFAULT_LIMIT);
        finish_abandoned(session, GUARD)
    });
    Ok(closed.unwrap_or_default())
}

fn open_window(store: &Store) -> Result<Option<WindowSight>, Refusal> {
    let open = store.open_window()?;
    Ok(open.map(|window| {
        if window.is_unplanned() && !is_owner_alive(&window) {
            WindowSight::Unfinished
        } else {
            WindowSight::Of(window.command)
        }
    }))
}

impl GuardObservation {
    /// Asks the runtimes, beside the restore's own look, which of the wanted pods they have no more or are tearing down.
    fn torn(
        &self,
        decided: &Decided,
        runtimes: &RuntimeConfig,
    ) -> Option<Receiver<BTreeSet<PodId>>> {
        let GuardDecision::Restore(wanted) = &decided.decision else {
            return None;
        };
        let both = self.sight.pods.iter().zip(&self.surveyed.matched);
        let asked = both.filter(|(pod, one)| wanted.has(pod) && one.info.sandbox.is_some());
        let asked: Vec<PodInfo> = asked.map(|(_, one)| one.info.clone()).collect();
        let (sender, torn) = channel();
        let runtimes = runtimes.clone();
        let thread = thread::Builder::new();
        let spawned = (!asked.is_empty()).then(|| {
            thread.spawn(move || {
                let asked: Vec<&PodInfo> = asked.iter().collect();
                // Fails where the receiver waits no longer.
                let _ = sender.send(torn_down(&asked, &runtimes));
            })
        });
        spawned?.ok().map(|_| torn)
    }

    /// The loss as a window has it.
    fn loss(&self, wanted: &Wanted, record: &GuardRecord, request: &GuardRequest) -> UnplannedLoss {
        let of_links = wanted
            .lost
            .iter()
            .filter_map(|name| request.losses.get(name));
        let both = self.sight.pods.iter().zip(&self.surveyed.matched);
        let both = both.filter(|(pod, _)| wanted.has(pod));
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
            pods,
            stayed: self.stayed(&record.settled),
            logged: request.logged,
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
        let is_wanted = |one: &&Matched| {
            let pods = wanted.pods.as_ref();
            pods.is_none_or(|pods| pods.contains(&one.info.id))
        };
        let pods = || surveyed.matched.iter().filter(is_wanted);
        let inodes = pods().map(|one| one.pod.identity.inode);
        if wanted.pods.is_some() || !wanted.without.is_empty() {
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
