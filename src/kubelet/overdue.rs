//! Kubelet that is still stopped after the deadline of a dead netfix: its timer was stopped, or what it ran failed. The next
//! snapshot, which a timer starts, begins that work again.

use std::time::Duration;

use crate::kubelet::kubelet_pause;
use crate::model::problem::WindowCause;
use crate::model::{Problem, Window};
use crate::store::Store;
use crate::systemd;
use crate::window::clock::boottime;
use crate::window::session::{WindowSession, is_of_other_boot, is_owner_alive};

/// systemd starts what the deadline runs after this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Whether the window's deadline has passed, and its process has not resumed kubelet and never will.
fn is_overdue(window: &Window) -> bool {
    let deadline = window.pause.as_ref().and_then(|pause| {
        let armed = window.started_boottime + pause.armed?;
        Some(armed + pause.deadline * 1000)
    });
    window.is_paused()
        && deadline.is_some_and(|deadline| deadline < boottime())
        && !is_of_other_boot(window)
        && !is_owner_alive(window)
}

/// Has systemd do at once what the deadline was to do, if kubelet is overdue and nothing is at work; returns what to report.
pub(crate) fn repeat_deadline(store: &Store) -> Option<Problem> {
    let find = || store.open_window().ok().flatten().filter(is_overdue);
    let pause = find()?.pause?;
    let bus = kubelet_pause::systemd().ok().flatten()?;
    let is_left_alone = systemd::is_held(&bus, &pause.unit).ok()?
        && !systemd::is_pending(&bus, &pause.timer).ok()?
        && !systemd::is_deadline_at_work(&bus).ok()?;
    if !is_left_alone {
        return None;
    }
    let guard = store.lock("snapshot").ok()?;
    let mut session = WindowSession::visit(find()?, guard);
    let repeated = session.rearm(&bus, AT_ONCE);
    let window = session.leave();
    let unit = pause.unit;
    Some(match repeated {
        Ok(()) => WindowCause::DeadlineRepeated { unit }.warning(window.id),
        Err(problem) => problem,
    })
}
