//! Threads that watch beside COMMAND: for the loss of host links, and for how long kubelet has been paused.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::clock::boottime;
use crate::kernel::events::LinkEvents;
use crate::model::IfName;
use crate::model::window::{EVICTION_AFTER, NOT_READY_AFTER};
use crate::window::background::Background;
use crate::window::event::{Budget, Event, TARGET};
use crate::window::window_log::WindowLog;

/// How often a thread checks whether it is to end.
const INTERVAL: Duration = Duration::from_millis(200);

/// Lost links of the host, each with the moment (`CLOCK_BOOTTIME`, milliseconds).
pub(crate) type LinkLosses = BTreeMap<IfName, u64>;

/// Records which links of the host are lost.
pub(crate) struct Losses {
    lost: Arc<Mutex<LinkLosses>>,
    thread: Background,
}

impl Losses {
    /// Those that are lost so far.
    pub(crate) fn seen(&self) -> LinkLosses {
        let lost = self.lost.lock();
        lost.map(|lost| lost.clone()).unwrap_or_default()
    }

    /// Ends the watch; returns all of them.
    pub(crate) fn end(self) -> LinkLosses {
        drop(self.thread);
        let lost = self.lost.lock();
        lost.map(|lost| lost.clone()).unwrap_or_default()
    }
}

/// Starts to record losses. `None` where the kernel refuses events; then the outage stays unknown, and nothing else depends
/// on it.
pub(crate) fn losses() -> Option<Losses> {
    let mut events = LinkEvents::subscribe().ok()?;
    let lost = Arc::new(Mutex::new(LinkLosses::new()));
    let shared = lost.clone();
    let thread = Background::start(move |stop| {
        while !stop.load(Ordering::SeqCst) {
            // The socket overran: events before that are still true.
            let Ok(names) = events.losses(INTERVAL) else {
                continue;
            };
            let now = boottime();
            let Ok(mut lost) = shared.lock() else { return };
            for name in names {
                lost.entry(name).or_insert(now);
            }
        }
    });
    Some(Losses { lost, thread })
}

/// Warns when the pause of kubelet begins to matter. Counts from `paused` (`CLOCK_BOOTTIME`, milliseconds); `deadline` in
/// seconds.
pub(crate) fn budget(log: WindowLog, paused: u64, deadline: u64) -> Background {
    Background::start(move |stop| {
        let mut warnings = warnings(deadline).into_iter().peekable();
        while !stop.load(Ordering::SeqCst) {
            let seconds = boottime().saturating_sub(paused) / 1000;
            while let Some((_, budget)) = warnings.next_if(|(at, _)| *at <= seconds) {
                let event = Event::PausedFor { seconds, budget };
                log::warn!(target: TARGET, PHASE = "pause"; "{event}");
                log.line(&event);
            }
            thread::sleep(INTERVAL);
        }
    })
}

/// After how many seconds to warn, of which limit.
fn warnings(deadline: u64) -> Vec<(u64, Budget)> {
    const SHORTLY_BEFORE: u64 = 10;
    const WELL_BEFORE: u64 = 60;
    let (not_ready, eviction) = (
        Budget::NotReady(NOT_READY_AFTER),
        Budget::Eviction(EVICTION_AFTER),
    );
    let mut all = vec![
        (NOT_READY_AFTER - SHORTLY_BEFORE, not_ready),
        (NOT_READY_AFTER, not_ready),
        (EVICTION_AFTER - WELL_BEFORE, eviction),
        (EVICTION_AFTER, eviction),
        (deadline, Budget::Deadline(deadline)),
    ];
    if deadline > WELL_BEFORE {
        all.push((deadline - WELL_BEFORE, Budget::Deadline(deadline)));
    }
    // At the deadline the pause ends.
    all.retain(|(at, _)| *at <= deadline);
    all.sort();
    all
}

#[cfg(test)]
mod tests {
    use crate::upgrade::phases::watch::*;

    #[test]
    fn a_warning_comes_before_each_limit_and_at_it() {
        let at: Vec<u64> = warnings(600).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [30, 40, 280, 340, 540, 600]);
        let at: Vec<u64> = warnings(20).into_iter().map(|(at, _)| at).collect();
        assert_eq!(at, [20]);
    }
}
