//! `netfix check`: could every running pod be restored now? For cron and monitoring, so it always ends with a verdict.

use std::collections::BTreeSet;

use crate::check::{self, Check};
use crate::cli::CheckArgs;
use crate::context::Context;
use crate::inventory::nics;
use crate::refusal::Refusal;
use crate::report::{
    self, CheckStatus, Document, Extra, HoldView, OpenWindow, ReportView, Standing, Surroundings,
};
use crate::store::{self, Store};
use crate::window::status;

/// Checks, and writes the metrics where they are wanted.
pub(super) fn run(args: &CheckArgs, context: &mut Context) -> Document {
    let checked = checked(args, context);
    let (mut answer, mut view) = report::check(checked);
    view.status = CheckStatus::of_all(&answer.problems);
    view.max_age = args.max_age;
    view.is_selection = args.selectors.is_used();
    if let Some(path) = &args.textfile {
        let around = surroundings(&context.store);
        let metrics = report::metrics(&view, &answer.problems, &around);
        if let Err(error) = store::replace(path, metrics.as_bytes(), 0o644) {
            answer.problems.push(error.problem());
            // Monitoring does not get the metrics.
            if view.status != CheckStatus::Critical {
                view.status = CheckStatus::Unknown;
            }
        }
    }
    Document {
        exit: view.status as u8,
        extra: Some(Extra::Check(view)),
        ..answer
    }
}

/// Windows and NICs, for the metrics. What cannot be read is left out; the check itself reports it.
fn surroundings(store: &Store) -> Surroundings {
    let ids = store.windows().unwrap_or_default();
    let mut closed = ids.iter().rev();
    let last = closed.find_map(|id| store.load_window(id).ok().flatten());
    let mut unread = Vec::new();
    let open = status::of_open(store, &mut unread);
    let open = match open {
        Some(status) => OpenWindow::Open(HoldView::new(&status)),
        None if unread.is_empty() => OpenWindow::Closed,
        None => OpenWindow::Unknown,
    };
    Surroundings {
        open,
        last: last.map(|window| ReportView::new(window, Standing::Closed)),
        nics: nics::read(&BTreeSet::new()).unwrap_or_default(),
    }
}

fn checked(args: &CheckArgs, context: &mut Context) -> Result<check::Readiness, Refusal> {
    super::common::prepare()?;
    let check = Check {
        selection: &args.selectors.selection()?,
        runtimes: &args.runtimes.config(),
        max_age: args.max_age,
        max_new: args.max_new,
        devices: &args.devices,
    };
    check::run(&check, &context.store, context.progress.as_mut())
}
