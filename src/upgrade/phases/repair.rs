//! kubelet stays paused for a repair, until `netfix resume`, the deadline or a signal.

use std::thread;
use std::time::{Duration, Instant};

use crate::model::{Problem, Window};
use crate::store::Store;
use crate::upgrade::ledger::Ledger;

/// How often netfix reads the window's record.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long a restore by a person may hold the lock.
const LOCK_LIMIT: Duration = Duration::from_secs(60);

/// Waits without the lock; returns the window if `netfix resume` has resumed its unit.
pub(crate) fn run(ledger: &mut Ledger, store: &Store) -> Result<Option<Window>, Problem> {
    let Ledger {
        session, signals, ..
    } = ledger;
    session.set_guard(None);
    let until = Instant::now() + session.until_deadline();
    let mut resumed = None;
    while resumed.is_none() && Instant::now() < until && !signals.interrupted() {
        thread::sleep(INTERVAL);
        let stored = store.open_window().ok().flatten();
        resumed = stored.filter(|stored| !stored.is_paused());
    }
    let store = store.clone().patient(LOCK_LIMIT, |_| {});
    let guard = store.lock("upgrade").map_err(|error| error.problem())?;
    session.set_guard(Some(guard));
    Ok(resumed)
}
