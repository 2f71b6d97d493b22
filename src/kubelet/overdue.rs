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
    let deadline_at = window.deadline_at();
    window.is_paused()
        && deadline_at.is_some_and(|at| window.started_boottime + at < boottime())
        && !is_of_other_boot(window)
        && !is_owner_alive(window)
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
    use crate::inventory::observe::node_identity;
    use crate::kubelet::overdue::*;
    use crate::model::pod::identity::Holder;
    use crate::model::window::{KubeletPause, Phase, PhaseName};

    /// A window that was opened when the machine booted, by a process that is gone, and paused kubelet then.
    fn paused(armed: Option<u64>, deadline: u64) -> Window {
        let text = include_str!("../../testdata/windows/well.json");
        let window: Window = serde_json::from_str(text).unwrap();
        let pause = KubeletPause {
            armed,
            deadline,
            resumed: None,
            ..window.pause.clone().unwrap()
        };
        Window {
            node: node_identity(),
            owner: Holder {
                pid: u32::MAX,
                ..window.owner
            },
            started_boottime: 0,
            pause: Some(pause),
            phases: vec![Phase {
                name: PhaseName::Pause,
                from: 1,
                to: None,
                ok: None,
            }],
            ..window
        }
    }

    #[test]
    fn a_deadline_has_passed_although_a_full_disk_kept_its_begin_out_of_the_record() {
        let far = boottime() + 60_000;
        assert!(is_overdue(&paused(Some(1), 0)));
        assert!(!is_overdue(&paused(Some(far), 0)));
        assert!(is_overdue(&paused(None, 0)));
        assert!(!is_overdue(&paused(None, far / 1000)));
    }
}
