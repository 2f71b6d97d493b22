//! Kubelet that is still stopped after the deadline of a dead netfix: its timer was stopped, or what it ran failed. The next
//! snapshot, which a timer starts, begins that work again.

use std::time::Duration;

use crate::kubelet::deadline;
use crate::model::problem::WindowCause;
use crate::model::{Problem, Window};
use crate::store::Store;
use crate::systemd;
use crate::window::bus;
use crate::window::clock::boottime;
use crate::window::records::{is_of_other_boot, is_owner_alive};
use crate::window::session::WindowSession;

/// systemd starts what the deadline runs after this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Whether the window's deadline has passed, and its process has not resumed kubelet and never will.
fn is_overdue(window: &Window) -> bool {
    has_passed(window, boottime()) && !is_of_other_boot(window) && !is_owner_alive(window)
}

/// Whether the deadline of a paused unit has passed; `now` is in milliseconds since the machine's boot.
fn has_passed(window: &Window, now: u64) -> bool {
    let deadline_at = window.deadline_at();
    window.is_paused() && deadline_at.is_some_and(|at| window.started_boottime + at < now)
}

/// Has systemd do at once what the deadline was to do, if kubelet is overdue and nothing is at work; returns what to report.
pub(crate) fn repeat_deadline(store: &Store) -> Option<Problem> {
    let find = || store.open_window().ok().flatten().filter(is_overdue);
    let pause = find()?.pause?;
    let bus = bus::connect().ok().flatten()?;
    let is_left_alone = systemd::is_held(&bus, &pause.unit).ok()?
        && !systemd::is_pending(&bus, &pause.timer).ok()?
        && !systemd::is_deadline_at_work(&bus).ok()?;
    if !is_left_alone {
        return None;
    }
    let guard = store.lock("snapshot").ok()?;
    let mut session = WindowSession::visit(find()?, guard);
    let repeated = deadline::rearm(&mut session, &bus, AT_ONCE);
    let window = session.leave();
    let unit = pause.unit;
    Some(match repeated {
        Ok(()) => WindowCause::DeadlineRepeated { unit }.warning(window.id),
        Err(problem) => problem,
    })
}

#[cfg(test)]
mod tests {
    use crate::kubelet::overdue::*;

    /// A window that paused kubelet for 600 s, and the end of that in milliseconds since the machine's boot.
    fn paused() -> (Window, u64) {
        let text = include_str!("../../testdata/windows/well.json");
        let mut window: Window = serde_json::from_str(text).unwrap();
        let pause = window.pause.as_mut().unwrap();
        pause.resumed = None;
        let armed = window.started_boottime + pause.armed.unwrap();
        (window, armed + 600_000)
    }

    #[test]
    fn a_deadline_passes_once() {
        let (mut window, end) = paused();
        assert_eq!(window.pause.as_ref().unwrap().deadline, 600);
        assert!(!has_passed(&window, end));
        assert!(has_passed(&window, end + 1));
        window.pause.as_mut().unwrap().resumed = Some(1);
        assert!(!has_passed(&window, end + 1));
    }

    #[test]
    fn a_deadline_passes_although_a_full_disk_kept_its_begin_out_of_the_record() {
        let (mut window, end) = paused();
        window.pause.as_mut().unwrap().armed = None;
        // The timer is armed soon after the phase has begun.
        assert!(!has_passed(&window, end - 60_000));
        assert!(has_passed(&window, end + 1));
    }
}
