//! A restore from its begin to its end.
//!
//! [`in_order`] has the order of its steps. [`carry_out`] begins again where the parents of the pods' links were lost meanwhile,
//! and [`run`] watches afterwards whether anything is lost again.

use std::mem;

use crate::context::Pending;
use crate::kernel::Error;
use crate::model::problem::RestoreCause;
use crate::model::window::LostSetting;
use crate::model::{Address, HostSide, Problem};
use crate::plan::AwaitedEvent;
use crate::progress::{Listener, Progress, Stage, Wait};
use crate::records::fallback::Fallback;
use crate::records::prepare::{SurveyRequest, prepare_with};
use crate::records::stored::shown;
use crate::records::survey::Surveyed;
use crate::refusal::Refusal;
use crate::restore::apply;
use crate::restore::conflict::announce::announce;
use crate::restore::conflict::detection::Detection;
use crate::restore::conflict::holders;
use crate::restore::conflict::pace::Pace;
use crate::restore::conflict::probe::Probing;
use crate::restore::course::{Course, Removal};
use crate::restore::facts::{DeviceFaults, Limits, Restored, RestoredPod};
use crate::restore::host::links::{HostDone, HostJob};
use crate::restore::host::scope::ParentChange;
use crate::restore::host::wait_nic::WaitLimit;
use crate::restore::permit::Permit;
use crate::restore::pods::pod::PodJob;
use crate::restore::pods::probed::{self, Scene};
use crate::restore::pods::{batch, round};
use crate::restore::settle::{AGAIN, settle};
use crate::restore::sockets;
use crate::restore::turns::Turn;
use crate::runtime::RuntimeConfig;
use crate::side_by_side;
use crate::situation::refused_of_host;
use crate::store::Store;

/// Restores under the lock: a snapshot must not record a network that is half restored.
pub(crate) fn run(
    request: &SurveyRequest,
    limits: Limits,
    store: &Store,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let guard = store.exists().then(|| store.lock("restore")).transpose()?;
    let permit = guard
        .as_ref()
        .map_or(Permit::NoStateDirectory, Permit::locked);
    let mut course = Course::default();
    let limit = WaitLimit::new(limits, None);
    // The kernel's own probe of an address takes one to two seconds.
    let detected = |mut restored: Restored| {
        let found = restored.end_detection();
        restored.problems.extend(found);
        restored
    };
    let restored = carry_out(request, limit, permit, store, &mut course, progress)?;
    let mut restored = detected(restored);
    if restored.host.is_none() {
        return Ok(restored);
    }
    if !limits.settle.is_zero() {
        // Watch whether anything is lost again.
        course.is_watch = true;
        let mut last = settle(restored, limits, progress, |limit, progress| {
            carry_out(request, limit, permit, store, &mut course, progress)
        })?;
        last.problems.extend(course.problems());
        restored = detected(last);
    }
    restored.problems.extend(sockets::find_dead(store));
    Ok(restored)
}

/// Restores. Where the parents of the pods' links were lost again meanwhile, it begins again: a driver may reset twice.
pub(crate) fn carry_out(
    request: &SurveyRequest,
    limit: WaitLimit<'_>,
    permit: Permit<'_>,
    store: &Store,
    course: &mut Course,
    progress: &mut dyn Listener,
) -> Result<Restored, Refusal> {
    let mut attempt = |fallback: Fallback, progress: &mut dyn Listener| {
        let surveyed = prepare_with(request, fallback, &course.recovered, store)?;
        let matched = surveyed.matched.iter();
        let from_elsewhere = matched.filter(|one| one.is_from_elsewhere());
        let recovered = from_elsewhere.map(|one| one.pod.netns.key());
        course.recovered.extend(recovered);
        once(surveyed, &request.runtimes, limit, permit, course, progress)
    };
    let mut fallback = request.fallback.before_queries();
    let Attempt {
        mut restored,
        mut parents,
        is_in_cache,
    } = attempt(fallback, progress)?;
    if is_in_cache {
        // Now that no other pod waits for the answer of a runtime.
        fallback = request.fallback;
        let late = attempt(fallback, progress)?;
        restored = restored.completed_by(late.restored);
        parents = late.parents;
    }
    let mut times = 1;
    while parents != ParentChange::Same && times <= AGAIN {
        let again = attempt(fallback, progress)?;
        let problems = again
            .restored
            .lost_again_after(&restored, parents == ParentChange::Lost);
        restored = restored.then(again.restored);
        restored.problems.extend(problems);
        parents = again.parents;
        times += 1;
    }
    if parents != ParentChange::Same {
        let problem = RestoreCause::Unsettled { times }.error("host");
        restored.problems.push(problem);
    }
    course.complete(&mut restored);
    Ok(restored)
}

/// One survey and restore.
struct Attempt {
    restored: Restored,
    /// How the parents of the pods' links changed meanwhile.
    parents: ParentChange,
    /// Whether libcni's cache, which was not used, has a pod that has lost everything.
    is_in_cache: bool,
}

/// Restores what was surveyed.
fn once(
    mut surveyed: Surveyed,
    runtimes: &RuntimeConfig,
    limit: WaitLimit<'_>,
    permit: Permit<'_>,
    course: &mut Course,
    progress: &mut dyn Listener,
) -> Result<Attempt, Refusal> {
    let has_left = course.leave_out(&mut surveyed);
    let has_work = has_left || surveyed.has_work();
    let pods = PodJob::all(mem::take(&mut surveyed.matched));
    // Without a record that may be used here, nothing is changed.
    let mut done = if has_work {
        let done = in_order(
            &mut surveyed,
            pods,
            (limit, permit),
            runtimes,
            course,
            progress,
        );
        done.map_err(|error| {
            let error = error.to_string();
            Refusal::failed(RestoreCause::HostFailed { error }.error("host"))
        })?
    } else {
        Done::default()
    };
    // Find the pods without a record that are cut off, and the programs that lost what no restore brings back.
    course.find_cut_off(&mut surveyed, &done.pods);
    let recorded = surveyed.node_state.as_ref();
    let recorded = recorded.map(|recorded| &recorded.state);
    let lost = sockets::find_lost(&mut done.pods, &surveyed.host, recorded);
    done.notes.extend(lost);
    Ok(Attempt {
        parents: done.parents,
        is_in_cache: surveyed.is_in_cache,
        restored: sum_up(surveyed, done, runtimes),
    })
}

/// What the steps of a restore did.
#[derive(Default)]
struct Done {
    /// `None` if nothing was worked on.
    host: Option<HostDone>,
    pods: Vec<PodJob>,
    /// The settings of the host's NICs that were lost.
    settings: Vec<LostSetting>,
    devices: DeviceFaults,
    /// The problems beside those of the host and of each pod.
    notes: Vec<Problem>,
    /// What is still under way: the second announcements.
    pending: Pending,
    /// The host's addresses that the kernel still probes.
    detecting: Vec<Address>,
    /// How the parents of the pods' links changed meanwhile.
    parents: ParentChange,
}

/// The order of a restore.
fn in_order(
    surveyed: &mut Surveyed,
    mut pods: Vec<PodJob>,
    (limit, permit): (WaitLimit<'_>, Permit<'_>),
    runtimes: &RuntimeConfig,
    course: &mut Course,
    progress: &mut dyn Listener,
) -> Result<Done, Error> {
    let recorded = pods.iter().map(|pod| pod.matched.pod.netns.key()).collect();
    let node = surveyed.node_state.as_ref();
    let mut host = HostJob::new(&mut surveyed.host, &mut surveyed.baseline, limit, permit);
    let mut pending = Pending::default();
    course.begin(&host.host.state, || host.parents());
    // Give each bond its MAC back: without ports it would take over that of its next port.
    host.keep_bond_macs()?;
    // Wait until the NIC is back under its final name and with its ifindex, and the devices that were inside pods too.
    progress.notice(host.waiting(Wait::Device));
    host.managed.query();
    let inside = batch::lost_devices(&mut pods, host.host);
    let mut notes = host.wait_for_devices(&inside, progress)?;
    // Restore the host's links under the pods. What their owners bring back is left to the owners.
    progress.notice(Progress::Phase(Stage::RestoringHost, 1));
    let (links, parents) = (host.restore(progress)?, host.parents());
    let mut scene = Scene {
        probing: Probing {
            pace: Pace::new(limit.limits.probe_rate, 0, false),
            proxies: node.map_or(&[], |node| &node.proxies),
        },
        recorded: &recorded,
        links: &links,
    };
    // Restore the pods, and the host's addresses beside them.
    notes.extend(in_turns(
        &mut pods,
        &mut scene,
        (course, runtimes),
        &mut host,
        &mut pending,
        progress,
    )?);
    // Restore what the host lost meanwhile, once Open vSwitch has its ports, and its addresses on links that got carrier late.
    notes.extend(host.wait_for_switches(progress)?);
    host.restore_again(progress)?;
    notes.extend(probed::finish_host(scene, &mut host, progress)?);
    notes.extend(host.findings());
    // Find both sides of each conflict about a MAC. The caller begins again if parents were lost meanwhile.
    holders::find_mac_owners(&mut pods, host.host);
    let parents = course.end(&host.host.state, &parents, host.parents());
    pods.retain(|pod| pod.removal != Removal::Known);
    Ok(Done {
        detecting: host.detecting(),
        settings: host.settings(),
        devices: host.devices(),
        host: Some(host.finish()),
        pods,
        notes,
        pending,
        parents,
    })
}

/// Restores the pods in turns: those that need little come first, and none delays the others.
fn in_turns(
    pods: &mut [PodJob],
    scene: &mut Scene<'_>,
    (course, runtimes): (&mut Course, &RuntimeConfig),
    host: &mut HostJob<'_>,
    pending: &mut Pending,
    progress: &mut dyn Listener,
) -> Result<Vec<Problem>, Error> {
    let (links, limits) = (scene.links, host.limit.limits);
    let mut notes = Vec::new();
    for turn in Turn::all(limits.pod_budget) {
        let mut taken = turn.take(pods);
        if taken.is_empty() && turn != Turn::Small {
            continue;
        }
        progress.notice(Progress::Phase(Stage::RestoringPods, taken.len()));
        Course::wait(&taken);
        // Read what each pod lacks.
        batch::visit(&mut taken, turn.limit(), |pod| {
            round::spare(pod, host.host, limits)?;
            pod.matched.find_daemons();
            round::survey(pod, host.host, links, limits.conflict_probe)
        });
        // Change nothing in a pod that its runtime is tearing down.
        course.leave_torn(&mut taken, host.host, links, runtimes);
        *scene = scene.paced(&taken, host);
        // Probe the lost addresses, create the missing links, and observe, plan and apply inside each pod in rounds.
        notes.extend(probed::restore(&mut taken, turn, *scene, host, progress)?);
        // Wait for carrier, once in a restore, and carry out the steps that need it.
        notes.extend(host.wait_for_carrier(links, progress)?);
        probed::await_event(AwaitedEvent::Carrier, &mut taken, host, links, progress)?;
        // Announce the addresses to switches and neighbours.
        let announced = announce(
            &mut taken,
            host.host,
            scene.probing.pace,
            host.permit,
            pending,
        );
        notes.extend(announced);
    }
    // Wait for what routers bring, once all that netfix can restore is there.
    let mut all: Vec<&mut PodJob> = pods.iter_mut().collect();
    probed::await_event(AwaitedEvent::Router, &mut all, host, links, progress)?;
    Ok(notes)
}

/// The facts, with the pods that were not worked on.
fn sum_up(mut surveyed: Surveyed, mut done: Done, runtimes: &RuntimeConfig) -> Restored {
    let is_refused = done.host.is_none() && surveyed.is_refused();
    let (host, of_host) = done.host.unzip();
    let of_ways = host.as_ref().and_then(|_| refused_of_host(&surveyed));
    let (mut pods, mut of_pods, mut detecting) = (Vec::new(), Vec::new(), Vec::new());
    let host_side = HostSide::new(&surveyed.host.state);
    let refused = batch::refused(&mut done.pods);
    let left = |(one, refused): (&mut PodJob, _)| {
        let view = one.view();
        let cut_off = view.and_then(|view| one.matched.cut_off(&view.state, &host_side));
        let below = one.matched.lost_on_host(&host_side);
        (below.or(refused), cut_off)
    };
    let left: Vec<_> = done.pods.iter_mut().zip(refused).map(left).collect();
    let mut settings = done.settings;
    settings.extend(done.pods.iter().flat_map(|pod| {
        let last = pod.view().map(|view| &view.plan);
        apply::outcomes(Some(pod.id()), &pod.done, last)
    }));
    let finished = side_by_side::map(done.pods, PodJob::finish).into_iter();
    for ((mut pod, problems, unfinished), (lost, cut_off)) in finished.zip(left) {
        of_pods.extend(pod.still_lacks(lost, cut_off));
        pods.push(pod);
        of_pods.extend(problems);
        detecting.extend(unfinished);
    }
    let restored: Vec<_> = pods.iter().map(|one: &RestoredPod| &one.pod.info).collect();
    let of_runtimes = surveyed.learn_from_runtimes(&restored, runtimes);
    let mut problems = surveyed.all_problems();
    problems.extend(
        of_host
            .into_iter()
            .flatten()
            .chain(of_ways)
            .chain(done.notes),
    );
    problems.extend(of_pods.into_iter().chain(of_runtimes));
    let unrestorable = surveyed.lost_pods().into_iter();
    pods.extend(unrestorable.map(|(pod, why)| RestoredPod::untouched(pod, why)));
    pods.sort_by(|a, b| a.pod.info.id.cmp(&b.pod.info.id));
    Restored {
        gone: surveyed.gone_pods().cloned().collect(),
        recorded: surveyed.node_state.map(|recorded| shown(&recorded.stamp())),
        node: surveyed.node,
        is_selection: surveyed.is_selection,
        host,
        pods,
        settings,
        devices: done.devices,
        problems,
        devices_lost: surveyed.baseline.lost,
        is_refused,
        was_complete: false,
        pending: done.pending,
        detection: Detection::new(done.detecting, detecting),
    }
}
