//! The deadline: a timer of systemd that starts a paused unit again, even if netfix is gone. Where the timer was stopped, or what
//! it ran failed, the next snapshot, which a timer starts, begins that work again.

use std::path;
use std::time::Duration;

use crate::clock::boottime;
use crate::kubelet::unit::not_paused;
use crate::model::problem::{KubeletCause, WindowCause};
use crate::model::{ProbeRate, Problem, Window};
use crate::store::{Guard, Store};
use crate::systemd::{self, Bus};
use crate::window::bus;
use crate::window::records::{is_of_other_boot, is_owner_alive};
use crate::window::session::WindowSession;

/// systemd starts what the deadline runs after this time.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Arms the recorded timer for the unit that is about to be paused.
pub(crate) fn arm(
    session: &mut WindowSession,
    bus: &Bus,
    unit: &str,
    timer: &str,
    deadline: Duration,
) -> Result<(), KubeletCause> {
    let pause = session.window().pause.as_ref();
    let rate = pause.and_then(|pause| pause.probe_rate);
    let folder = session.guard.as_ref().map(Guard::state_dir);
    let folder = folder.and_then(|folder| path::absolute(folder).ok());
    let folder = folder.unwrap_or_default().display().to_string();
    let words = words(&folder, rate);
    systemd::arm(bus, timer, unit, deadline, &words).map_err(not_paused)?;
    session.note_armed();
    Ok(())
}

/// Arms a timer of this process for a unit that an earlier one paused.
pub(crate) fn rearm(
    session: &mut WindowSession,
    bus: &Bus,
    deadline: Duration,
) -> Result<(), Problem> {
    let Some(pause) = &session.window().pause else {
        return Ok(());
    };
    let (unit, timer) = (pause.unit.clone(), systemd::timer_name());
    session
        .note_rearming(&timer, deadline.as_secs())
        .map_err(|error| error.problem())?;
    arm(session, bus, &unit, &timer, deadline).map_err(|cause| cause.error(unit))
}

/// Stops what starts the unit again at the deadline, for a unit that runs.
pub(crate) fn disarm(bus: &Bus, window: &Window) -> Option<Problem> {
    let cause = systemd::disarm(bus).err()?;
    let unit = window.pause.as_ref().map(|pause| pause.unit.clone());
    Some(KubeletCause::TimerNotStopped { cause }.warning(unit.unwrap_or_default()))
}

/// The arguments of netfix at the deadline of a unit that is still paused: a kubelet that starts while pods have no address may
/// rebuild them. While a window's process runs it has the lock, and this does nothing.
fn words(folder: &str, rate: Option<ProbeRate>) -> Vec<String> {
    let words = ["--state-dir", folder, "restore", "--nic-wait", "10s"];
    let mut words = words.map(str::to_owned).to_vec();
    if let Some(ProbeRate(rate)) = rate {
        words.extend(["--probe-rate".to_owned(), rate.to_string()]);
    }
    words
}

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
    let repeated = rearm(&mut session, &bus, AT_ONCE);
    let window = session.leave();
    let unit = pause.unit;
    Some(match repeated {
        Ok(()) => WindowCause::DeadlineRepeated { unit }.warning(window.id),
        Err(problem) => problem,
    })
}

#[cfg(test)]
mod tests {
    use crate::kubelet::deadline::*;

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
    fn the_restore_at_the_deadline_has_the_rate_of_its_window() {
        let restore = words("/s", Some("15/s".parse().unwrap())).join(" ");
        assert_eq!(
            restore,
            "--state-dir /s restore --nic-wait 10s --probe-rate 15"
        );
        let restore = words("/s", None).join(" ");
        assert_eq!(restore, "--state-dir /s restore --nic-wait 10s");
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
