//! The problems that stand against a window before its first change.

use crate::model::problem::{Cause, WindowCause};
use crate::model::{Code, Problem};
use crate::refusal::Refusal;

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
