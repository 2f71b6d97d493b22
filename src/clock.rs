//! What time it is: since the machine's boot, which counts durations, and by the wall clock, which is only shown.

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

/// The clock by which the kernel counts lifetimes: since boot, without the time in which the machine was suspended.
pub(crate) fn running() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// The wall clock, in seconds since 1970.
pub(crate) fn seconds() -> i64 {
    Timestamp::now().as_second()
}

/// Now, as checkpoints have it (RFC 3339, UTC, whole seconds).
pub(crate) fn whole_seconds() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

/// Now, as windows have it (RFC 3339, UTC, milliseconds).
pub(crate) fn wall() -> String {
    format!("{:.3}", Timestamp::now())
}

/// So many milliseconds ago, as windows have it.
pub(crate) fn wall_before(ago: u64) -> String {
    let now = Timestamp::now();
    let then = now.checked_sub(Duration::from_millis(ago)).unwrap_or(now);
    format!("{then:.3}")
}

/// An hour ago, as checkpoints have it.
pub(crate) fn hour_ago() -> String {
    let now = Timestamp::now();
    let then = now.as_second().saturating_sub(3600);
    Timestamp::from_second(then).unwrap_or(now).to_string()
}

/// How far the wall clock was set since a moment that both clocks have, in milliseconds; `None` where it was not.
pub(crate) fn set_since(wall: &str, since_boot: u64) -> Option<i64> {
    /// Both clocks were read one after the other, and NTP corrects a running clock by up to 0.5 ms a second.
    const TOLERANCE: i64 = 2000;
    let passed = i64::try_from(boottime().saturating_sub(since_boot)).ok()?;
    let then: Timestamp = wall.parse().ok()?;
    let set = Timestamp::now().as_millisecond() - then.as_millisecond() - passed;
    (set.abs() >= TOLERANCE + passed / 2000).then_some(set)
}

/// Now, as the name of a window: `20261121T031500Z`.
pub(crate) fn id() -> String {
    Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// The time of day, for the log.
pub(crate) fn of_day() -> String {
    Timestamp::now().strftime("%H:%M:%SZ").to_string()
}
