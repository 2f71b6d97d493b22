//! Before the first change: could netfix restore every pod, and is everything saved?

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use crate::check::{self, Check};
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::look::Look;
use crate::inventory::procfs;
use crate::model::net::stack;
use crate::model::problem::{Cause, WindowCause};
use crate::model::window::{Run, WindowPod};
use crate::model::{Code, IfName, NodeState, Problem, Window};
use crate::progress::Listener;
use crate::records::stored::{Stored, load, load_node};
use crate::refusal::Refusal;
use crate::restore::Restored;
use crate::runtime::RuntimeConfig;
use crate::snapshot::{Captured, PodSnapshot, SECOND_LOOK, SnapshotState, capture};
use crate::store::Guard;
use crate::upgrade::driver::panicked;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::network;
use crate::upgrade::{Request, rebuild_watch};

/// What was true before the window, in memory: a restore from here needs no disk.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    pub stored: Stored,
    pub node: Option<NodeState>,
    /// Gateways that did not answer.
    pub silent: Vec<Problem>,
    /// The sockets of the runtimes that answered.
    pub runtimes: Vec<PathBuf>,
}

impl Baseline {
    /// The devices of the host at the bottom of the pods' links.
    pub(crate) fn devices(&self) -> BTreeSet<IfName> {
        let checkpoints = self.stored.checkpoints.iter();
        let extensions = checkpoints.filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        let devices = extensions.flat_map(|extension| stack::devices(&extension.stack));
        devices.cloned().collect()
    }
}

/// Reads the files of the interrupted window: in the middle of a loss netfix takes no snapshot.
pub(crate) fn recover(
    window: &Window,
    request: &Request<'_>,
    context: &Context,
) -> Result<Baseline, Refusal> {
    // COMMAND may have outlived its netfix: two at once would upgrade the driver twice.
    let alive = |run: Option<&Run>| {
        let process = run.and_then(|run| run.process);
        process.filter(procfs::is_alive).map(|process| process.pid)
    };
    let rollback = window.rollback.as_ref().map(|rollback| &rollback.run);
    let cause = match (alive(window.run.as_ref()), alive(rollback)) {
        (Some(pid), _) => WindowCause::CommandStillRuns { pid },
        (None, Some(pid)) => WindowCause::RollbackStillRuns { pid },
        (None, None) => {
            let mut baseline = read_back(request, context)?;
            baseline.silent = network::silent_before(window);
            return Ok(baseline);
        }
    };
    Err(cause.error(window.id.clone()).into())
}

/// Reads everything that a restore needs.
pub(crate) fn read_back(request: &Request<'_>, context: &Context) -> Result<Baseline, Refusal> {
    let stored = load(&context.store, &request.selection)?;
    let mut problems = Vec::new();
    let node = load_node(&context.store, &mut problems);
    problems.retain(Problem::is_error);
    if !problems.is_empty() {
        return Err(problems.into());
    }
    Ok(Baseline {
        stored,
        node,
        ..Baseline::default()
    })
}

/// What one look at the machine found before the first change.
pub(crate) struct Seen {
    /// What a restore could not put back, and what the snapshot does not cure.
    pub blockers: Vec<Problem>,
    pub left_out: LeftOut,
    /// The snapshot, not written yet.
    pub captured: Captured,
    /// The pods, which are not read again.
    pub inventory: Inventory,
}

/// Looks at the machine, and once more where what a pod has lost may be gone a moment later. What cannot be queried or written is
/// an error: --force does not help there.
pub(crate) fn look(request: &Request<'_>, context: &mut Context) -> Result<Seen, Refusal> {
    let mut looks = 0;
    loop {
        let seen = look_and_check(request, context, &mut looks)?;
        if looks > 1 || !seen.captured.has_degraded() {
            return Ok(seen);
        }
        thread::sleep(SECOND_LOOK);
    }
}

/// The same, as often as the check needs it; counts the looks.
fn look_and_check(
    request: &Request<'_>,
    context: &mut Context,
    looks: &mut usize,
) -> Result<Seen, Refusal> {
    let Context {
        store, progress, ..
    } = context;
    let check = Check {
        selection: &request.selection,
        runtimes: &request.runtimes,
        max_age: Duration::MAX,
        devices: &request.devices,
    };
    let mut last = None;
    let look = |progress: &mut dyn Listener| {
        *looks += 1;
        let mut look = Look::take(check.selection, check.runtimes, store, progress)?;
        look.keep();
        let copy = look.inventory.closed_copy();
        last = Some(look);
        copy
    };
    let checked = check::run_with(&check, store, progress.as_mut(), look)?;
    let mut blockers = checked.problems;
    blockers.retain(|problem| problem.is_error() && !is_cured(problem));
    let is_final =
        |problem: &Problem| is_unknown(problem) || is_of_disk(problem) || is_of_device(problem);
    if let Some(at) = blockers.iter().position(is_final) {
        return Err(blockers.swap_remove(at).into());
    }
    let Some(look) = last else {
        return Err(panicked().into());
    };
    let (captured, inventory) = capture(look, check.selection, store);
    Ok(Seen {
        blockers,
        left_out: LeftOut::new(checked.left_out),
        captured,
        inventory,
    })
}

/// The problems of the snapshot that the check has not found.
pub(crate) fn others_than(known: &[Problem], mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.retain(|problem| !known.contains(problem));
    problems
}

fn is_unknown(problem: &Problem) -> bool {
    matches!(
        problem.code(),
        Code::RuntimeUnreachable | Code::Unreadable | Code::PermissionDenied
    )
}

fn is_claim(problem: &Problem) -> bool {
    matches!(&*problem.cause, Cause::Conflict(cause) if cause.is_claim())
}

fn is_of_disk(problem: &Problem) -> bool {
    matches!(problem.code(), Code::NoSpace | Code::Unwritable)
}

fn is_of_device(problem: &Problem) -> bool {
    let cause = &*problem.cause;
    matches!(
        cause,
        Cause::Window(WindowCause::NoSuchDevice | WindowCause::NoPodOnDevice)
    )
}

/// Whether the snapshot that follows removes it, or the restore.
fn is_cured(problem: &Problem) -> bool {
    matches!(
        problem.code(),
        Code::CheckpointMissing
            | Code::CheckpointStale
            | Code::CheckpointCorrupt
            | Code::OtherBoot
            | Code::OtherMachine
            | Code::NetnsGone
            | Code::NetnsReplaced
            | Code::PodReplaced
            | Code::Drift
            | Code::Degraded
            | Code::WindowOpen
    )
}

/// Writes the snapshot under the window's lock, or without a lock nothing; returns what a restore starts from, the pods and the
/// problems that stand against the window.
pub(crate) fn write_snapshot(
    captured: Captured,
    guard: Option<&Guard>,
    request: &Request<'_>,
    left_out: &LeftOut,
    progress: &mut dyn Listener,
) -> (Restored, Vec<WindowPod>, Vec<Problem>) {
    let taken = match guard {
        Some(guard) => captured.write(guard, request.keep, progress),
        None => captured.unwritten(),
    };
    let mut blockers = taken.problems;
    // The restore of this window repairs a degraded pod.
    blockers.retain(|problem| problem.is_error() && problem.code() != Code::Degraded);
    blockers.retain(|problem| !left_out.is_about(problem));
    let recorded =
        |one: &PodSnapshot| one.state != SnapshotState::Empty && !left_out.has(&one.pod.info.id);
    let pods = taken.pods.into_iter().filter(recorded).map(pod).collect();
    let restored = Restored {
        node: taken.node,
        recorded: taken.recorded,
        ..Restored::default()
    };
    (restored, pods, blockers)
}

/// Queries the runtimes for what shows a rebuild, and notes it for each pod; returns their sockets.
pub(crate) fn note_fingerprints(
    pods: &mut [WindowPod],
    request: &Request<'_>,
) -> Result<Vec<PathBuf>, Refusal> {
    Ok(rebuild_watch::before(
        pods,
        &with_containers(&request.runtimes),
    )?)
}

/// A rebuild shows in the containers too.
pub(crate) fn with_containers(config: &RuntimeConfig) -> RuntimeConfig {
    RuntimeConfig {
        containers: true,
        ..config.clone()
    }
}

fn pod(PodSnapshot { pod, .. }: PodSnapshot) -> WindowPod {
    WindowPod {
        info: pod.info,
        before: pod.interfaces,
        after: None,
        state: None,
        steps: 0,
        lost: None,
        answered: None,
        gateways: Vec::new(),
        targets: Vec::new(),
        fingerprint_before: None,
        fingerprint_after: None,
        rebuilt: None,
    }
}

/// Stops the window for an object that netfix could not restore, unless --force accepts it; then that is a warning. What several
/// pods claim stops nothing: with an address of its neighbours a pod could prevent every window.
pub(crate) fn gate(blockers: Vec<Problem>, force: bool) -> Result<Vec<Problem>, Refusal> {
    if let Some(problem) = blockers.iter().find(|problem| is_of_disk(problem)) {
        return Err(problem.clone().into());
    }
    let stops = |problem: &&Problem| !is_claim(problem);
    let problems = blockers.iter().filter(stops).count();
    if force || problems == 0 {
        return Ok(blockers.into_iter().map(Problem::demoted).collect());
    }
    let cause = WindowCause::NotRestorable { problems };
    let mut problems = blockers;
    problems.push(cause.error("upgrade"));
    Err(problems.into())
}
