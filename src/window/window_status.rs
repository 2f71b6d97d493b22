//! The present state of a window.

use crate::inventory::procfs;
use crate::model::Window;
use crate::systemd::{Bus, UnitState};
use crate::window::clock;
use crate::window::session::{is_of_other_boot, is_owner_alive};

/// A window, its process and its unit at this moment.
#[derive(Debug, Clone)]
pub(crate) struct WindowStatus {
    pub window: Window,
    /// Milliseconds since the window's start.
    pub now: u64,
    /// Whether the process that opened it still runs.
    pub is_at_work: bool,
    /// Whether a reboot has ended it: nothing of it is in force.
    pub is_of_other_boot: bool,
    /// kubelet's unit; `None` where systemd was not queried.
    pub unit: Option<UnitState>,
    /// When a unit that this window stopped was started again, in milliseconds since the window's start; the deadline or
    /// another program did that.
    pub runs_since: Option<u64>,
}

impl WindowStatus {
    /// Queries systemd where there is a bus.
    pub(crate) fn new(window: Window, bus: Option<&Bus>) -> Self {
        let pause = window.pause.as_ref();
        let unit = pause
            .zip(bus)
            .and_then(|(pause, bus)| bus.unit(&pause.unit).ok());
        let is_of_other_boot = is_of_other_boot(&window);
        let runs_since = pause
            .zip(bus)
            .filter(|_| !is_of_other_boot)
            .and_then(|(pause, bus)| bus.active_since(&pause.unit).ok()?)
            .map(|since| since.saturating_sub(window.started_boottime))
            .filter(|since| *since >= pause.and_then(|pause| pause.paused).unwrap_or_default());
        Self {
            now: clock::boottime().saturating_sub(window.started_boottime),
            is_at_work: is_owner_alive(&window) || window.owner == procfs::own(),
            is_of_other_boot,
            unit,
            runs_since,
            window,
        }
    }
}
