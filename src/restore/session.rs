//! A restore from its begin to its end.
//!
//! [`in_order`] has the order of its steps. [`carry_out`] begins again where the parents of the pods' links were lost meanwhile,
//! and [`run`] watches afterwards whether anything is lost again.

use std::collections::BTreeSet;
use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use crate::context::Pending;
use crate::journal;
use crate::kernel::Error;
use crate::matching::NetnsKey;
use crate::model::Problem;
use crate::model::problem::RestoreCause;
use crate::plan::{HostLinks, Step};
use crate::progress::{Listener, Phase, Progress, Wait};
use crate::records::prepare::{Request, prepare};
use crate::records::rejected::name_successors;
use crate::records::survey::{Lost, Surveyed, settle_bare};
use crate::refusal::Refusal;
use crate::restore::conflict::announce::announce;
use crate::restore::conflict::holders;
use crate::restore::conflict::probe::Search;
use crate::restore::facts::{Limits, RestoreState, Restored, RestoredPod};
use crate::restore::host::links::HostJob;
use crate::restore::host::scope::ParentChange;
use crate::restore::host::wait_nic::WaitLimit;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::PodJob;
use crate::restore::pods::{batch, devices, round};
use crate::restore::settle::{AGAIN, LossWatch, Settle};
use crate::restore::turns::Turn;
use crate::runtime;
use crate::side_by_side;
use crate::store::Store;

/// Restores under the lock: a snapshot must not record a network that is half restored. Then watches for `limits.settle`.
pub(crate) fn run(
    request: &Request,
    limits: Limits,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let guard = store.exists().then(|| store.lock("restore")).transpose()?;
    let permit = guard
        .as_ref()
        .map_or(Permit::NoStateDirectory, Permit::locked);
    let limit = WaitLimit::new(limits, None);
    let restored = carry_out(request, limit, permit, store, progress)?;
    if limits.settle.is_zero() || restored.host.is_none() {
        return Ok(restored);
    }
    settle(restored, (request, limits), permit, store, progress)
}

/// Restores. Where the parents of the pods' links were lost again meanwhile, it begins again: a driver may reset twice.
pub(crate) fn carry_out(
    request: &Request,
    limit: WaitLimit<'_>,
    permit: Permit<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let (mut restored, mut parents) = once(request, limit, permit, store, progress)?;
    let mut times = 1;
    while parents != ParentChange::Same && times <= AGAIN {
        let (again, now) = once(request, limit, permit, store, progress)?;
        let problem = again.lost_again_after(&restored, parents == ParentChange::Lost);
        restored = restored.then(again);
        restored.problems.extend(problem);
        parents = now;
        times += 1;
    }
    if parents != ParentChange::Same {
        let problem = RestoreCause::Unsettled { times }.error("host");
        restored.problems.push(problem);
    }
    Ok(restored)
}

/// Surveys and restores once. Without a record that may be used here, nothing is changed.
fn once(
    request: &Request,
    limit: WaitLimit<'_>,
    permit: Permit<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<(Restored, ParentChange), Refusal> {
    let runtimes = &request.runtimes;
    let surveyed = prepare(request.clone(), store)?;
    if surveyed.matched.is_empty() {
        let restored = sum_up(surveyed, None, Vec::new(), Vec::new(), runtimes);
        return Ok((restored, ParentChange::Same));
    }
    in_order(surveyed, limit, permit, runtimes, progress).map_err(|error| {
        let error = error.to_string();
        Refusal::failed(RestoreCause::HostFailed { error }.error("host"))
    })
}

/// The order of a restore.
fn in_order(
    mut surveyed: Surveyed,
    limit: WaitLimit<'_>,
    permit: Permit<'_>,
    runtimes: &runtime::Config,
    progress: &mut dyn Listener,
) -> Result<(Restored, ParentChange), Error> {
    let matched = mem::take(&mut surveyed.matched);
    let mut pods: Vec<PodJob> = matched.into_iter().map(PodJob::new).collect();
    let recorded = pods.iter().map(|pod| pod.matched.pod.netns.key()).collect();
    let mut host = HostJob::new(&mut surveyed.host, &mut surveyed.baseline, limit, permit);
    let mut pending = Pending::default();
    // A bond without ports takes over the MAC of its next port, unless its own MAC was set before that.
    host.keep_bond_macs()?;
    // The network managers are queried while the NIC is awaited.
    progress.notice(host.waiting(Wait::Device));
    host.managed.query();
    // Devices that were inside pods return to the host with their driver: these are awaited too.
    let inside = devices::lost(&mut pods, host.host);
    // The NIC returns, and gets its final name from udev.
    let mut notes = host.wait_for_devices(&inside)?;
    // The host's links under the pods. What their owners bring back is left to the owners.
    progress.notice(Progress::Phase(Phase::RestoringHost, 1));
    let links = host.restore(progress)?;
    let parents = host.parents();
    // The pods take turns: those that need little come first, and none delays the others.
    for turn in Turn::all(limit.pod_budget) {
        let mut taken = turn.take(&mut pods);
        if taken.is_empty() && turn != Turn::Small {
            continue;
        }
        progress.notice(Progress::Phase(Phase::RestoringPods, taken.len()));
        // Read what each pod of the turn lacks.
        batch::survey(&mut taken, turn, host.host, &links, limit.conflict_probe);
        // Probe the addresses to restore. Pods do not get those that another machine or pod has.
        notes.extend(probe(
            &mut taken, turn, &recorded, &mut host, &links, progress,
        )?);
        // Create the missing links, and work inside each pod in rounds: observe, plan, apply.
        batch::restore(&mut taken, turn, host.host, &links, permit, progress)?;
        // The NIC gets carrier, which is awaited once; then the steps that need it.
        notes.extend(host.wait_for_carrier(&links, progress)?);
        taken.retain(|pod| !pod.is_late());
        finish_with_carrier(&mut taken, &mut host, &links, progress)?;
        // Switches and neighbours learn the new places of the addresses.
        notes.extend(announce(&mut taken, host.host, permit, &mut pending));
    }
    pods.sort_by(|a, b| a.id().cmp(b.id()));
    // What the host lost while the pods were restored.
    host.restore_again(progress)?;
    notes.extend(host.findings());
    // A conflict about a MAC names both sides.
    holders::find_mac_owners(&mut pods, host.host);
    // Sum up: the caller begins again if the parents of the pods' links are other ones now.
    let parents = ParentChange::compare(&parents, &host.parents());
    let (host, mut problems) = host.finish();
    problems.extend(notes);
    let pods = side_by_side::map(pods, PodJob::finish);
    let restored = Restored {
        pending,
        ..sum_up(surveyed, Some(host), pods, problems, runtimes)
    };
    Ok((restored, parents))
}

/// Probes the addresses that pods are to get. Creates the links while the probes are under way; without probes they are created
/// later, while there is work in other pods. `recorded` are the namespaces of all pods with a record.
fn probe(
    pods: &mut [&mut PodJob],
    turn: Turn,
    recorded: &BTreeSet<NetnsKey>,
    host: &mut HostJob<'_>,
    links: &HostLinks,
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    let Some(mut search) = Search::of(pods, host.host, host.limit.conflict_probe) else {
        return Ok(Vec::new());
    };
    if search.has_carrier(host.host) {
        search.start(host.host);
    }
    batch::create(pods, turn, host.host, host.permit)?;
    let mut notes = Vec::new();
    if !search.is_started() {
        // A probe without carrier reaches no other machine.
        notes.extend(host.wait_for_carrier(links, progress)?);
        search.start(host.host);
    }
    notes.extend(search.finish(pods, host.host, recorded));
    Ok(notes)
}

/// The steps that had to wait for carrier. Carrier spreads from the NIC to VLANs and macvlans by separate events, which
/// takes a moment.
fn finish_with_carrier(
    pods: &mut [&mut PodJob],
    host: &mut HostJob<'_>,
    links: &HostLinks,
    progress: &mut dyn Listener,
) -> Result<(), Error> {
    const MOMENT: Duration = Duration::from_secs(2);
    const PAUSE: Duration = Duration::from_millis(50);
    let deadline = Instant::now() + MOMENT;
    loop {
        if host.waits() {
            host.host.refresh()?;
            host.restore(progress)?;
        }
        for pod in pods.iter_mut() {
            pod.reopen();
        }
        batch::visit(pods, None, |pod| {
            round::observe(pod, host.host, links);
            round::work(pod, host.host, links, host.permit);
            pod.close();
        });
        if !(host.waits() || pods.iter().any(|pod| pod.waits())) || Instant::now() > deadline {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
}

/// The facts, with the pods that were not worked on. `problems` are those of the host, `pods` have their own.
fn sum_up(
    mut surveyed: Surveyed,
    host: Option<(Vec<Step>, RestoreState)>,
    pods: Vec<(RestoredPod, Vec<Problem>)>,
    mut problems: Vec<Problem>,
    runtimes: &runtime::Config,
) -> Restored {
    let is_refused = host.is_none() && surveyed.is_refused();
    let (mut pods, left): (Vec<_>, Vec<_>) = pods.into_iter().unzip();
    problems.extend(left.into_iter().flatten());
    problems.extend(name_successors(&mut surveyed.rejected, runtimes));
    let known: Vec<_> = pods.iter().map(|one| &one.pod.info).collect();
    settle_bare(&mut surveyed.unmatched, &known, runtimes);
    problems.splice(..0, surveyed.all_problems());
    pods.extend(
        surveyed
            .lost_pods()
            .into_iter()
            .map(|(pod, lost)| RestoredPod {
                pod,
                state: match lost {
                    Lost::Unusable => RestoreState::Failed,
                    Lost::NoCheckpoint => RestoreState::NoCheckpoint,
                },
                before: None,
                after: None,
                done: Vec::new(),
            }),
    );
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
    Restored {
        recorded: surveyed.node_state.map(|recorded| recorded.created),
        node: surveyed.node,
        host,
        pods,
        problems,
        is_refused,
        was_complete: false,
        pending: Pending::default(),
    }
}

/// Watches for `limits.settle`, restores what is lost again, and observes everything a last time.
fn settle(
    first: Restored,
    (request, limits): (&Request, Limits),
    permit: Permit<'_>,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let mut watch = LossWatch::start(&first.pods);
    let (mut restored, mut notes) = (first, Vec::new());
    let mut time = Settle::begin(limits.settle, limits.manager_grace);
    journal::watches(limits.settle);
    progress.notice(Progress::Waiting(Wait::Loss, Vec::new(), limits.settle));
    while watch.has_losses(&mut time, &|| false) {
        let limit = WaitLimit::new(limits, None);
        let again = carry_out(request, limit, permit, store, progress)?;
        if let Some(problem) = again.lost_again_after(&restored, false) {
            notes.push(problem);
            time.note_loss();
        }
        restored = restored.then(again);
        progress.notice(Progress::Waiting(Wait::Loss, Vec::new(), time.left()));
    }
    let at_once = Limits {
        wait: Duration::ZERO,
        ..limits
    };
    let limit = WaitLimit::new(at_once, None);
    let last = carry_out(request, limit, permit, store, progress)?;
    notes.extend(last.lost_again_after(&restored, false));
    restored = restored.then(last);
    restored.problems.extend(notes);
    Ok(restored)
}
