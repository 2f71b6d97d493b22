//! `netfix status`: the state of snapshots, runtimes, lock and window on one screen; changes nothing.

use std::io;

use crate::cli::Runtimes;
use crate::commands::window::pause::window;
use crate::context::Context;
use crate::model::problem::WindowCause;
use crate::records::stored::age;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, HoldView, NodeView, RuntimeView, StatusView};
use crate::window::follow;
use crate::window::follow::Followed;
use crate::window::status;
use crate::window::status::Status;

pub(crate) fn run(runtimes: &Runtimes, context: &mut Context) -> Result<Document, Refusal> {
    let Status {
        node,
        recorded,
        stored,
        generations,
        running,
        covered,
        private,
        runtimes,
        window,
        problems,
    } = status::run(&runtimes.config(), context)?;
    let runtimes = runtimes.into_iter().map(|queried| RuntimeView {
        endpoint: queried.endpoint.display().to_string(),
        version: queried.version,
        pods: queried.sandboxes,
    });
    let last_success = recorded.as_ref().and_then(|state| state.complete.clone());
    let status = StatusView {
        state_dir: context.store.folder().display().to_string(),
        checkpoints: stored.checkpoints.len(),
        damaged: stored.damaged.len(),
        generations,
        last_success_age: last_success.as_deref().map(|time| age(time).into()),
        last_success,
        running,
        covered,
        private_namespaces: private,
        runtimes: runtimes.collect(),
        lock: context.store.holder(),
        window: window.as_ref().map(HoldView::new),
    };
    Ok(Document {
        exit: Exit::Failed.if_errors(&problems) as u8,
        node: NodeView::recorded(&node, recorded.map(|state| state.created)),
        problems,
        extra: Some(Extra::Status(Box::new(status))),
        ..Document::default()
    })
}

/// `netfix status --follow`: the log of the open window, from any login.
pub(crate) fn follow(context: &mut Context) -> Result<Document, Refusal> {
    // With -o json stdout has the document.
    let followed = if context.json {
        follow::run(&context.store, &mut io::stderr())?
    } else {
        follow::run(&context.store, &mut io::stdout())?
    };
    let mut document = Document::default();
    match followed {
        Followed::NoWindow => document.problems = vec![WindowCause::NoneOpen.info("window")],
        Followed::ReaderGone => {}
        Followed::Closed(status) => {
            let exit = status.as_ref().and_then(|status| status.window.exit);
            document.exit = exit.unwrap_or_default();
            document.extra = window(status.map(|status| *status));
        }
    }
    Ok(document)
}
