//! `netfix status`: how things stand, in one screen; nothing is judged and nothing is touched.

use super::session::{self, Session, age, load};
use super::{Context, Early, Exit, Outcome, window};
use crate::cli::{Runtimes, Selectors};
use crate::model::Problem;
use crate::report::{Extra, HoldView, RuntimeView, StatusView};

pub(super) fn run(runtimes: &Runtimes, context: &mut Context) -> Result<Outcome, Early> {
    let selection = session::selection(&Selectors::default())?;
    let stored = load(&context.store, &selection)?;
    let mut problems = stored.problems;
    let mut session = Session::open(&selection)?;
    // One runtime that hangs must not hide the rest.
    if let Err(refusal) = session.ask(&runtimes.config(), &selection) {
        problems.extend(refusal.problems);
    }
    let node_state = session::load_node(&context.store, &session.node, &mut problems);
    let covered = session.pods.iter().filter(|pod| {
        let mut extensions =
            stored.checkpoints.iter().filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
        extensions.any(|extension| extension.is_about(&session.node, &pod.identity, &pod.info))
    });
    let last_success = node_state.as_ref().and_then(|state| state.complete.clone());
    let asked = session.answer.iter().flat_map(|answer| &answer.asked);
    let runtimes = asked.map(|asked| RuntimeView {
        endpoint: asked.endpoint.display().to_string(),
        version: asked.version.clone(),
        pods: asked.sandboxes,
    });
    let generations = context.store.generations().unwrap_or_else(|error| {
        problems.push(error.problem());
        Vec::new()
    });
    let generations = generations.len();
    let status = StatusView {
        state_dir: context.store.folder().display().to_string(),
        checkpoints: stored.checkpoints.len(),
        damaged: stored.damaged.len(),
        generations,
        last_success_age: last_success.as_deref().map(|time| age(time).into()),
        last_success,
        running: session.pods.len(),
        covered: covered.count(),
        runtimes: runtimes.collect(),
        lock: context.store.holder(),
        window: window(context, &mut problems),
    };
    let node = session.node_view(node_state.map(|state| state.created));
    problems.append(&mut session.problems);
    let exit = if problems.iter().any(Problem::is_error) { Exit::Failed } else { Exit::Done };
    Ok(Outcome { exit, node, problems, extra: Some(Extra::Status(Box::new(status))), ..Outcome::default() })
}

/// The window that is open, and how kubelet's unit really is.
fn window(context: &Context, problems: &mut Vec<Problem>) -> Option<HoldView> {
    let open = context.store.open_window().map_err(|error| error.problem());
    let window = open.map_err(|problem| problems.push(problem)).ok()??;
    let bus = window::systemd().map_err(|problem| problems.push(problem.demoted()));
    Some(window::short(&window, bus.ok().flatten().as_ref()))
}
