//! After the user's command: the pods' network back, their gateways asked, and what is to be told of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::course::{Course, Memory, words};
use super::proof;
use crate::cli::{PodArgs, SourceArgs, Target};
use crate::commands::prepare::{NodeFile, Records, prepare_from};
use crate::commands::session::Session;
use crate::commands::wait::Patience;
use crate::commands::window::clock::boottime;
use crate::commands::{Exit, Outcome, restore, verify};
use crate::model::window::{PhaseName, Run, WindowPod};
use crate::model::{Code, NetnsIdentity, PodId, Problem, State, Window};
use crate::report::PodView;

/// What is wrong with how the user's command ended.
pub(super) fn command_problem(run: &Run) -> Option<Problem> {
    let how = match (run.exit, run.signal, &run.error) {
        (Some(0), ..) => return None,
        (Some(code), ..) => format!("ended with exit code {code}"),
        (None, Some(signal), _) => format!("was ended by signal {signal}"),
        (None, None, Some(error)) => format!("could not be run: {error}"),
        (None, None, None) => "ended, and nobody knows how".to_owned(),
    };
    Some(Problem::error(Code::CommandFailed, words(&run.argv), how))
}

/// Notes of each pod when the first of the links went that it stands on. One that was lost in an earlier run of this
/// window, and has not answered since, is lost since then.
pub(super) fn note_losses(window: &mut Window, lost: &BTreeMap<String, u64>, memory: &Memory) {
    let began = window.started_boottime;
    // What went while the run was killed that watched, nobody has seen.
    let is_unseen = window.phases.iter().any(|phase| phase.name == PhaseName::Command && phase.to.is_none());
    for pod in &mut window.pods {
        let of_pod = memory.stored.checkpoints.iter().find(|(info, _)| info.id == pod.info.id);
        let Some(extension) = of_pod.and_then(|(_, checkpoint)| checkpoint.netfix.as_ref()) else { continue };
        let links = extension.stack.iter().map(|link| link.name.as_str());
        let Some(at) = links.filter_map(|name| lost.get(name)).min() else { continue };
        let is_back = pod.answered.take().is_some();
        if is_back || pod.lost.is_none() && !is_unseen {
            pod.lost = Some(at.saturating_sub(began));
        }
    }
}

/// Restores from memory: the disk is not needed.
pub(super) fn restore(course: &mut Course<'_>, wait: Duration) -> Outcome {
    let Course { context, memory, selection, args, signals, .. } = course;
    let pods = PodArgs { selectors: args.selectors.clone(), generation: None };
    let target = Target { pods, parent: None };
    let source = SourceArgs::checkpoints(&args.runtimes);
    let records = Records::Stored(memory.stored.clone());
    let node = NodeFile::Read(memory.node.clone().map(Box::new));
    let patience = Patience::until_interrupted(wait, signals);
    let prepared = prepare_from(records, node, &target, &source, selection);
    let outcome =
        prepared.and_then(|prepared| restore::put_back(prepared, &args.runtimes.config(), patience, context));
    outcome.unwrap_or_else(|early| *early)
}

/// What two tries have done: all steps, and how the second one has left everything.
pub(super) fn both(first: Outcome, second: Outcome) -> Outcome {
    let mut both = second;
    both.node.steps.splice(..0, first.node.steps);
    for view in &mut both.pods {
        let Some(before) = first.pods.iter().find(|before| before.info.id == view.info.id) else { continue };
        view.steps.splice(..0, before.steps.iter().cloned());
        view.before.clone_from(&before.before);
        if view.state == State::InSync && !view.steps.is_empty() {
            view.state = State::Restored;
        }
    }
    if both.node.state == Some(State::InSync) && !both.node.steps.is_empty() {
        both.node.state = Some(State::Restored);
    }
    both
}

pub(super) fn note_states(window: &mut Window, views: &[PodView]) {
    for pod in &mut window.pods {
        let Some(view) = views.iter().find(|view| view.info.id == pod.info.id) else { continue };
        pod.state = Some(view.state);
        pod.steps += view.steps.len();
    }
}

pub(super) fn summary(views: &[PodView]) -> String {
    let count = |wanted: State| views.iter().filter(|view| view.state == wanted).count();
    let good = views.iter().filter(|view| view.state.is_good()).count();
    let (restored, whole) = (count(State::Restored), count(State::InSync));
    format!(
        "{restored} of {} pods restored, {whole} needed nothing, {} not restored",
        views.len(),
        views.len() - good
    )
}

/// Asks the gateways, from memory too; a gateway that was silent before is not held against the window.
pub(super) fn verify(course: &mut Course<'_>) -> Vec<Problem> {
    let Course { context, memory, selection, args, keeper, .. } = course;
    let node = NodeFile::Read(memory.node.clone().map(Box::new));
    let verified = match verify::ask_gateways(memory.stored.clone(), node, selection, args.timeout, context) {
        Ok(verified) => verified,
        Err(early) => return early.problems,
    };
    let (now, began) = (Instant::now(), keeper.window.started_boottime);
    let moment = |at: Instant| {
        let ago = u64::try_from(now.saturating_duration_since(at).as_millis()).unwrap_or_default();
        boottime().saturating_sub(ago).saturating_sub(began)
    };
    for view in verified.outcome.pods {
        let Some(pod) = keeper.window.pods.iter_mut().find(|pod| pod.info.id == view.info.id) else {
            continue;
        };
        pod.answered = pod.answered.or_else(|| verified.answered.get(&pod.info.id).copied().map(moment));
        pod.after = Some(view.interfaces);
        pod.gateways = view.gateways;
    }
    let reachable = keeper.window.pods.iter().filter(|pod| pod.answered.is_some()).count();
    keeper.talk.say(&format!("{reachable} of {} pods reach a gateway", keeper.window.pods.len()));
    verified.outcome.problems.into_iter().map(|problem| excuse(problem, &memory.silent)).collect()
}

fn excuse(mut problem: Problem, silent: &[(PodId, String)]) -> Problem {
    let is_it =
        |(pod, gateway): &(PodId, String)| problem.pod.as_ref() == Some(pod) && problem.object == *gateway;
    if problem.code == Code::GatewayUnreachable && silent.iter().any(is_it) {
        problem.message.push_str(", as before the window");
        return problem.demoted();
    }
    problem
}

/// The pods that are not whole, each with what kubelet's start will do to it.
pub(super) fn broken(views: &[PodView]) -> Vec<String> {
    let broken: Vec<&PodView> = views.iter().filter(|view| !view.state.is_good()).collect();
    let fate = |view: &PodView| {
        let is_bare = view.after.as_ref().is_none_or(Vec::is_empty);
        let what = if is_bare {
            "has no address: a kubelet that asks its namespace (dockershim) rebuilds it at once, others leave it Running \
             without network"
        } else {
            "is not as it was: a kubelet that asks its namespace (dockershim) rebuilds it if it finds no address"
        };
        format!("  pod {}: {}, {what}", view.info.title(), view.state)
    };
    let head = (!broken.is_empty())
        .then(|| format!("{} pods are not restored, and kubelet is about to start:", broken.len()));
    head.into_iter().chain(broken.into_iter().map(fate)).collect()
}

/// Whether a problem is one that another restore may have put right.
pub(super) fn is_about_network(problem: &Problem) -> bool {
    let of_window = matches!(
        problem.code,
        Code::CommandFailed | Code::Interrupted | Code::KubeletNotPaused | Code::KubeletNotResumed
    );
    !of_window
}

pub(super) fn prove(course: &mut Course<'_>) -> Vec<Problem> {
    let Course { memory, selection, args, keeper, config, signals, .. } = course;
    let identities: BTreeMap<&PodId, &NetnsIdentity> = memory
        .stored
        .checkpoints
        .iter()
        .filter_map(|(info, checkpoint)| Some((&info.id, &checkpoint.netfix.as_ref()?.identity)))
        .collect();
    // Asked when the time is over, not before.
    let living = std::cell::OnceCell::new();
    let lives = |pod: &WindowPod| {
        let living = living.get_or_init(|| Session::open(selection).ok().map(|session| session.pods));
        let then = identities.get(&pod.info.id)?;
        let now = || living.as_ref().map(|pods| pods.iter().map(|pod| &pod.identity));
        if now()?.any(|now| then.is_same(now)) {
            return Some(true);
        }
        // One that might be it proves nothing.
        if now()?.any(|now| then.may_be(now)) { None } else { Some(false) }
    };
    proof::watch(&mut keeper.window.pods, config, args.settle, &memory.runtimes, signals, lives)
}

/// Pods and kubelet decide first; a command that failed where nothing else is wrong is the plain failure.
pub(super) fn exit(problems: &[Problem]) -> Exit {
    let of_command = |problem: &Problem| matches!(problem.code, Code::CommandFailed | Code::Interrupted);
    let errors: Vec<&Problem> = problems.iter().filter(|problem| problem.is_error()).collect();
    match (errors.is_empty(), errors.iter().all(|problem| of_command(problem))) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Partly,
    }
}
