//! Reads the records of windows, and the window that is open; takes no lock.

use std::thread;
use std::time::{Duration, Instant};

use crate::clock;
use crate::inventory::{node, procfs};
use crate::model::problem::RecordCause;
use crate::model::window::Standing;
use crate::model::{Problem, Window};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::window::observed::still_open;

/// How often a wait reads the record.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);

/// Whether the process that opened a window still runs, and is another one.
pub(crate) fn is_owner_alive(window: &Window) -> bool {
    window.owner != procfs::own() && procfs::is_running(&window.owner)
}

/// The open window whose process runs, if it is younger than `limit`.
pub(crate) fn working(store: &Store, limit: Duration) -> Option<Window> {
    let open = store.open_window().ok().flatten();
    open.filter(is_owner_alive).filter(|window| {
        let age = clock::boottime().saturating_sub(window.started_boottime);
        Duration::from_millis(age) < limit
    })
}

/// Whether the process that was to close this open window is gone. That of a pause is gone as a rule.
pub(crate) fn is_left(window: &Window) -> bool {
    window.command != "pause" && !is_owner_alive(window)
}

/// Whether a window is of another boot: masks and timers do not survive a reboot.
pub(crate) fn is_of_other_boot(window: &Window) -> bool {
    !window.node.is_same(&node::node_identity())
}

/// Whether the process of this window died and left pods behind.
pub(crate) fn is_abandoned(window: &Window) -> bool {
    let is_open = window.ended.is_none() && !is_owner_alive(window);
    is_open && !window.pods.is_empty() && !is_of_other_boot(window)
}

/// The window that `upgrade` finds.
pub(crate) enum EarlierWindow {
    Nothing,
    /// It is over, and its record is not closed.
    Finished(Window),
    /// An interrupted netfix left it open in this boot.
    Interrupted(Window),
}

/// Finds the window that is open. Refuses when the process still runs that opened it.
pub(crate) fn find_earlier(store: &Store) -> Result<EarlierWindow, Refusal> {
    Ok(match store.unclosed_window()? {
        None => EarlierWindow::Nothing,
        Some(window) if window.ended.is_some() => EarlierWindow::Finished(window),
        Some(window) if is_owner_alive(&window) => return Err(still_open(&window, store).into()),
        Some(window) => EarlierWindow::Interrupted(window),
    })
}

/// One window.
pub(crate) struct WindowRecord {
    pub window: Window,
    pub standing: Standing,
    /// Why another window could not be read.
    pub problems: Vec<Problem>,
}

/// The window whose id is `wanted` or starts like it, else the newest.
pub(crate) fn find(wanted: Option<&str>, store: &Store) -> Result<WindowRecord, Refusal> {
    // First the open window: one that is closed meanwhile is in both.
    let open = store.open_window();
    let mut ids = store.windows()?;
    let mut problems = Vec::new();
    let open = match (open, wanted) {
        // A closed window does not need the open one.
        (Err(error), Some(wanted)) if ids.iter().any(|id| id.starts_with(wanted)) => {
            problems.push(error.problem().demoted());
            None
        }
        (open, _) => open?,
    };
    let open = open.filter(|open| !ids.contains(&open.id));
    ids.extend(open.iter().map(|open| open.id.clone()));
    // Restores by hand that follow a window repaired what it left.
    let last = match (wanted, &open) {
        (None, None) => store.last_window()?,
        _ => None,
    };
    let id = last.as_ref().map(|last| Ok(last.id.as_str()));
    let id = id.unwrap_or_else(|| choose(wanted, &ids))?;
    let (window, standing) = if let Some(open) = open.filter(|open| open.id == id) {
        let standing = of_open(&open);
        (open, standing)
    } else {
        let gone = || Refusal::from(RecordCause::Gone.error(id));
        (store.load_window(id)?.ok_or_else(gone)?, Standing::Closed)
    };
    Ok(WindowRecord {
        window,
        standing,
        problems,
    })
}

/// Waits until a window is closed, but no longer than that; `None`: without a limit. `wanted` is the window's id or its
/// beginning, else the open window is meant, or the newest. Calls `abandoned` once if the process of an upgrade is gone.
pub(crate) fn wait(
    wanted: Option<&str>,
    limit: Option<Duration>,
    store: &Store,
    abandoned: &mut dyn FnMut(&Window),
) -> Result<WindowRecord, Refusal> {
    let begin = Instant::now();
    let mut is_reported = false;
    let mut found = find(wanted, store)?;
    loop {
        let is_over = limit.is_some_and(|limit| begin.elapsed() >= limit);
        if found.standing == Standing::Closed || is_over {
            return Ok(found);
        }
        // The process of a pause is gone as a rule.
        let is_abandoned = found.standing == Standing::Left && found.window.command != "pause";
        if is_abandoned && !std::mem::replace(&mut is_reported, true) {
            abandoned(&found.window);
        }
        let left = limit.map_or(INTERVAL, |limit| limit.saturating_sub(begin.elapsed()));
        thread::sleep(INTERVAL.min(left));
        found = find(Some(&found.window.id), store)?;
    }
}

/// Whether the process of an open window still runs.
fn of_open(window: &Window) -> Standing {
    if is_owner_alive(window) {
        Standing::Kept
    } else {
        Standing::Left
    }
}

/// The one of these ids, oldest first, that is wanted.
fn choose<'a>(wanted: Option<&str>, ids: &'a [String]) -> Result<&'a str, Problem> {
    let Some(wanted) = wanted else {
        let newest = ids.last().map(String::as_str);
        return newest.ok_or_else(|| RecordCause::Nothing.error(""));
    };
    let matching: Vec<&str> = ids
        .iter()
        .map(String::as_str)
        .filter(|id| id.starts_with(wanted))
        .collect();
    match matching.as_slice() {
        [one] => Ok(one),
        // An id can be the beginning of another.
        [one, ..] if *one == wanted => Ok(one),
        [] => {
            let windows = ids.to_vec();
            Err(RecordCause::NoSuch { windows }.error(wanted))
        }
        several => {
            let windows = several.iter().map(ToString::to_string).collect();
            Err(RecordCause::Ambiguous { windows }.error(wanted))
        }
    }
}

/// The id of a window, and the window where its record can be read.
type ListedWindow = (String, Option<(Window, Standing)>);

/// Every window, the newest last, and why some cannot be read.
pub(crate) fn list(store: &Store) -> Result<(Vec<ListedWindow>, Vec<Problem>), Refusal> {
    let (mut listed, mut problems) = (Vec::new(), Vec::new());
    let open = store.open_window();
    for id in store.windows()? {
        let window = match store.load_window(&id) {
            Ok(None) => continue,
            Ok(window) => window.map(|window| (window, Standing::Closed)),
            Err(error) => {
                problems.push(error.problem().demoted());
                None
            }
        };
        listed.push((id, window));
    }
    let is_closed = |open: &Window| listed.iter().any(|(id, _): &ListedWindow| *id == open.id);
    match open {
        Ok(open) => listed.extend(open.filter(|open| !is_closed(open)).map(|open| {
            let standing = of_open(&open);
            (open.id.clone(), Some((open, standing)))
        })),
        Err(error) => problems.push(error.problem()),
    }
    Ok((listed, problems))
}
