//! The most frames in a second (`--probe-rate`): a switch with dynamic ARP inspection disables a port that brings more.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::ProbeRate;

/// A second as a switch may count it: it sees frames later than they were sent, and not all by the same time.
const SECOND: Duration = Duration::from_millis(1050);

/// When frames were sent, the newest last. One list for the process: links of the host can share a port of the switch, and
/// announcements are still under way when the next restore probes.
static SENT: Mutex<VecDeque<Instant>> = Mutex::new(VecDeque::new());

/// What a switch with dynamic ARP inspection usually allows.
pub(super) const USUAL: ProbeRate = match NonZeroU16::new(15) {
    Some(number) => ProbeRate(number),
    None => ProbeRate(NonZeroU16::MIN),
};

/// For so many seconds the last pod may wait for the usual rate. A port that the switch has disabled costs more.
const MOST_SECONDS: usize = 5;

/// What frames have to wait for.
#[derive(Debug, Clone, Copy)]
pub(in crate::restore) struct Pace(Option<ProbeRate>);

impl Pace {
    /// By the option, or the usual rate where the network may count (its addresses are leased: such an inspection compares frames with
    /// leases) and where it costs little: where the probes of all `targets` take a few seconds.
    pub(in crate::restore) fn new(
        wanted: Option<ProbeRate>,
        targets: usize,
        is_leased: bool,
    ) -> Self {
        let is_short = (1..=MOST_SECONDS * USUAL.most()).contains(&targets);
        Self(wanted.or((is_leased && is_short).then_some(USUAL)))
    }

    /// This one, or the other where nothing has to wait: a later turn of a restore has fewer addresses, and the same switch.
    pub(in crate::restore) fn or(self, other: Self) -> Self {
        Self(self.0.or(other.0))
    }

    /// How long the last of so many addresses waits for its turn.
    pub(super) fn last_turn(self, targets: usize) -> Duration {
        let turns = targets.saturating_sub(1) / self.most();
        SECOND * u32::try_from(turns).unwrap_or(u32::MAX)
    }

    /// By the option, or the usual rate: nothing waits for these frames.
    pub(super) fn in_no_hurry(wanted: Option<ProbeRate>) -> Self {
        Self(wanted.or(Some(USUAL)))
    }

    /// The frames that fit into one second.
    pub(in crate::restore) fn most(self) -> usize {
        self.0.map_or(usize::MAX, ProbeRate::most)
    }

    /// Sends a frame by `send`, and counts it when it has left: a busy machine may send later than it wanted to.
    ///
    /// # Errors
    /// It must not be sent before that moment.
    pub(super) fn send<T>(self, send: impl FnOnce() -> T) -> Result<T, Instant> {
        let Some(rate) = self.0 else {
            return Ok(send());
        };
        let mut counted = SENT.lock().unwrap_or_else(PoisonError::into_inner);
        admit(&mut counted, rate, Instant::now())?;
        let result = send();
        counted.push_back(Instant::now());
        Ok(result)
    }

    /// Waits until a frame may be sent, and sends it.
    pub(super) fn send_later<T>(self, send: impl Fn() -> T) -> T {
        loop {
            match self.send(&send) {
                Ok(result) => return result,
                Err(free) => thread::sleep(free.saturating_duration_since(Instant::now())),
            }
        }
    }
}

/// Forgets what was sent more than a second ago.
///
/// # Errors
/// No other frame may be sent before that moment.
fn admit(sent: &mut VecDeque<Instant>, rate: ProbeRate, now: Instant) -> Result<(), Instant> {
    let is_over = |sent: &&Instant| now.saturating_duration_since(**sent) >= SECOND;
    let over = sent.iter().take_while(is_over).count();
    sent.drain(..over);
    let before = sent.len().checked_sub(rate.most());
    before.map_or(Ok(()), |before| Err(sent[before] + SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_frames_than_the_rate() {
        let rate = ProbeRate(NonZeroU16::new(3).unwrap());
        let (mut queue, mut sent) = (VecDeque::new(), Vec::new());
        let begin = Instant::now();
        let mut now = begin;
        while sent.len() < 10 {
            match admit(&mut queue, rate, now) {
                Ok(()) => {
                    queue.push_back(now);
                    sent.push(now);
                }
                Err(free) => {
                    assert!(free > now);
                    now = free;
                }
            }
        }
        assert_eq!(sent[2], begin, "what fits into a second is sent at once");
        for four in sent.windows(4) {
            assert!(four[3] - four[0] > Duration::from_secs(1), "{sent:?}");
        }
        assert_eq!(sent[9] - begin, 3 * SECOND);
    }

    #[test]
    fn a_frame_that_leaves_late_counts_from_then_on() {
        let pace = Pace(NonZeroU16::new(1).map(ProbeRate));
        let left = pace.send(|| {
            thread::sleep(Duration::from_millis(50));
            Instant::now()
        });
        let free = pace.send(|| ()).expect_err("one a second");
        assert!(free >= left.expect("the first frame") + SECOND);
    }

    #[test]
    fn without_the_option_the_pace_delays_no_pod_by_more_than_a_few_seconds() {
        let wanted = NonZeroU16::new(3).map(ProbeRate);
        assert_eq!(Pace::new(wanted, 100, false).most(), 3);
        // A turn after a paced one.
        let (paced, free) = (Pace::new(None, 20, true), Pace::new(None, 1, false));
        assert_eq!(
            (paced.or(free).most(), free.or(free).most()),
            (15, usize::MAX)
        );
        for (targets, most) in [(0, usize::MAX), (1, 15), (75, 15), (76, usize::MAX)] {
            assert_eq!(Pace::new(None, targets, true).most(), most, "{targets}");
            assert_eq!(Pace::new(None, targets, false).most(), usize::MAX);
        }
        let turns = [0, 1, 3, 4, 7].map(|targets| Pace(wanted).last_turn(targets) / 1050);
        let ms = |count| Duration::from_millis(count);
        assert_eq!(turns, [0, 0, 0, 1, 2].map(ms));
        assert_eq!(Pace(None).last_turn(250), Duration::ZERO);
    }
}
