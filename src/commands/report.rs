//! `netfix report`: what is left to tell of a maintenance window, as text and as a page; nothing is locked.

use std::path::Path;

use super::generations::or_refuse;
use super::session::node_view;
use super::window::is_kept;
use super::{Context, Early, Exit, Outcome};
use crate::model::{Code, Problem, Window};
use crate::report::{Extra, ReportView, Standing, WindowView, page};
use crate::store::{self, Error, Store};

/// So many lines of a window's log are on the page.
const LOG_LINES: usize = 200;

/// The window that `wanted` names by its id or the beginning of that, else the newest.
pub(super) fn run(
    wanted: Option<&str>,
    html: Option<&Path>,
    context: &mut Context,
) -> Result<Outcome, Early> {
    let store = &context.store;
    let Found { window, standing, mut problems } = find(wanted, store)?;
    let mut view = ReportView::new(window, standing);
    let mut exit = Exit::Done;
    if let Some(path) = html {
        match write(&view, path, store, &mut problems) {
            Ok(()) => view.computed.html = Some(path.display().to_string()),
            Err(error) => {
                problems.push(error.problem());
                exit = Exit::Failed;
            }
        }
    }
    let extra = Some(Extra::Report(Box::new(view)));
    Ok(Outcome { exit, node: node_view(), problems, extra, ..Outcome::default() })
}

/// Writes the page. A log that cannot be read is missing on it, and that is told.
fn write(view: &ReportView, path: &Path, store: &Store, problems: &mut Vec<Problem>) -> Result<(), Error> {
    let log = store.window_log(&view.window, LOG_LINES);
    let log = log.unwrap_or_else(|error| {
        problems.push(error.problem().demoted());
        None
    });
    store::publish(path, &page(view, log.as_deref()))
}

/// The window that was asked for.
struct Found {
    window: Window,
    standing: Standing,
    problems: Vec<Problem>,
}

fn find(wanted: Option<&str>, store: &Store) -> Result<Found, Early> {
    let mut ids = or_refuse(store.windows())?;
    let mut problems = Vec::new();
    let open = match (store.open_window(), wanted) {
        // A record is not worse for it.
        (Err(error), Some(wanted)) if ids.iter().any(|id| id.starts_with(wanted)) => {
            problems.push(error.problem().demoted());
            None
        }
        (open, _) => or_refuse(open)?,
    };
    ids.extend(open.iter().map(|open| open.id.clone()));
    let id = choose(wanted, &ids).map_err(|problem| Box::new(Outcome::refused(problem)))?;
    if let Some(window) = open.filter(|open| open.id == id) {
        let standing = of_open(&window);
        return Ok(Found { window, standing, problems });
    }
    let gone = || Box::new(Outcome::refused(Problem::error(Code::NotFound, id, "it was removed just now")));
    let window = or_refuse(store.load_window(id))?.ok_or_else(gone)?;
    Ok(Found { window, standing: Standing::Closed, problems })
}

/// Whether somebody is at work in an open window.
fn of_open(window: &Window) -> Standing {
    if is_kept(window) { Standing::Kept } else { Standing::Left }
}

/// The one of these ids, oldest first, that is wanted.
fn choose<'a>(wanted: Option<&str>, ids: &'a [String]) -> Result<&'a str, Problem> {
    let refusal = |object: &str, message: String| Problem::error(Code::NotFound, object, message);
    let Some(wanted) = wanted else {
        let none = "no window has been recorded here: `netfix upgrade` and `netfix pause` do that";
        return ids.last().map(String::as_str).ok_or_else(|| refusal("", none.to_owned()));
    };
    let begin: Vec<&str> = ids.iter().map(String::as_str).filter(|id| id.starts_with(wanted)).collect();
    match begin.as_slice() {
        [one] => Ok(one),
        // An id can be the beginning of another.
        [one, ..] if *one == wanted => Ok(one),
        [] if ids.is_empty() => {
            Err(refusal(wanted, "there is no such window; none has been recorded here".to_owned()))
        }
        [] => Err(refusal(wanted, format!("there is no such window; there are {}", ids.join(", ")))),
        several => Err(refusal(wanted, format!("several windows begin like that: {}", several.join(", ")))),
    }
}

/// Every window in one line, the newest last. One that cannot be read does not hide the others.
pub(super) fn list(context: &mut Context) -> Result<Outcome, Early> {
    let store = &context.store;
    let mut problems = Vec::new();
    let mut views = Vec::new();
    for id in or_refuse(store.windows())? {
        match store.load_window(&id) {
            Ok(Some(window)) => views.push(WindowView::new(ReportView::new(window, Standing::Closed))),
            Ok(None) => {}
            Err(error) => {
                problems.push(error.problem().demoted());
                views.push(WindowView { id, window: None });
            }
        }
    }
    match store.open_window() {
        Ok(open) => views.extend(open.map(|open| {
            let standing = of_open(&open);
            WindowView::new(ReportView::new(open, standing))
        })),
        Err(error) => problems.push(error.problem()),
    }
    let exit = if problems.iter().any(|problem| problem.severity == crate::model::Severity::Error) {
        Exit::Partly
    } else {
        Exit::Done
    };
    let extra = Some(Extra::Windows(views));
    Ok(Outcome { exit, node: node_view(), problems, extra, ..Outcome::default() })
}
