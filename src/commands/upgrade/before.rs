//! Before anything is changed: who lives here, could all of it be restored, and is it written down?

use super::course::{Course, Memory};
use super::proof;
use crate::commands::check::{self, Check};
use crate::commands::prepare::NodeFile;
use crate::commands::session::{load, load_node};
use crate::commands::{Early, Outcome, snapshot, verify};
use crate::model::window::{PhaseName, WindowPod};
use crate::model::{Code, Problem, State};
use crate::observe;
use crate::report::PodView;
use crate::runtime;

/// Checks and snapshots, unless an earlier window has done that: in the middle of a loss nothing is written down.
pub(super) fn look(course: &mut Course<'_>) -> Result<(), Problem> {
    if course.resumes_old {
        let text = "an earlier window was left open; it goes on from what was written down then";
        course.keeper.begin(PhaseName::Check, text);
        let read = no_other_command(course).and_then(|()| remember(course));
        course.keeper.end(read.is_ok());
        return read;
    }
    course.keeper.begin(PhaseName::Check, "checking whether everything could be restored");
    let mut blockers = check(course)?;
    course.keeper.end(blockers.is_empty());
    course.keeper.begin(PhaseName::Snapshot, "writing everything down");
    let outcome = write_down(course)?;
    blockers.extend(outcome.problems.iter().filter(|problem| problem.is_error() && !heals(problem)).cloned());
    course.node = outcome.node;
    remember(course)?;
    course.keeper.window.pods =
        outcome.pods.iter().filter(|view| view.state != State::Empty).map(pod).collect();
    course.memory.runtimes =
        proof::remember(&mut course.keeper.window.pods, &course.config).map_err(first)?;
    let said = format!("{} pods are written down", course.keeper.window.pods.len());
    course.keeper.talk.say(&said);
    baseline(course);
    course.keeper.end(blockers.is_empty());
    gate(course, blockers)
}

/// The command of the window that goes on may have outlived its netfix; two at once would be a driver upgraded twice.
fn no_other_command(course: &Course<'_>) -> Result<(), Problem> {
    let run = course.keeper.window.run.as_ref();
    match run.and_then(|run| run.process).filter(runtime::is_alive) {
        None => Ok(()),
        Some(process) => {
            let message = format!(
                "COMMAND of this window still runs (pid {}): wait for its end, or end it, and run this again",
                process.pid
            );
            Err(Problem::error(Code::WindowOpen, course.keeper.window.id.clone(), message))
        }
    }
}

/// What a snapshot of this moment cannot cure.
fn check(course: &mut Course<'_>) -> Result<Vec<Problem>, Problem> {
    let selectors = &course.args.selectors;
    let check = Check { selectors, config: course.args.runtimes.config(), max_age: std::time::Duration::MAX };
    let outcome = check::run(&check, None, course.context);
    let blockers: Vec<Problem> =
        outcome.problems.into_iter().filter(|problem| problem.is_error() && !is_cured(problem)).collect();
    // What cannot be asked, and what cannot be written down, is no matter of courage.
    match blockers.iter().find(|problem| is_unknown(problem) || is_of_disk(problem)) {
        Some(problem) => Err(problem.clone()),
        None => Ok(blockers),
    }
}

fn is_unknown(problem: &Problem) -> bool {
    matches!(problem.code, Code::RuntimeUnreachable | Code::Unreadable | Code::PermissionDenied)
}

fn is_of_disk(problem: &Problem) -> bool {
    matches!(problem.code, Code::NoSpace | Code::Unwritable)
}

/// Whether the snapshot that follows does away with it, or the restore does.
fn is_cured(problem: &Problem) -> bool {
    let stale = matches!(
        problem.code,
        Code::CheckpointMissing
            | Code::CheckpointStale
            | Code::CheckpointCorrupt
            | Code::OtherBoot
            | Code::OtherMachine
            | Code::NetnsGone
            | Code::NetnsReplaced
            | Code::PodReplaced
            | Code::Drift
    );
    stale || heals(problem)
}

/// Whether the restore of this very window puts it right.
fn heals(problem: &Problem) -> bool {
    problem.code == Code::Degraded
}

fn write_down(course: &mut Course<'_>) -> Result<Outcome, Problem> {
    let Some(guard) = course.keeper.guard() else {
        return Err(Problem::error(Code::LockHeld, "lock", "is not held"));
    };
    let config = course.args.runtimes.config();
    let outcome = snapshot::write_down(guard, &course.selection, &config, course.args.keep, course.context);
    outcome.map_err(|early| first(early.problems))
}

/// Everything that a restore needs, read back from the disk and kept in memory.
fn remember(course: &mut Course<'_>) -> Result<(), Problem> {
    let stored =
        load(&course.context.store, &course.selection).map_err(|early: Early| first(early.problems))?;
    let mut problems = Vec::new();
    let node = load_node(&course.context.store, &observe::node_identity(), &mut problems);
    course.memory = Memory { stored, node, ..Memory::default() };
    match problems.into_iter().find(Problem::is_error) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}

/// Which gateways did not answer before either; the window is not to blame for those.
fn baseline(course: &mut Course<'_>) {
    let Course { context, memory, selection, args, .. } = course;
    let node = NodeFile::Read(memory.node.clone().map(Box::new));
    let Ok(verified) = verify::ask_gateways(memory.stored.clone(), node, selection, args.timeout, context)
    else {
        return;
    };
    let silent =
        verified.outcome.problems.into_iter().filter(|problem| problem.code == Code::GatewayUnreachable);
    let silent = silent.filter_map(|problem| Some((problem.pod?, problem.object)));
    course.memory.silent = silent.collect();
    if !course.memory.silent.is_empty() {
        let said =
            format!("{} gateways of pods do not answer before anything is done", course.memory.silent.len());
        course.keeper.talk.say(&said);
    }
}

fn gate(course: &mut Course<'_>, blockers: Vec<Problem>) -> Result<(), Problem> {
    if blockers.is_empty() {
        return Ok(());
    }
    if let Some(problem) = blockers.iter().find(|problem| is_of_disk(problem)) {
        return Err(problem.clone());
    }
    if course.args.force {
        course.problems.extend(blockers.into_iter().map(Problem::demoted));
        return Ok(());
    }
    let count = blockers.len();
    course.problems.extend(blockers);
    let message = format!("{count} things would not come back as they are; --force goes on all the same");
    Err(Problem::error(Code::Unsupported, "upgrade", message))
}

fn first(problems: Vec<Problem>) -> Problem {
    let unknown = || Problem::error(Code::Failed, "upgrade", "it is not known why this failed");
    problems.into_iter().find(Problem::is_error).unwrap_or_else(unknown)
}

fn pod(view: &PodView) -> WindowPod {
    WindowPod {
        info: view.info.clone(),
        before: view.interfaces.clone(),
        after: None,
        state: None,
        steps: 0,
        lost: None,
        answered: None,
        gateways: Vec::new(),
        lives_before: None,
        lives_after: None,
        rebuilt: None,
    }
}
