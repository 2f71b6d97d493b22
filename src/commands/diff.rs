//! `netfix diff` and `netfix plan`: what is missing, and the steps that would put it back. Nothing is touched.

use super::check_in::Matched;
use super::prepare::{Prepared, prepare};
use super::session;
use super::{Context, Early, Exit, Outcome};
use crate::cli::{PodArgs, Runtimes, SourceArgs, Target};
use crate::kernel::netns;
use crate::model::sysctl::Sysctls;
use crate::model::{Code, NetState, PodInfo, Problem};
use crate::observe::{Host, Pod};
use crate::plan::{self, HostLinks, Observed, Plan, Step, worth};
use crate::report::{PodView, Progress, State};

pub(super) fn diff(
    pod: Option<&str>,
    pods: &PodArgs,
    runtimes: &Runtimes,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let mut pods = pods.clone();
    pods.selectors.pod.extend(pod.map(str::to_owned));
    let outcome = compare(&Target { pods, parent: None }, &SourceArgs::checkpoints(runtimes), context)?;
    Ok(with_drift(outcome))
}

pub(super) fn plan(
    target: &Target,
    source: &SourceArgs,
    exit_code: bool,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let outcome = compare(target, source, context)?;
    Ok(if exit_code { with_drift(outcome) } else { outcome })
}

/// Drift is an answer of its own, unless something went wrong with the asking.
fn with_drift(outcome: Outcome) -> Outcome {
    let drifted =
        !outcome.node.steps.is_empty() || outcome.pods.iter().any(|pod| pod.state == State::Drifted);
    let exit = if drifted && outcome.exit == Exit::Done { Exit::Drift } else { outcome.exit };
    Outcome { exit, ..outcome }
}

fn compare(target: &Target, source: &SourceArgs, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(&target.pods.selectors)?;
    let prepared = prepare(target, source, &selection, context)?;
    let Prepared { mut host, ground, mut matched, mut node, mut views, mut problems, replaced } = prepared;
    let settings =
        host.new_link_settings().map_err(|error| Box::new(Outcome::refused(unreadable("host", &error))))?;
    let observed = ground.observed(&host, Some(&settings));
    let (host_plan, links) = plan::host(&ground.state, observed, &ground.devices);
    node.steps = host_plan.lines();
    problems.extend(host_plan.problems);

    context.progress.notice(Progress::Phase("comparing", matched.len()));
    let plans = plan_pods(&mut matched, &host, &links, Depth::Complete);
    for (matched, planned) in matched.iter().zip(plans) {
        let (view, found) = report(&matched.info, matched, planned);
        views.push(view);
        problems.extend(found);
    }
    replaced.tell(&source.runtimes.config(), &mut problems);
    views.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    let exit = match Outcome::judge(&without_drift(&views), &problems) {
        Exit::Failed => Exit::Partly,
        other => other,
    };
    Ok(Outcome { exit, node, pods: views, problems, ..Outcome::default() })
}

/// Finding drift is what was asked for, so it does not count as bad.
fn without_drift(views: &[PodView]) -> Vec<PodView> {
    let good = |view: &PodView| {
        let state = if view.state == State::Drifted { State::InSync } else { view.state };
        PodView { state, ..view.clone() }
    };
    views.iter().map(good).collect()
}

/// What a pod has, beside what it should have.
pub(super) struct Compared {
    /// What is missing or differs.
    pub plan: Plan,
    /// The link that is lost, if one is.
    pub lost: Option<String>,
}

/// How far a plan for links that are missing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// To the last setting: what a new link of the pod would start with is read, in a hundred files.
    Complete,
    /// To the link's creation.
    Creation,
}

/// Each pod's plan.
pub(super) fn plan_pods(
    matched: &mut [Matched],
    host: &Host,
    links: &HostLinks,
    depth: Depth,
) -> Vec<Result<Compared, Problem>> {
    let compare = |matched: &mut Matched| matched.compare(host, links, depth);
    let compared = netns::visit(matched, |matched| &matched.pod.netns, compare);
    compared.into_iter().map(|plan| plan.unwrap_or_else(|errno| Err(unreadable("netns", &errno)))).collect()
}

impl Matched {
    /// Compares from inside the pod's namespace.
    fn compare(&mut self, host: &Host, links: &HostLinks, depth: Depth) -> Result<Compared, Problem> {
        let state = observe(&mut self.pod, host)?;
        let (mut compared, creates) = self.planned(&state, links, None);
        if depth == Depth::Complete && creates {
            let settings =
                self.pod.new_link_settings_inside().map_err(|error| unreadable("conf/default", &error))?;
            (compared, _) = self.planned(&state, links, Some(&settings));
        }
        Ok(compared)
    }

    /// Also says whether links have to be created.
    fn planned(&self, state: &NetState, links: &HostLinks, new_link: Option<&Sysctls>) -> (Compared, bool) {
        let lost = worth::loss(&self.wanted(state, links, &[]).0, state);
        let plan = self.plan(Observed { state, new_link, age: self.age }, links, &[]);
        let creates = plan.steps.iter().any(|step| matches!(step, Step::AddLink(_)));
        (Compared { plan, lost }, creates)
    }
}

fn observe(pod: &mut Pod, host: &Host) -> Result<NetState, Problem> {
    pod.observe_inside(host).map_err(|error| unreadable("netns", &error))
}

fn unreadable(object: &str, error: &dyn std::fmt::Display) -> Problem {
    Problem::error(Code::Unreadable, object, error.to_string())
}

fn report(info: &PodInfo, matched: &Matched, planned: Result<Compared, Problem>) -> (PodView, Vec<Problem>) {
    let mut view = matched.view(State::InSync);
    let problems = match planned {
        Ok(Compared { plan, lost: _ }) => {
            view.steps = plan.lines();
            let broken = plan.problems.iter().any(Problem::is_error);
            if broken || !view.steps.is_empty() {
                view.state = State::Drifted;
            }
            plan.problems
        }
        Err(problem) => {
            view.state = State::Failed;
            vec![problem]
        }
    };
    (view, problems.into_iter().map(|problem| problem.of(&info.id)).collect())
}
