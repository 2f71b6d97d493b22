//! How fast the guard restores again what is lost again: some times at once, then after a pause that doubles, and after some more
//! times not at all. A pod that could not be completed has its own pace.

use crate::model::window::GuardPace;

/// So many restores in a row follow their losses at once.
const AT_ONCE: u32 = 5;
/// So many restores in a row are tried.
pub(crate) const MOST: u32 = 10;
/// A loss is a new one, not one that repeats, when so many of the first pauses have passed since the last restore.
const CALM: u64 = 64;

/// A pod that is not complete is tried again at most once a second.
const LEAST: u64 = 1000;

/// What may be done about a loss now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GuardTurn {
    /// Restore, as this attempt in a row, from 1 on.
    Now(u32),
    /// Not before this moment (`CLOCK_BOOTTIME`, milliseconds), as this attempt.
    At(u64, u32),
    /// The loss has repeated too often.
    GivenUp,
}

impl GuardTurn {
    pub(super) fn is_now(self) -> bool {
        matches!(self, Self::Now(_))
    }
}

/// The turn of a link that is lost at `now`; `pause`, in milliseconds, is the time between the first restore and the second.
pub(super) fn of_loss(pace: &mut GuardPace, now: u64, pause: u64) -> GuardTurn {
    let calm = pause.saturating_mul(CALM);
    let Some(last) = pace.last.filter(|last| now < last.saturating_add(calm)) else {
        *pace = GuardPace::default();
        return GuardTurn::Now(1);
    };
    pace.given_up = pace.attempts >= MOST;
    if pace.given_up {
        return GuardTurn::GivenUp;
    }
    // One that did not bring the link back is not repeated at once.
    let steps = if pace.in_vain {
        Some(pace.attempts)
    } else {
        pace.attempts.checked_sub(AT_ONCE).map(|more| more + 1)
    };
    let pause = steps.map_or(0, |steps| wait(steps, pause));
    turn(last + pause, pace, now)
}

/// The turn of a pod that a restore could not complete: it is never given up.
pub(super) fn of_pod(pace: &GuardPace, now: u64, pause: u64) -> GuardTurn {
    turn(
        pace.last.unwrap_or_default() + until_retry(pace, pause),
        pace,
        now,
    )
}

/// How long after the last attempt a pod is tried again.
pub(super) fn until_retry(pace: &GuardPace, pause: u64) -> u64 {
    wait(pace.attempts, pause.max(LEAST))
}

/// The pause after so many attempts.
fn wait(attempts: u32, pause: u64) -> u64 {
    let doubled = 1 << attempts.saturating_sub(1).min(CALM.ilog2());
    pause.saturating_mul(doubled)
}

fn turn(at: u64, pace: &GuardPace, now: u64) -> GuardTurn {
    if now < at {
        GuardTurn::At(at, pace.attempts + 1)
    } else {
        GuardTurn::Now(pace.attempts + 1)
    }
}

/// A restore begins at `now`.
pub(super) fn begin(pace: &mut GuardPace, now: u64) {
    pace.in_vain = false;
    pace.attempts += 1;
    pace.last = Some(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restores_follow_at_once_then_the_pause_doubles_until_a_loss_is_given_up_and_after_a_calm_time_it_is_a_new_one()
     {
        let (mut pace, mut now, mut pauses) = (GuardPace::default(), 1000, Vec::new());
        loop {
            match of_loss(&mut pace, now, 10) {
                GuardTurn::Now(attempt) => {
                    assert_eq!(attempt, pace.attempts + 1);
                    begin(&mut pace, now);
                }
                GuardTurn::At(at, _) => {
                    pauses.push(at - now);
                    now = at;
                }
                GuardTurn::GivenUp => break,
            }
        }
        assert_eq!(pauses, [10, 20, 40, 80, 160]);
        assert_eq!(pace.attempts, MOST);
        assert_eq!(of_loss(&mut pace, now + 639, 10), GuardTurn::GivenUp);
        assert_eq!(of_loss(&mut pace, now + 640, 10), GuardTurn::Now(1));
        assert_eq!(pace, GuardPace::default());
    }

    #[test]
    fn a_restore_that_did_not_bring_its_link_back_is_not_repeated_at_once() {
        let mut pace = GuardPace::default();
        begin(&mut pace, 1000);
        assert_eq!(of_loss(&mut pace, 1001, 10), GuardTurn::Now(2));
        pace.in_vain = true;
        assert_eq!(of_loss(&mut pace, 1001, 10), GuardTurn::At(1010, 2));
    }

    #[test]
    fn a_pod_is_tried_again_for_ever_in_pauses_that_grow_to_a_limit() {
        let mut pace = GuardPace::default();
        let mut now = 0;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            begin(&mut pace, now);
            let GuardTurn::At(at, _) = of_pod(&pace, now, 0) else {
                panic!("at once")
            };
            pauses.push((at - now) / 1000);
            now = at;
            assert!(matches!(of_pod(&pace, now, 0), GuardTurn::Now(_)));
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
    }
}
