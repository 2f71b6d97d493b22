//! The check: could netfix restore every pod?

use std::thread;
use std::time::Duration;

use crate::check::{self, Check};
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::look::Look;
use crate::model::problem::{Cause, WindowCause};
use crate::model::{Code, Problem};
use crate::progress::Listener;
use crate::refusal::Refusal;
use crate::snapshot::{Captured, SECOND_LOOK, capture};
use crate::upgrade::baseline::LeftOut;
use crate::upgrade::request::UpgradeRequest;

/// What one observation of the machine found before the first change.
pub(crate) struct Preflight {
    /// What a restore could not put back, and what the snapshot does not cure.
    pub blockers: Blockers,
    pub left_out: LeftOut,
    /// The snapshot, not written yet.
    pub captured: Captured,
    /// The pods, which are not read again.
    pub inventory: Inventory,
}

/// Observes the machine, and once more where what a pod has lost may be gone a moment later. What cannot be queried or written
/// is an error: --force does not help there.
pub(crate) fn run(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preflight, Refusal> {
    let mut looks = 0;
    loop {
        let found = observe(request, context, &mut looks)?;
        if looks > 1 || !found.captured.has_degraded() {
            return Ok(found);
        }
        thread::sleep(SECOND_LOOK);
    }
}

/// Observes the machine as often as the check needs it; counts the observations.
fn observe(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
    looks: &mut usize,
) -> Result<Preflight, Refusal> {
    let Context {
        store, progress, ..
    } = context;
    let check = Check {
        selection: &request.selection,
        runtimes: &request.runtimes,
        max_age: Duration::MAX,
        // The snapshot of the window has what is new.
        max_new: Duration::MAX,
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
    let blockers = Blockers::of_check(checked.problems)?;
    let Some(look) = last else {
        return Err(WindowCause::Panicked.error("netfix").into());
    };
    let (captured, inventory) = capture(look, check.selection, &[], store);
    Ok(Preflight {
        blockers,
        left_out: LeftOut::new(checked.left_out),
        captured,
        inventory,
    })
}

/// What a problem means for a window that has not begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearing {
    /// The machine could not be queried, or nothing can be written: --force does not help.
    Final,
    /// A restore could not put this back: --force accepts it.
    Object,
    /// Several pods claim this. It stops nothing: with an address of its neighbours a pod could prevent every window.
    Claim,
    /// The snapshot that follows removes it, or the restore.
    Cured,
}

impl Bearing {
    fn of_check(problem: &Problem) -> Self {
        match (problem.code(), &*problem.cause) {
            (_, Cause::Conflict(cause)) if cause.is_claim() => Self::Claim,
            (_, Cause::Window(WindowCause::NoSuchDevice | WindowCause::NoPodOnDevice)) => {
                Self::Final
            }
            (
                Code::RuntimeUnreachable
                | Code::Unreadable
                | Code::PermissionDenied
                | Code::NoSpace
                | Code::Unwritable,
                _,
            ) => Self::Final,
            (
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
                | Code::WindowOpen,
                _,
            ) => Self::Cured,
            _ => Self::Object,
        }
    }

    fn of_snapshot(problem: &Problem) -> Self {
        match (problem.code(), &*problem.cause) {
            (_, Cause::Conflict(cause)) if cause.is_claim() => Self::Claim,
            (Code::NoSpace | Code::Unwritable, _) => Self::Final,
            // The restore of this window repairs a degraded pod.
            (Code::Degraded, _) => Self::Cured,
            _ => Self::Object,
        }
    }
}

/// The problems that stand against a window.
#[derive(Debug, Default)]
pub(crate) struct Blockers(Vec<(Bearing, Problem)>);

impl Blockers {
    /// Those of the check. One that is final stops the window at once, and alone.
    pub(crate) fn of_check(problems: Vec<Problem>) -> Result<Self, Refusal> {
        let mut blockers = Vec::new();
        for problem in problems.into_iter().filter(Problem::is_error) {
            match Bearing::of_check(&problem) {
                Bearing::Final => return Err(problem.into()),
                Bearing::Cured => {}
                bearing => blockers.push((bearing, problem)),
            }
        }
        Ok(Self(blockers))
    }

    /// Adds those of the snapshot that the check has not found.
    pub(crate) fn add_of_snapshot(&mut self, problems: Vec<Problem>) {
        let known = self.0.len();
        for problem in problems.into_iter().filter(Problem::is_error) {
            let bearing = Bearing::of_snapshot(&problem);
            let mut found = self.0[..known].iter();
            if bearing != Bearing::Cured && !found.any(|(_, one)| *one == problem) {
                self.0.push((bearing, problem));
            }
        }
    }

    /// Whether they let the window begin.
    pub(crate) fn may_pass(&self, force: bool) -> bool {
        let is = |wanted| self.0.iter().any(|(bearing, _)| *bearing == wanted);
        !is(Bearing::Final) && (force || !is(Bearing::Object))
    }

    /// Stops the window for an object that netfix could not restore, unless --force accepts it; then that is a warning.
    pub(crate) fn gate(self, force: bool) -> Result<Vec<Problem>, Refusal> {
        if let Some((_, problem)) = self.0.iter().find(|one| one.0 == Bearing::Final) {
            return Err(problem.clone().into());
        }
        let passes = self.may_pass(force);
        let objects = self.0.iter().filter(|one| one.0 == Bearing::Object).count();
        let problems = self.0.into_iter().map(|(_, problem)| problem);
        if passes {
            return Ok(problems.map(Problem::demoted).collect());
        }
        let cause = WindowCause::NotRestorable { problems: objects };
        let mut problems: Vec<Problem> = problems.collect();
        problems.push(cause.error("upgrade"));
        Err(problems.into())
    }
}
