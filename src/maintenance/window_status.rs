//! The present state of a window.

use crate::inventory::procfs;
use crate::maintenance::clock;
use crate::maintenance::window::is_owner_alive;
use crate::model::Window;
use crate::systemd::{Bus, UnitState};

/// A window, its process and its unit at this moment.
#[derive(Debug, Clone)]
pub(crate) struct WindowStatus {
    pub window: Window,
    /// Milliseconds since the window's start.
    pub now: u64,
    /// Whether the process that opened it still runs.
    pub is_at_work: bool,
    /// kubelet's unit; `None` where systemd was not queried.
    pub unit: Option<UnitState>,
}

impl WindowStatus {
    /// Queries systemd where there is a bus.
    pub(crate) fn new(window: Window, bus: Option<&Bus>) -> Self {
        let pause = window.pause.as_ref();
        let unit = pause
            .zip(bus)
            .and_then(|(pause, bus)| bus.unit(&pause.unit).ok());
        Self {
            now: clock::boottime().saturating_sub(window.started_boottime),
            is_at_work: is_owner_alive(&window) || window.owner == procfs::own(),
            unit,
            window,
        }
    }
}
