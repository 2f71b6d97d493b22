//! `netfix report`: the record of a maintenance window, as text and as an HTML page; takes no lock.

use std::path::Path;

use crate::cli::ReportArgs;
use crate::commands::common::answer;
use crate::context::Context;
use crate::model::Problem;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, ReportView, WindowView, page};
use crate::store::{self, Store, StoreError};
use crate::window::observed;
use crate::window::records::{self, WindowRecord};

/// The page has this many lines of a window's log.
const LOG_LINES: usize = 200;

/// The window that is named by its id or the beginning of that, else the newest.
pub(crate) fn run(args: &ReportArgs, context: &mut Context) -> Result<Document, Refusal> {
    let store = &context.store;
    let WindowRecord {
        window,
        standing,
        mut problems,
    } = records::find(args.window.as_deref(), store)?;
    let now = observed::of_open(&window, standing, store);
    let mut view = ReportView::observed(window, standing, now.as_ref());
    let mut exit = Exit::Done;
    if let Some(path) = &args.html {
        match write(&view, path, store, &mut problems) {
            Ok(()) => view.computed.html = Some(path.display().to_string()),
            Err(error) => {
                problems.push(error.problem());
                exit = Exit::Failed;
            }
        }
    }
    Ok(answer(exit, problems, Some(Extra::Report(Box::new(view)))))
}

/// Writes the page. If the log cannot be read, the page lacks it and a warning reports it.
fn write(
    view: &ReportView,
    path: &Path,
    store: &Store,
    problems: &mut Vec<Problem>,
) -> Result<(), StoreError> {
    let log = store.window_log(&view.window, LOG_LINES);
    let log = log.unwrap_or_else(|error| {
        problems.push(error.problem().demoted());
        None
    });
    store::publish(path, page(view, log.as_deref()).as_bytes())
}

/// Every window, and what the guard left alone, in one line each, the newest last.
pub(crate) fn list(context: &mut Context) -> Result<Document, Refusal> {
    let (listed, problems) = records::list(&context.store)?;
    let windows = listed.into_iter().map(|(id, window)| match window {
        Some((window, standing)) => WindowView::new(ReportView::new(window, standing)),
        None => WindowView::unread(id),
    });
    let mut windows: Vec<_> = windows.collect();
    // A guard whose record is damaged writes a new one, and says so.
    let deeds = context.store.load_guard().unwrap_or_default().deeds;
    for left in deeds.into_iter().filter(|deed| deed.left) {
        WindowView::insert_left(&mut windows, left);
    }
    let exit = Exit::Partly.if_errors(&problems);
    let extra = Extra::Windows(windows);
    Ok(answer(exit, problems, Some(extra)))
}
