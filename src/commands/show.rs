//! `netfix show`: everything that is known of one pod: what is stored, and how the living pod stands to it.

use super::check_in::Matched;
use super::diff::{Compared, Depth, plan_pods};
use super::list::tell_seen;
use super::prepare::{NodeFile, Records, Surveyed, needs_runtime, survey};
use super::select::Selection;
use super::session::{Session, Stored, age, load, no_checkpoints, node_view, stored_view};
use super::{Context, Early, Exit, Outcome, generations};
use crate::kernel::netns;
use crate::model::sysctl::Sysctls;
use crate::model::{Checkpoint, Code, NetState, PodInfo, Problem};
use crate::observe::Pod;
use crate::plan::{self, HostLinks, Observed, Step};
use crate::report::{Extra, ShowView, State};
use crate::runtime;
use crate::store::Store;

/// Finds the one checkpoint that `pod` names, by id, name, or the beginning of either, and compares it with the machine.
pub(super) fn run(
    pod: &str,
    generation: Option<u64>,
    config: &runtime::Config,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let selection = Selection::everything();
    let store = generations::store(&context.store, generation)?;
    let Stored { mut checkpoints, damaged: _, mut problems } = load(&store, &selection)?;
    let any = |info: &PodInfo, is_it: &dyn Fn(&str) -> bool| {
        is_it(info.id.as_str()) || info.name.as_deref().is_some_and(is_it) || is_it(&info.title())
    };
    if checkpoints.iter().any(|(info, _)| any(info, &|name| name == pod)) {
        checkpoints.retain(|(info, _)| any(info, &|name| name == pod));
    } else {
        checkpoints.retain(|(info, _)| any(info, &|name| name.starts_with(pod)));
    }
    let several = checkpoints.len();
    match (checkpoints.pop(), several) {
        (Some((info, checkpoint)), 1) => Ok(one(&info, checkpoint, config, &store)),
        (None, _) => {
            // The one that was asked for may be among those that cannot be read.
            problems.retain(|problem| problem.pod.as_ref().is_some_and(|id| id.as_str().starts_with(pod)));
            if problems.is_empty() {
                problems.push(Problem { object: pod.to_owned(), ..no_checkpoints(&selection) });
            }
            Ok(Outcome { exit: Exit::Failed, node: node_view(), problems, ..Outcome::default() })
        }
        _ => {
            let message = format!("{several} pods begin like that; give more of the id");
            Err(Box::new(Outcome::failed(Problem::error(Code::NotFound, pod, message))))
        }
    }
}

/// Compares one checkpoint with the machine as it is. What cannot be looked at is a problem, and the stored part is
/// shown all the same.
fn one(info: &PodInfo, checkpoint: Checkpoint, config: &runtime::Config, store: &Store) -> Outcome {
    let mut view = stored_view(info, &checkpoint, State::Stored);
    let mut extra =
        ShowView { written_age: view.created.as_deref().map(|time| age(time).into()), ..ShowView::default() };
    let mut problems = Vec::new();
    match look(info, &checkpoint, config, store) {
        Ok(Living { compared: Compared { plan, lost }, settings, problems: found }) => {
            (extra.alive, extra.settings) = (Some(true), settings);
            view.steps = plan.lines();
            view.state = match (&lost, view.steps.is_empty()) {
                (Some(_), _) => State::Degraded,
                (None, false) => State::Drifted,
                (None, true) => State::InSync,
            };
            extra.lost = lost;
            problems.extend(
                found.into_iter().chain(plan.problems.into_iter().map(|problem| problem.of(&info.id))),
            );
        }
        Err(found) => {
            use Code::{NetnsGone, NetnsReplaced, OtherBoot, PodReplaced};
            let gone = |problem: &Problem| {
                matches!(problem.code, NetnsGone | NetnsReplaced | PodReplaced | OtherBoot)
            };
            extra.alive = found.iter().any(gone).then_some(false);
            problems.extend(found);
        }
    }
    // The answer was given, whatever it says of the pod.
    let problems = problems.into_iter().map(Problem::demoted).collect();
    view.checkpoint = Some(Box::new(checkpoint));
    // Whether the node's state can be read was told with the rest.
    tell_seen(std::slice::from_mut(&mut view), store, &mut Vec::new());
    let extra = Some(Extra::Show(extra));
    Outcome { node: node_view(), pods: vec![view], problems, extra, ..Outcome::default() }
}

/// A pod that lives, beside its checkpoint.
struct Living {
    compared: Compared,
    /// Settings in the checkpoint that a new link would not have by itself.
    settings: Vec<String>,
    problems: Vec<Problem>,
}

fn look(
    info: &PodInfo,
    checkpoint: &Checkpoint,
    config: &runtime::Config,
    store: &Store,
) -> Result<Living, Vec<Problem>> {
    let told = |early: Early| early.problems;
    let selection = Selection::everything();
    let mut session = Session::open(&selection).map_err(told)?;
    let checkpoints = vec![(info.clone(), checkpoint.clone())];
    if needs_runtime(&checkpoints, &session.pods, &session.node) {
        session.ask(config, &selection).map_err(told)?;
    }
    let stored = Stored { checkpoints, ..Stored::default() };
    let surveyed =
        survey(session, Records::Stored(stored), None, &selection, NodeFile::In(store)).map_err(told)?;
    let Surveyed { host, ground, mut checked, mut problems, .. } = surveyed;
    problems.append(&mut checked.problems);
    if checked.matched.is_empty() {
        return Err(problems);
    }
    let (_, links) = plan::host(&ground.state, ground.observed(&host, None), &ground.devices);
    let mut compared = plan_pods(&mut checked.matched, &host, &links, Depth::Complete);
    let (Some(matched), Some(compared)) = (checked.matched.first_mut(), compared.pop()) else {
        return Err(problems);
    };
    let compared = compared.map_err(|problem| vec![problem.of(&info.id)])?;
    let read = |pod: &mut Pod| pod.new_link_settings_inside();
    let mut new_link = netns::visit(std::slice::from_mut(&mut matched.pod), |pod| &pod.netns, read);
    let settings = match new_link.pop() {
        Some(Ok(Ok(new_link))) => settings(matched, &new_link, &links),
        // They are beside the point when the rest is known.
        _ => Vec::new(),
    };
    Ok(Living { compared, settings, problems })
}

/// The settings that a restore would write if the pod had nothing at all.
fn settings(matched: &Matched, new_link: &Sysctls, links: &HostLinks) -> Vec<String> {
    let nothing = NetState::default();
    let observed = Observed { state: &nothing, new_link: Some(new_link), age: matched.age };
    let steps = matched.plan(observed, links, &[]).steps;
    let settings = steps.iter().filter(|step| matches!(step, Step::Sysctl { .. }));
    settings.map(ToString::to_string).collect()
}
