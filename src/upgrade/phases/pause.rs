//! The pause of kubelet, and how long it lasts: with kubelet at work COMMAND would cost pods.

use std::thread;
use std::time::{Duration, Instant};

use crate::clock::boottime;
use crate::kubelet::{deadline, pause, unit};
use crate::model::problem::KubeletCause;
use crate::model::window::PhaseName;
use crate::model::{Problem, Window};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::systemd::Bus;
use crate::upgrade::ledger::{Area, Ledger};
use crate::upgrade::phases::watch;
use crate::upgrade::request::UpgradeRequest;
use crate::window::background::Background;
use crate::window::event::Event;
use crate::window::session::WindowSession;

/// How often netfix reads the window's record.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long a restore by a person may hold the lock.
const LOCK_LIMIT: Duration = Duration::from_secs(60);

/// Pauses the unit, if there is one.
pub(crate) fn run(ledger: &mut Ledger, request: &UpgradeRequest<'_>) -> Result<(), Refusal> {
    let (session, bus) = (&mut ledger.session, ledger.bus.as_ref());
    if is_still_paused(session, bus, request.deadline)? {
        return Ok(());
    }
    // An interrupted netfix may have died while it stopped or started its unit.
    let (unit, note) = unit::find_for_upgrade(bus, request.pause, Some(session.window()))?;
    ledger.problems.add(Area::Preflight, note);
    if let (Some(bus), Some(unit)) = (bus, unit) {
        pause::pause(session, bus, &unit, request.deadline, request.probe_rate)?;
    } else {
        session.log(&Event::NothingToPause);
        session.save()?;
    }
    Ok(())
}

/// Whether the unit is paused since an interrupted window; arms a deadline of this process then. What the killed process
/// requested from systemd may happen only now.
fn is_still_paused(
    session: &mut WindowSession,
    bus: Option<&Bus>,
    deadline: Duration,
) -> Result<bool, Problem> {
    let window = session.window();
    if !window.is_paused() || !unit::is_paused(window, bus)? {
        return Ok(false);
    }
    session.begin(PhaseName::Pause, &Event::StillPaused);
    let armed = match bus {
        Some(bus) => deadline::rearm(session, bus, deadline),
        None => Ok(()),
    };
    session.end(armed.is_ok());
    armed?;
    unit::is_paused(session.window(), bus)
}

/// Starts to warn when the pause begins to matter; `None` where nothing was paused.
pub(crate) fn watch(session: &WindowSession) -> Option<Background> {
    let window = session.window();
    let pause = window.pause.as_ref()?;
    let paused = window.started_boottime + pause.paused?;
    let log = session.log_file.for_thread();
    Some(watch::budget(log, paused, pause.deadline))
}

/// Verifies that nothing has started the unit; `cause` is what it means if something has.
pub(crate) fn verify(ledger: &Ledger, cause: KubeletCause) -> Result<(), Problem> {
    let window = ledger.session.window();
    if unit::is_paused(window, ledger.bus.as_ref())? {
        return Ok(());
    }
    let unit = window.pause.as_ref().map(|pause| pause.unit.as_str());
    Err(cause.error(unit.unwrap_or_default()))
}

/// Keeps it paused for a repair, until `netfix resume`, the deadline or a signal. Waits without the lock; returns the window if `netfix resume` has resumed its unit.
pub(crate) fn hold(ledger: &mut Ledger, store: &Store) -> Result<Option<Window>, Problem> {
    let Ledger {
        session, signals, ..
    } = ledger;
    session.guard = None;
    let window = session.window();
    let deadline = window.started_boottime + window.deadline_at().unwrap_or_default();
    let left = Duration::from_millis(deadline.saturating_sub(boottime()));
    let until = Instant::now() + left;
    let mut resumed = None;
    while resumed.is_none() && Instant::now() < until && !signals.interrupted() {
        thread::sleep(INTERVAL);
        let stored = store.open_window().ok().flatten();
        resumed = stored.filter(|stored| !stored.is_paused());
    }
    let store = store.clone().patient(LOCK_LIMIT, |_| {});
    let guard = store.lock("upgrade").map_err(|error| error.problem())?;
    session.guard = Some(guard);
    Ok(resumed)
}
