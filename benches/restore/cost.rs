//! What a run costs.

use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

/// The time on the clock, and that of processors in programs and in the kernel.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    pub took: Duration,
    pub user: Duration,
    pub system: Duration,
}

impl Cost {
    /// That of `work`, which is done by programs that have ended after it.
    pub fn of_programs(work: impl FnOnce()) -> Self {
        Self::of_programs_timed(|| timed(work))
    }

    /// That of `work`, which returns the time on the clock itself.
    pub fn of_programs_timed(work: impl FnOnce() -> Duration) -> Self {
        Self::with_clock(UsageWho::RUSAGE_CHILDREN, work)
    }

    /// That of `work` in this process, printed for [`Cost::printed`].
    pub fn print(work: impl FnOnce()) {
        let Self { took, user, system } = Self::with_clock(UsageWho::RUSAGE_SELF, || timed(work));
        println!(
            "{} {} {}",
            took.as_nanos(),
            user.as_nanos(),
            system.as_nanos()
        );
    }

    /// That which another process has printed.
    pub fn printed(text: &str) -> Self {
        let mut numbers = text.split_whitespace().map(|number| {
            let nanoseconds = number.parse().expect("a number");
            Duration::from_nanos(nanoseconds)
        });
        let mut next = || numbers.next().expect("three numbers");
        Self {
            took: next(),
            user: next(),
            system: next(),
        }
    }

    fn with_clock(who: UsageWho, work: impl FnOnce() -> Duration) -> Self {
        let (user, system) = processor_time(who);
        let took = work();
        let (user_then, system_then) = processor_time(who);
        Self {
            took,
            user: user_then.saturating_sub(user),
            system: system_then.saturating_sub(system),
        }
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn processor_time(who: UsageWho) -> (Duration, Duration) {
    let usage = getrusage(who).expect("the times of processes");
    let duration = |time: TimeVal| {
        let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    (duration(usage.user_time()), duration(usage.system_time()))
}
