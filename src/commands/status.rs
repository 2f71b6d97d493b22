//! `netfix status`: the state of snapshots, runtimes, lock and window on one screen; changes nothing.

use std::io;

use crate::cli::Runtimes;
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::stored::{age, load, load_node};
use crate::maintenance::follow::{self, Followed};
use crate::maintenance::kubelet_pause;
use crate::maintenance::window_status::WindowStatus;
use crate::matching::Selection;
use crate::model::Problem;
use crate::model::problem::WindowCause;
use crate::report::outcome::{Early, Exit, Outcome};
use crate::report::{Extra, HoldView, NodeView, RuntimeView, StatusView};

pub(super) fn run(runtimes: &Runtimes, context: &mut Context) -> Result<Outcome, Early> {
    let selection = Selection::everything();
    let stored = load(&context.store, &selection)?;
    let mut problems = stored.problems;
    let mut session = Inventory::open(&selection)?;
    // One runtime that hangs must not hide the rest.
    if let Err(refusal) = session.attribute(&runtimes.config(), &selection) {
        problems.extend(refusal.problems);
    }
    let node_state = load_node(&context.store, &mut problems);
    let covered = session.pods.iter().filter(|pod| {
        let mut extensions = stored
            .checkpoints
            .iter()
            .filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref());
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
    let node = NodeView {
        created: node_state.map(|state| state.created),
        ..NodeView::of(&session.node)
    };
    problems.append(&mut session.problems);
    let exit = if problems.iter().any(Problem::is_error) {
        Exit::Failed
    } else {
        Exit::Done
    };
    Ok(Outcome {
        exit,
        node,
        problems,
        extra: Some(Extra::Status(Box::new(status))),
        ..Outcome::default()
    })
}

/// The open window, and the state of kubelet's unit.
fn window(context: &Context, problems: &mut Vec<Problem>) -> Option<HoldView> {
    let open = context.store.open_window().map_err(|error| error.problem());
    let window = open.map_err(|problem| problems.push(problem)).ok()??;
    let bus = kubelet_pause::systemd().map_err(|problem| problems.push(problem.demoted()));
    let status = WindowStatus::new(window, bus.ok().flatten().as_ref());
    Some(HoldView::new(&status))
}

/// `netfix status --follow`: the log of the open window, from any login.
pub(super) fn follow(context: &mut Context) -> Result<Outcome, Early> {
    // With -o json stdout has the document.
    let followed = if context.json {
        follow::run(&context.store, &mut io::stderr())?
    } else {
        follow::run(&context.store, &mut io::stdout())?
    };
    Ok(match followed {
        Followed::NoWindow => Outcome {
            problems: vec![WindowCause::NoneOpen.info("window")],
            ..Outcome::default()
        },
        Followed::ReaderGone => Outcome::default(),
        Followed::Closed(status) => Outcome {
            extra: status.map(|status| Extra::Window(Box::new(HoldView::new(&status)))),
            ..Outcome::default()
        },
    })
}
