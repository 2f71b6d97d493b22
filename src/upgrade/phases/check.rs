//! The check: could netfix restore every pod?

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use crate::check::{self, Check};
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::look::{Look, LookDepth};
use crate::model::problem::{AlreadyLost, Cause, DriverCause, SocketCause, WindowCause};
use crate::model::{Code, Problem, Rehearsal, Severity};
use crate::plan::drivers::command::unloads;
use crate::progress::Listener;
use crate::refusal::Refusal;
use crate::snapshot::{Accept, Captured, SECOND_LOOK, capture};
use crate::upgrade::baseline::LeftOut;
use crate::upgrade::condition::unknown_drivers;
use crate::upgrade::phases::rehearsal;
use crate::upgrade::programs;
use crate::upgrade::request::UpgradeRequest;
use crate::upgrade::unselected::Unselected;

/// What one observation of the machine found before the first change.
pub(crate) struct Preflight {
    /// What a restore could not put back, and what the snapshot does not cure.
    pub blockers: Blockers,
    pub left_out: LeftOut,
    /// The pods at risk that are not selected.
    pub unselected: Unselected,
    /// The snapshot, not written yet.
    pub captured: Captured,
    /// The pods, which are not read again.
    pub inventory: Inventory,
    /// The rehearsal of their restore, where it took place.
    pub rehearsal: Option<Rehearsal>,
}

/// Finds the programs, then observes the machine, and once more where what a pod has lost may be gone a moment later. What
/// cannot be queried or written is an error: --force does not help there.
pub(crate) fn run(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preflight, Refusal> {
    let mut missing = programs::missing(request);
    if !request.is_forced() {
        missing.extend(unknown_drivers(request.drivers));
    }
    if !missing.is_empty() {
        return Err(missing.into());
    }
    let mut looks = 0;
    let mut found = loop {
        let found = observe(request, context, &mut looks)?;
        if looks > 1 || !found.captured.has_degraded() {
            break found;
        }
        thread::sleep(SECOND_LOOK);
    };
    found
        .blockers
        .judge_command(&programs::text(request.command));
    let unknown = programs::unknown_modules(request).into_iter();
    found
        .blockers
        .0
        .extend(unknown.map(|problem| (Bearing::Note, problem)));
    found.unselected = Unselected::find(request, &mut found.inventory, &context.store)?;
    let problem = found.unselected.problem();
    found
        .blockers
        .0
        .extend(problem.map(|problem| (Bearing::Object, problem)));
    if request.rehearse {
        let (captured, left_out) = (&found.captured, &found.left_out);
        let (figures, problems) = rehearsal::run(captured, left_out, request, context);
        found.rehearsal = figures;
        found.blockers.add_of_rehearsal(problems);
    }
    Ok(found)
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
        rehearse: false,
        index: request.index,
    };
    let mut last = None;
    let look = |progress: &mut dyn Listener| {
        *looks += 1;
        let mut look = Look::take(
            check.selection,
            check.runtimes,
            store,
            LookDepth::Recorded,
            progress,
        )?;
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
    let (captured, inventory) = capture(
        look,
        check.selection,
        (Accept::default(), check.index),
        store,
    )?;
    Ok(Preflight {
        blockers,
        left_out: LeftOut::new(checked.left_out.into_iter().map(|info| info.id).collect()),
        unselected: Unselected::default(),
        captured,
        inventory,
        rehearsal: None,
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
    /// A pod or the host has lost its network already: --repair and --force accept it, and the window restores it.
    Lost,
    /// The snapshot that follows removes it.
    Cured,
    /// It stops nothing, and the operator of the window must know it.
    Note,
}

impl Bearing {
    fn of_check(problem: &Problem) -> Self {
        match (problem.code(), &*problem.cause) {
            (_, Cause::Conflict(cause)) if cause.is_claim() => Self::Claim,
            (_, Cause::Window(WindowCause::NoSuchDevice | WindowCause::NoPodOnDevice)) => {
                Self::Final
            }
            (
                _,
                Cause::Driver(_)
                | Cause::Socket(
                    SocketCause::FunctionEnds { .. }
                    | SocketCause::VerbsEnd { .. }
                    | SocketCause::ClockEnds { .. },
                ),
            ) => Self::Note,
            (
                Code::RuntimeUnreachable
                | Code::Unreadable
                | Code::PermissionDenied
                | Code::NotTheHost
                | Code::NoSpace
                | Code::Unwritable,
                _,
            ) => Self::Final,
            (Code::Degraded, _) => Self::Lost,
            (Code::CutOff | Code::IfindexNamed | Code::SriovOperator | Code::PodBudget, _) => {
                Self::Note
            }
            // The snapshot knows which pods without an interface should have one.
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
            // With the size of its tables a pod could prevent every window.
            (Code::PodBudget, _) => Self::Note,
            (Code::Degraded, _) => Self::Lost,
            (Code::CheckpointMissing, _) if problem.pod.is_some() => Self::Lost,
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
        for problem in problems {
            match Bearing::of_check(&problem) {
                Bearing::Note => blockers.push((Bearing::Note, problem)),
                _ if !problem.is_error() => {}
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
            let is_known = self.0[..known].iter().any(|(of, one)| match bearing {
                // The check has said what this pod has lost.
                Bearing::Lost => *of == Bearing::Lost && one.pod == problem.pod,
                _ => *one == problem,
            });
            if bearing != Bearing::Cured && !is_known {
                self.0.push((bearing, problem));
            }
        }
    }

    /// Judges by the text of COMMAND the modules that use a driver: all is well where it unloads them, and it will fail where it unloads the
    /// driver alone.
    fn judge_command(&mut self, command: &str) {
        self.0.retain_mut(|(_, problem)| {
            let Cause::Driver(DriverCause::Held {
                holders,
                module,
                is_in_command,
            }) = &mut *problem.cause
            else {
                return true;
            };
            holders.retain(|holder| !unloads(command, holder));
            *is_in_command = unloads(command, module);
            if *is_in_command {
                problem.severity = Severity::Warning;
            }
            !holders.is_empty()
        });
    }

    /// Adds the differences that a rehearsal found, and what was not rehearsed.
    fn add_of_rehearsal(&mut self, problems: Vec<Problem>) {
        let found = problems.into_iter().map(|problem| {
            let is_object = problem.is_error();
            let bearing = if is_object {
                Bearing::Object
            } else {
                Bearing::Note
            };
            (bearing, problem)
        });
        self.0.extend(found);
    }

    /// Whether they let the window begin.
    pub(crate) fn may_pass(&self, request: &UpgradeRequest<'_>) -> bool {
        let is = |wanted| self.0.iter().any(|(bearing, _)| *bearing == wanted);
        !is(Bearing::Final)
            && (request.is_forced() || !is(Bearing::Object))
            && (request.restores_lost() || !is(Bearing::Lost))
    }

    /// What has lost its network already.
    pub(crate) fn lost(&self) -> Option<AlreadyLost> {
        let lost = || {
            self.0
                .iter()
                .filter(|(bearing, _)| *bearing == Bearing::Lost)
        };
        let pods = |code: Option<Code>| {
            let of_code = lost().filter(|(_, one)| code.is_none_or(|code| one.code() == code));
            let pods: BTreeSet<_> = of_code.filter_map(|(_, one)| one.pod.as_ref()).collect();
            pods.len()
        };
        let found = AlreadyLost {
            host: lost().any(|(_, problem)| problem.pod.is_none()),
            pods: pods(None),
            without_checkpoint: pods(Some(Code::CheckpointMissing)),
        };
        lost().next().map(|_| found)
    }

    /// Stops the window for an object that netfix could not restore, unless --force accepts it, and for what is lost already,
    /// unless --repair or --force does; then that is a warning.
    pub(crate) fn gate(self, request: &UpgradeRequest<'_>) -> Result<Vec<Problem>, Refusal> {
        if let Some((_, problem)) = self.0.iter().find(|one| one.0 == Bearing::Final) {
            return Err(problem.clone().into());
        }
        let (passes, lost) = (self.may_pass(request), self.lost());
        let objects = self.0.iter().filter(|one| one.0 == Bearing::Object).count();
        let problems = self.0.into_iter().map(|(_, problem)| problem);
        if passes {
            let lost = lost.map(|lost| WindowCause::RestoresLost { lost }.warning("upgrade"));
            return Ok(problems.map(Problem::demoted).chain(lost).collect());
        }
        let lost = lost.filter(|_| !request.restores_lost());
        let lost = lost.map(|lost| WindowCause::AlreadyLost { lost }.error("upgrade"));
        let objects = (objects > 0 && !request.is_forced())
            .then(|| WindowCause::NotRestorable { problems: objects }.error("upgrade"));
        Err(problems
            .chain(lost)
            .chain(objects)
            .collect::<Vec<_>>()
            .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of irdma, which uses ice, by the words of COMMAND: its severity, and whether it says that COMMAND fails.
    fn told(command: &str) -> Vec<(Severity, bool)> {
        let held = DriverCause::Held {
            holders: vec!["irdma".to_owned()],
            module: "ice".to_owned(),
            is_in_command: false,
        };
        let mut blockers = Blockers::of_check(vec![held.info("ice")]).expect("a note");
        blockers.judge_command(command);
        let told = |(bearing, problem): &(Bearing, Problem)| {
            assert_eq!(*bearing, Bearing::Note);
            let fails = problem
                .message()
                .starts_with("COMMAND unloads it, but not irdma");
            (problem.severity, fails)
        };
        blockers.0.iter().map(told).collect()
    }

    #[test]
    fn a_command_that_unloads_a_driver_without_what_uses_it_fails() {
        assert_eq!(
            told("modprobe -r ice && modprobe ice"),
            [(Severity::Warning, true)]
        );
        assert_eq!(told("/root/upgrade"), [(Severity::Info, false)]);
        assert!(told("modprobe -r irdma ice && modprobe ice").is_empty());
    }
}
