//! The clock of windows: monotonic, counting from the machine's boot.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
pub(crate) fn boottime() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// A moment of this process, by the same clock.
pub(crate) fn boottime_of(at: Instant) -> u64 {
    let ago = Instant::now().saturating_duration_since(at).as_millis();
    boottime().saturating_sub(u64::try_from(ago).unwrap_or_default())
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
