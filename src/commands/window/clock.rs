//! The clock of windows: it counts from the machine's boot, and nobody sets it.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
pub(in crate::commands) fn boottime() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Now, as records write it (RFC 3339, UTC, milliseconds).
pub(super) fn wall() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Now, as the name of a window: `20261121T031500Z`.
pub(super) fn id() -> String {
    Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Now, for people who watch.
pub(super) fn of_day() -> String {
    Timestamp::now().strftime("%H:%M:%SZ").to_string()
}
