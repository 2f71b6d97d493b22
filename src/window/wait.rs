//! Waits for the end of a window, from any login.

use std::thread;
use std::time::{Duration, Instant};

use crate::model::Window;
use crate::model::window::Standing;
use crate::refusal::Refusal;
use crate::store::Store;
use crate::window::records;
use crate::window::records::WindowRecord;

/// How often netfix reads the window's record.
const INTERVAL: Duration = Duration::from_millis(250);

/// A window that is closed, or was still open at the end of the wait.
pub(crate) struct Waited {
    pub window: Window,
    pub standing: Standing,
}

/// Waits until a window is closed, but no longer than that; `None`: without a limit. `wanted` is the window's id or its
/// beginning, else the open window is meant, or the newest. Calls `abandoned` once if the process of an upgrade is gone.
pub(crate) fn run(
    wanted: Option<&str>,
    limit: Option<Duration>,
    store: &Store,
    abandoned: &mut dyn FnMut(&Window),
) -> Result<Waited, Refusal> {
    let begin = Instant::now();
    let mut is_reported = false;
    let mut found = records::find(wanted, store)?;
    loop {
        let WindowRecord {
            window, standing, ..
        } = found;
        let is_over = limit.is_some_and(|limit| begin.elapsed() >= limit);
        if standing == Standing::Closed || is_over {
            return Ok(Waited { window, standing });
        }
        // The process of a pause is gone as a rule.
        let is_abandoned = standing == Standing::Left && window.command == "upgrade";
        if is_abandoned && !std::mem::replace(&mut is_reported, true) {
            abandoned(&window);
        }
        let left = limit.map_or(INTERVAL, |limit| limit.saturating_sub(begin.elapsed()));
        thread::sleep(INTERVAL.min(left));
        found = records::find(Some(&window.id), store)?;
    }
}
