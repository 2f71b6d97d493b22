//! The watch after a restore: a network manager may recreate a parent of pods seconds later, and a driver may reset twice.
//!
//! Link events of the host and of the pods are watched. The last observation finds every other loss.

use std::mem;
use std::thread;
use std::time::{Duration, Instant};

use crate::kernel::Netns;
use crate::kernel::events::LinkEvents;
use crate::restore::facts::RestoredPod;
use crate::restore::host::managed;

/// So many losses let a restore, or the watch after it, begin anew: not those of a driver that resets without end.
pub(super) const AGAIN: usize = 3;

/// How often a wait that can be interrupted checks for that.
const INTERVAL: Duration = Duration::from_millis(250);
/// One loss takes several links, one event each.
const BURST: Duration = Duration::from_millis(100);

/// The time to watch. It begins anew after a loss, but not for a driver that resets without end; events of links that no pod
/// needs do not shorten it.
pub(crate) struct Settle {
    length: Duration,
    until: Instant,
    losses: usize,
    /// How long a network manager that is at work then may take.
    grace: Duration,
}

impl Settle {
    pub(crate) fn begin(length: Duration, grace: Duration) -> Self {
        Self {
            grace,
            length,
            until: Instant::now() + length,
            losses: 0,
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Everything was observed again, and pods had lost something.
    pub(crate) fn note_loss(&mut self) {
        if self.losses < AGAIN {
            self.losses += 1;
            self.until = Instant::now() + self.length;
        }
    }
}

/// Watches the links of the host and of pods for losses, from its start on. Where the kernel refuses events it only waits.
pub(crate) struct LossWatch(Option<LinkEvents>);

impl LossWatch {
    /// To be started after a restore: its own steps are events too.
    pub(crate) fn start(pods: &[RestoredPod]) -> Self {
        let mut events = LinkEvents::subscribe().ok();
        if let Some(events) = &mut events {
            let paths = pods.iter().filter_map(|pod| pod.pod.netns.as_ref());
            let open = paths.filter_map(|path| Netns::open(path.as_ref()).ok());
            // Linux before 4.2 has the host's events alone.
            let _ = events.include(open);
        }
        Self(events)
    }

    /// Whether links were lost since the last call, or are before the time is over, or may have been by a network manager
    /// that was at work then; ends early when `interrupted`.
    pub(crate) fn has_losses(&mut self, time: &mut Settle, interrupted: &dyn Fn() -> bool) -> bool {
        while !time.left().is_zero() && !interrupted() {
            if self.losses(time.left().min(INTERVAL)) {
                while self.losses(BURST) && !time.left().is_zero() && !interrupted() {}
                return true;
            }
        }
        // Once: a manager that never ends its work is no loss.
        managed::wait_until_idle(mem::take(&mut time.grace), interrupted)
    }

    fn losses(&mut self, limit: Duration) -> bool {
        let Some(events) = &mut self.0 else {
            thread::sleep(limit);
            return false;
        };
        // Events that the kernel dropped may have been of losses.
        events.losses(limit).map_or(true, |names| !names.is_empty())
    }
}
