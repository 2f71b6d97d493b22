//! Positions on a drawing in whole tenths of its units, so that no floating-point rounding changes the drawing.

use std::fmt;

/// A position or a length, in tenths of the drawing's unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Px(pub(super) u64);

impl Px {
    /// Whole units.
    pub(super) fn of(units: u64) -> Self {
        Self(units * 10)
    }

    /// This many units to the right.
    pub(super) fn plus(self, units: u64) -> Self {
        Self(self.0 + units * 10)
    }

    /// This many units to the left.
    pub(super) fn minus(self, units: u64) -> Self {
        Self(self.0.saturating_sub(units * 10))
    }

    /// The distance to another position; at least `least` units, so that it is visible.
    pub(super) fn to(self, other: Self, least: u64) -> Self {
        Self(other.0.saturating_sub(self.0).max(least * 10))
    }
}

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 10, self.0 % 10) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, tenths) => write!(f, "{whole}.{tenths}"),
        }
    }
}

/// Values, drawn from `left` on, `length` units wide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    pub(super) left: u64,
    pub(super) length: u64,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Scale {
    /// The position of a value; values beyond an end are at the end.
    pub(super) fn at(&self, value: u64) -> Px {
        let span = u128::from(self.last.saturating_sub(self.first).max(1));
        let value = u128::from(value.clamp(self.first, self.last.max(self.first)) - self.first);
        let tenths = value * u128::from(self.length) * 10 / span;
        Px(self.left * 10 + u64::try_from(tenths).unwrap_or(self.length * 10))
    }

    /// Where a time begins on the drawing, and how long it is there; without an end it is as long as the drawing.
    pub(super) fn bar(&self, from: u64, to: Option<u64>) -> (Px, Px) {
        let from = self.at(from);
        (from, from.to(self.at(to.unwrap_or(self.last)), 2))
    }

    /// The right end.
    pub(super) fn end(&self) -> Px {
        Px::of(self.left + self.length)
    }
}

/// Round distances between marks: milliseconds, then seconds.
const SHORT_STEPS: [u64; 9] = [1, 2, 5, 10, 20, 50, 100, 200, 500];
const STEPS: [u64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400,
    604_800,
];
/// The longest of them: 30 days, in milliseconds.
const LONGEST: u64 = 2_592_000_000;

/// The smallest of them that divides a span into at most `most` parts.
pub(super) fn step(span: u64, most: u64) -> u64 {
    let seconds = STEPS.iter().map(|seconds| seconds * 1000);
    let mut steps = SHORT_STEPS.into_iter().chain(seconds).chain([LONGEST]);
    let fits = steps.find(|step| span / step <= most);
    fits.unwrap_or_else(|| span / most.max(1) / LONGEST * LONGEST + LONGEST)
}

/// The label of a mark, when marks are `step` apart.
pub(super) fn mark(ms: u64, step: u64) -> String {
    match step {
        0..10 => format!("{}.{:03} s", ms / 1000, ms % 1000),
        10..100 => format!("{}.{:02} s", ms / 1000, ms / 10 % 100),
        100..1000 => format!("{}.{} s", ms / 1000, ms / 100 % 10),
        1000..60_000 => format!("{} s", ms / 1000),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_few_and_round_however_long_the_span() {
        for span in [
            0,
            1,
            7,
            99,
            12_345,
            44_862,
            3_600_000,
            400_000_000,
            u64::MAX / 4,
        ] {
            let step = step(span, 10);
            assert!(step > 0 && span / step <= 10, "{span} by {step}");
        }
        assert_eq!(step(44_862, 10), 5000);
        assert_eq!(
            [mark(5000, 5000), mark(600, 200), mark(120_000, 60_000)],
            ["5 s", "0.6 s", "2 min"]
        );
    }

    #[test]
    fn places_stay_within_the_drawing() {
        let scale = Scale {
            left: 100,
            length: 700,
            first: 0,
            last: 44_862,
        };
        assert_eq!(
            [scale.at(0), scale.at(44_862), scale.at(u64::MAX)].map(|at| at.0),
            [1000, 8000, 8000]
        );
        assert_eq!(scale.at(22_431).to_string(), "450");
        let nothing = Scale { last: 0, ..scale };
        assert_eq!([nothing.at(0).0, nothing.at(9).0], [1000, 1000]);
    }
}
