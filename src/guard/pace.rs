//! How fast the guard restores again what is lost again: after a pause that doubles, and after some times not at all.

use crate::model::window::GuardPace;

/// So many restores in a row are tried.
pub(crate) const MOST: u32 = 5;
/// A loss is a new one, not one that repeats, when so many of the first pauses have passed since the last restore.
const CALM: u64 = 64;

/// What may be done about a loss now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardTurn {
    /// Restore, as this attempt in a row, from 1 on.
    Now(u32),
    /// Not before this moment (`CLOCK_BOOTTIME`, milliseconds).
    At(u64),
    /// The loss has repeated too often: give up.
    GiveUp,
    /// It was given up before.
    GivenUp,
}

/// The turn of a loss at `now`; `pause`, in milliseconds, is the time between the first restore and the second.
pub(super) fn turn(pace: &mut GuardPace, now: u64, pause: u64) -> GuardTurn {
    if pace.given_up {
        return GuardTurn::GivenUp;
    }
    let Some(last) = pace.last.filter(|_| pace.attempts > 0) else {
        return GuardTurn::Now(1);
    };
    if now >= last.saturating_add(pause.saturating_mul(CALM)) {
        *pace = GuardPace::default();
        return GuardTurn::Now(1);
    }
    if pace.attempts >= MOST {
        pace.given_up = true;
        return GuardTurn::GiveUp;
    }
    let at = last.saturating_add(pause << (pace.attempts - 1));
    if now < at {
        GuardTurn::At(at)
    } else {
        GuardTurn::Now(pace.attempts + 1)
    }
}

/// A restore begins at `now`.
pub(super) fn begin(pace: &mut GuardPace, now: u64) {
    pace.attempts += 1;
    pace.last = Some(now);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_until_the_guard_gives_up() {
        let (mut pace, mut now, mut pauses) = (GuardPace::default(), 1000, Vec::new());
        loop {
            match turn(&mut pace, now, 10) {
                GuardTurn::Now(attempt) => {
                    assert_eq!(attempt, pace.attempts + 1);
                    begin(&mut pace, now);
                }
                GuardTurn::At(at) => {
                    pauses.push(at - now);
                    now = at;
                }
                GuardTurn::GiveUp => break,
                GuardTurn::GivenUp => unreachable!("not before it gives up"),
            }
        }
        assert_eq!(pauses, [10, 20, 40, 80]);
        assert_eq!(pace.attempts, MOST);
        assert_eq!(turn(&mut pace, now + 1_000_000, 10), GuardTurn::GivenUp);
    }

    #[test]
    fn a_loss_after_a_calm_time_is_a_new_one() {
        let mut pace = GuardPace::default();
        for now in [0, 10, 30, 70, 150] {
            assert!(matches!(turn(&mut pace, now, 10), GuardTurn::Now(_)));
            begin(&mut pace, now);
        }
        assert_eq!(turn(&mut pace, 150 + 640, 10), GuardTurn::Now(1));
        assert_eq!(pace.attempts, 0);
    }
}
