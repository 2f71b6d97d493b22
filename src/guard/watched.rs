//! The end of the watch after a restore: what happened to its pods meanwhile. The watch itself holds nothing: whatever is lost in it
//! is another loss.

use std::time::Duration;

use crate::clock;
use crate::model::window::{GuardRecord, GuardWatch};
use crate::model::{Problem, Window};
use crate::records::stored::load;
use crate::store::Store;
use crate::upgrade::request::UpgradeRequest;
use crate::window::rebuild_check::query;
use crate::window::session::WindowSession;

/// How long a runtime that stops with kubelet, as k3s's containerd does, may take to answer again.
const BACK_AGAIN: Duration = Duration::from_secs(90);
/// While another netfix has the lock, or the disk is full.
const RETRY: u64 = 5000;

/// A watch that is over.
pub(crate) struct WatchEnd {
    pub window: Window,
    pub problems: Vec<Problem>,
}

/// Ends the watch if its time is over.
pub(super) fn end_if_over(
    record: &mut GuardRecord,
    request: &UpgradeRequest<'_>,
    store: &Store,
) -> Option<WatchEnd> {
    let now = clock::boottime();
    record.watch.as_ref().filter(|watch| watch.until <= now)?;
    end(record, request, store)
}

/// Ends the watch: asks the runtimes what became of the pods, and adds that to the record of the restore. `None` where there is none, or
/// its record cannot be written now.
pub(super) fn end(
    record: &mut GuardRecord,
    request: &UpgradeRequest<'_>,
    store: &Store,
) -> Option<WatchEnd> {
    let watch = record.watch.take()?;
    // An old record goes.
    let window = store.load_window(&watch.window).ok().flatten()?;
    let after = query::after(
        &window.pods,
        &request.runtimes,
        &[],
        (BACK_AGAIN, &|| false),
        &request.selection,
    );
    let stored = load(store, &request.selection).unwrap_or_default();
    let lock = store.clone().patient(Duration::ZERO, |_| {}).lock("guard");
    let amended = lock.and_then(|guard| {
        let mut session = WindowSession::visit(window, guard);
        let problems = session.note_watched(after, &stored);
        Ok((session.amend()?, problems))
    });
    let Ok((window, problems)) = amended else {
        let until = clock::boottime() + RETRY;
        record.watch = Some(GuardWatch { until, ..watch });
        return None;
    };
    if let Some(last) = &mut record.last
        && last.window.as_ref() == Some(&window.id)
    {
        last.exit = window.exit.unwrap_or(last.exit);
    }
    Some(WatchEnd { window, problems })
}
