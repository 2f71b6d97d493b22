//! What a window would do, which pods it may cut off, and whether it would begin; changes nothing.

use std::collections::BTreeSet;

use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::pods::observe_pods;
use crate::kernel;
use crate::kubelet::kubelet_pause;
use crate::matching::at_risk::{self, PodDrivers};
use crate::model::problem::WindowCause;
use crate::model::{IfName, Link, NetState, NodeIdentity, PodId, PodSummary, Problem, interfaces};
use crate::refusal::Refusal;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::preflight::Seen;
use crate::upgrade::rollback::already_rolled_back;
use crate::upgrade::{Request, preflight};
use crate::window::session;
use crate::window::session::{Found, still_open};

/// What a window would find.
pub(crate) struct Preview {
    pub node: NodeIdentity,
    /// The unit that it would pause.
    pub unit: Option<String>,
    /// The pods with a link on one of the host's.
    pub pods: Vec<PodSummary>,
    pub problems: Vec<Problem>,
    /// Whether the window would be refused, as far as that is known.
    pub is_refused: bool,
}

/// Runs what precedes the pause, with the snapshot in memory: the problems are those of the window.
pub(crate) fn rehearse(request: &Request<'_>, context: &mut Context) -> Result<Preview, Refusal> {
    let rehearsed = begin(request, context);
    let seen = run(request, context);
    match (rehearsed, seen) {
        (Err(refusal), Err(_)) => Err(refusal),
        (Err(refusal), Ok(preview)) => Ok(Preview {
            problems: refusal.problems,
            is_refused: true,
            ..preview
        }),
        (Ok((accepted, left_out)), seen) => {
            let mut preview = seen?;
            preview
                .problems
                .retain(|problem| !left_out.is_about(problem));
            let others = preflight::others_than(&accepted, preview.problems);
            preview.problems = others.into_iter().chain(accepted).collect();
            Ok(preview)
        }
    }
}

/// The same steps as in a window, up to the pause; `Ok` has the problems that do not prevent it.
fn begin(request: &Request<'_>, context: &mut Context) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    context.store.refuse_if_locked()?;
    let bus = kubelet_pause::systemd()?;
    let interrupted = match session::find(&context.store)? {
        Found::Interrupted(window) => Some(window),
        Found::Nothing | Found::Finished(_) => None,
    };
    let begun = interrupted.as_ref().filter(|window| window.has_begun());
    let accepted = match begun {
        Some(window) => {
            let stored = preflight::recover(window, request, context)?.stored;
            let is_rolled_back = window.rollback.is_some();
            let accepted = is_rolled_back.then(|| already_rolled_back().demoted());
            let left_out = LeftOut::of_window(&window.pods, &stored);
            (accepted.into_iter().collect(), left_out)
        }
        None => check_and_snapshot(request, context)?,
    };
    kubelet_pause::find_for_upgrade(bus.as_ref(), request, interrupted.as_ref())?;
    Ok(accepted)
}

fn check_and_snapshot(
    request: &Request<'_>,
    context: &mut Context,
) -> Result<(Vec<Problem>, LeftOut), Refusal> {
    let Seen {
        mut blockers,
        left_out,
        captured,
        inventory: _,
    } = preflight::look(request, context)?;
    let progress = context.progress.as_mut();
    let (_, mut pods, problems) =
        preflight::write_snapshot(captured, None, request, &left_out, progress);
    blockers.extend(preflight::others_than(&blockers, problems));
    preflight::note_fingerprints(&mut pods, request)?;
    Ok((preflight::gate(blockers, request.force)?, left_out))
}

/// Reads the state of the pods, kubelet and the state directory.
pub(crate) fn run(request: &Request<'_>, context: &Context) -> Result<Preview, Refusal> {
    let bus = kubelet_pause::systemd()?;
    let interrupted = match session::find(&context.store) {
        Ok(Found::Interrupted(window)) => Some(window),
        _ => None,
    };
    let (unit, note) =
        kubelet_pause::find_for_upgrade(bus.as_ref(), request, interrupted.as_ref())?;
    let mut session = Inventory::open(&request.selection)?;
    session.attribute(&request.runtimes, &request.selection)?;
    session
        .pods
        .retain(|pod| request.selection.wants_pod(&pod.info));
    let mut problems = std::mem::take(&mut session.problems);
    problems.extend(note);
    let open = context.store.open_window()?;
    problems.extend(open.map(|open| still_open(&open).demoted()));
    let states = observe_pods(&mut session.pods, &session.host);
    let left_out = left_out(&session, &states, &request.devices)?;
    let mut pods = Vec::new();
    for (pod, state) in session.pods.iter().zip(states) {
        match state {
            Ok(state)
                if state.links.iter().any(Link::is_on_host) && !left_out.contains(&pod.info.id) =>
            {
                pods.push(PodSummary {
                    interfaces: interfaces(&state),
                    ..PodSummary::bare(&pod.info, Some(&pod.netns.path))
                });
            }
            Ok(_) => {}
            Err(error) => {
                let error = error.to_string();
                let cause = WindowCause::NamespaceUnreadable { error };
                problems.push(cause.error(pod.netns.shown()).of(&pod.info.id));
            }
        }
    }
    pods.sort_by(|a: &PodSummary, b| a.info.id.cmp(&b.info.id));
    Ok(Preview {
        node: session.node,
        unit,
        pods,
        problems,
        is_refused: false,
    })
}

/// The pods that a window would leave out. One that cannot be read stays in.
fn left_out(
    session: &Inventory,
    states: &[Result<NetState, kernel::Error>],
    devices: &[IfName],
) -> Result<BTreeSet<PodId>, Problem> {
    let host = &session.host.state;
    let pods = session.pods.iter().zip(states);
    let pods = pods.filter_map(|(pod, state)| {
        let drivers = PodDrivers::of(state.as_ref().ok()?, host);
        Some((&pod.info.id, drivers))
    });
    at_risk::left_out(&pods.collect::<Vec<_>>(), devices, host)
}
