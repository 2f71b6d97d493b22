//! The clock of windows: monotonic, counting from the machine's boot.

use std::time::Duration;

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
pub(crate) fn boottime() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Now, as records write it (RFC 3339, UTC, milliseconds).
pub(crate) fn wall() -> String {
    format!("{:.3}", Timestamp::now())
}

/// Now, as the name of a window: `20261121T031500Z`.
pub(crate) fn id() -> String {
    Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The time of day, for the log.
pub(crate) fn of_day() -> String {
    Timestamp::now().strftime("%H:%M:%SZ").to_string()
}
