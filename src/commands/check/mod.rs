//! `netfix check`: could every running pod be restored now? For cron and monitoring, so it changes nothing and always
//! comes to a verdict.

mod node;
mod pods;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::prepare::{NodeFile, Records, Surveyed, survey};
use super::session::{self, Session, load};
use super::snapshot::SECOND_LOOK;
use super::{Context, Early, Exit, Outcome};
use crate::cli::Selectors;
use crate::model::{Code, Problem, Severity};
use crate::observe::Pod;
use crate::plan;
use crate::report::{self, CheckView, Extra, Progress, State, Verdict};
use crate::runtime;

/// What to check.
pub(super) struct Check<'a> {
    pub selectors: &'a Selectors,
    pub config: runtime::Config,
    /// How old a checkpoint may be.
    pub max_age: Duration,
}

/// Every state that a running pod can be found in.
const STATES: [State; 7] = [
    State::InSync,
    State::Stale,
    State::Drifted,
    State::Degraded,
    State::NoCheckpoint,
    State::Empty,
    State::Failed,
];

/// Checks, writes the metrics where they were asked for, and answers.
pub(super) fn run(check: &Check<'_>, textfile: Option<&Path>, context: &mut Context) -> Outcome {
    let mut outcome = examine(check, context).unwrap_or_else(|early| *early);
    if outcome.pods.iter().any(|pod| pod.state == State::Degraded) {
        // Nobody is to be woken up for that.
        thread::sleep(SECOND_LOOK);
        outcome = examine(check, context).unwrap_or_else(|early| *early);
    }
    let mut view = match outcome.extra.take() {
        Some(Extra::Check(view)) => view,
        _ => CheckView::default(),
    };
    for state in STATES {
        view.pods.entry(state).or_default();
    }
    view.status = verdict(&outcome.problems);
    if let Some(path) = textfile {
        let written = crate::store::replace(path, &report::metrics(&view, &outcome.problems), 0o644);
        if let Err(error) = written {
            outcome.problems.push(error.problem());
            // The metrics are not known to monitoring, whatever else is.
            view.status = if view.status == Verdict::Critical { view.status } else { Verdict::Unknown };
        }
    }
    Outcome { exit: Exit::Check(view.status), extra: Some(Extra::Check(view)), ..outcome }
}

/// The worst of the findings. What could not be asked is unknown, unless something is known to be lost.
fn verdict(problems: &[Problem]) -> Verdict {
    let unknown = |problem: &Problem| {
        matches!(
            problem.code,
            Code::RuntimeUnreachable | Code::Unreadable | Code::PermissionDenied | Code::NotFound
        )
    };
    let errors = || problems.iter().filter(|problem| problem.is_error());
    if errors().any(|problem| !unknown(problem)) {
        Verdict::Critical
    } else if errors().next().is_some() {
        Verdict::Unknown
    } else if problems.iter().any(|problem| problem.severity == Severity::Warning) {
        Verdict::Warning
    } else {
        Verdict::Ok
    }
}

fn examine(check: &Check<'_>, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(check.selectors)?;
    let stored = load(&context.store, &selection)?;
    let mut problems = node::folder(&context.store);
    let mut session = Session::open(&selection)?;
    // What a runtime cannot say is a finding; the kernel knows which pods there are all the same.
    if let Err(refusal) = session.ask(&check.config, &selection) {
        problems.extend(refusal.problems);
    }
    let identity = session.node.clone();
    let mut surveyed =
        survey(session, Records::Stored(stored), None, &selection, NodeFile::In(&context.store))?;
    problems.append(&mut surveyed.problems);
    problems.extend(node::abilities(&surveyed));
    // A part of the pods is judged by their own checkpoints alone.
    if selection.is_everything() {
        problems.extend(node::last_snapshot(&surveyed, &identity, check.max_age));
    }

    let Surveyed { mut host, ground, checked, strays, damaged, mut node, node_state, .. } = surveyed;
    let settings = host.new_link_settings().map_err(|error| {
        Box::new(Outcome::refused(Problem::error(Code::Unreadable, "host", error.to_string())))
    })?;
    let (host_plan, links) =
        plan::host(&ground.state, ground.observed(&host, Some(&settings)), &ground.devices);
    node.steps = host_plan.lines();
    problems.extend(node::drift(host_plan));
    problems.extend(node::carrier(&host, &ground, &checked.matched, &links));

    context.progress.notice(Progress::Phase("comparing", checked.matched.len()));
    let mut found =
        pods::Findings { seen: node_state.as_ref(), max_age: check.max_age, ..Default::default() };
    found.rejected(&checked.problems, &checked.rejected);
    found.strays(&checked.strays, strays);
    found.damaged(damaged, &checked.strays);
    found.matched(checked.matched, &host, &links);
    let pods::Findings { mut views, problems: of_pods, oldest_age, .. } = found;
    problems.extend(of_pods);
    views.sort_by(|a, b| a.info.id.cmp(&b.info.id));

    let mut counts: BTreeMap<State, usize> = BTreeMap::new();
    for view in &views {
        *counts.entry(view.state).or_default() += 1;
    }
    let is_told = |pod: &&Pod| views.iter().any(|view| view.info.id == pod.info.id);
    counts.insert(State::Empty, checked.strays.iter().filter(|pod| !is_told(pod)).count());
    let steps = node.steps.len() + views.iter().map(|view| view.steps.len()).sum::<usize>();
    let last_success = node_state.and_then(|state| state.complete);
    let view = CheckView { pods: counts, oldest_age, steps, last_success, ..CheckView::default() };
    Ok(Outcome { node, pods: views, problems, extra: Some(Extra::Check(view)), ..Outcome::default() })
}
