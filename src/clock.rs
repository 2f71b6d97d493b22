//! What time it is: since the machine's boot, which counts durations, and by the wall clock, which is only shown.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nix::time::{ClockId, clock_gettime};

/// Milliseconds since the machine's boot (`CLOCK_BOOTTIME`).
pub(crate) fn boottime() -> u64 {
    let now = machine(ClockId::CLOCK_BOOTTIME, offsets().boottime);
    milliseconds(now)
}

/// When a process started, in clock ticks since the machine's boot, from what /proc shows this process.
pub(crate) fn start_ticks(shown: u64) -> u64 {
    /// `USER_HZ` of every architecture that netfix is built for.
    const TICK: i128 = 10_000_000;
    let offset = i64::try_from(offsets().boottime.as_nanos() / TICK).unwrap_or_default();
    shown.wrapping_sub(offset.cast_unsigned())
}

/// How far the clocks of this process's time namespace are ahead of the machine's (`time_namespaces(7)`). What netfix and the kernel have
/// recorded is by the machine's.
#[derive(Debug, Default, PartialEq, Eq)]
struct Offsets {
    monotonic: SignedDuration,
    boottime: SignedDuration,
}

fn offsets() -> &'static Offsets {
    static OFFSETS: OnceLock<Offsets> = OnceLock::new();
    OFFSETS.get_or_init(|| {
        let text = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Offsets {
            monotonic: offset(&text, "monotonic").unwrap_or_default(),
            boottime: offset(&text, "boottime").unwrap_or_default(),
        }
    })
}

/// The seconds and nanoseconds in the line of this clock.
fn offset(text: &str, clock: &str) -> Option<SignedDuration> {
    let mut lines = text.lines().map(str::split_whitespace);
    let mut words = lines.find_map(|mut words| (words.next() == Some(clock)).then_some(words))?;
    let (seconds, nanoseconds) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(SignedDuration::new(seconds, nanoseconds))
}

/// A clock of the machine, by the one of this process.
fn machine(clock: ClockId, ahead: SignedDuration) -> Duration {
    let now = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    let now = SignedDuration::try_from(now).map_or(SignedDuration::ZERO, |now| now - ahead);
    Duration::try_from(now).unwrap_or_default()
}

/// A duration in whole milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A moment of this process, by the same clock.
pub(crate) fn boottime_of(at: Instant) -> u64 {
    let ago = Instant::now().saturating_duration_since(at).as_millis();
    boottime().saturating_sub(u64::try_from(ago).unwrap_or_default())
}

/// The clock by which the kernel counts lifetimes: since boot, without the time in which the machine was suspended.
pub(crate) fn running() -> Duration {
    machine(ClockId::CLOCK_MONOTONIC, offsets().monotonic)
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

/// In this time, in whole seconds (RFC 3339, UTC).
pub(crate) fn wall_in(time: Duration) -> String {
    let then = Timestamp::now().checked_add(time);
    format!("{:.0}", then.unwrap_or(Timestamp::MAX))
}

/// How long it is until this moment (RFC 3339).
pub(crate) fn time_until(wall: &str) -> Duration {
    let then = wall.parse::<Timestamp>().unwrap_or_default();
    let left = then.duration_since(Timestamp::now());
    left.try_into().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offsets_of_a_time_namespace_are_read_of_each_clock() {
        let text = "monotonic  -3600    500000000\nboottime   100000            0\n";
        let of = |clock| offset(text, clock);
        assert_eq!(
            of("monotonic"),
            Some(SignedDuration::new(-3600, 500_000_000))
        );
        assert_eq!(of("boottime"), Some(SignedDuration::from_secs(100_000)));
        assert_eq!(of("realtime"), None);
        assert_eq!(offset("boottime 1", "boottime"), None);
    }
}
