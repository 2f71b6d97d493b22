//! Words and numbers, in one form everywhere.

use std::cmp::Ordering;
use std::io::{self, Write};
use std::time::Duration;

use jiff::Timestamp;

/// What is not known.
pub(super) const UNKNOWN: &str = "-";

/// Untrusted text on one line, without anything that a terminal obeys or that hides what is there: control, format and
/// invisible characters are shown as their numbers.
pub(super) fn escape(text: &str) -> String {
    let shown = |c: char| match c {
        '"' | '\'' | '\\' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

/// A value, or the sign for what is not known.
pub(super) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| UNKNOWN.to_owned(), |text| text.to_string())
}

/// Values in a row, or the sign for what is not known.
pub(super) fn list_or_dash<T: ToString>(items: &[T]) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    Some(texts.join(","))
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

/// `1 pod`, `40 pods`; for nouns with a plural in `s`.
pub(super) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// A duration in the one or two units that matter: `0.31 ms`, `350 ms`, `4.2 s`, `2 min 5 s`, `3 h 2 min`, `2 d 4 h`.
pub(crate) fn duration(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = duration.as_secs();
    let two = |unit: u64, name: &str, part: u64, part_name: &str| match seconds % unit / part {
        0 => format!("{} {name}", seconds / unit),
        rest => format!("{} {name} {rest} {part_name}", seconds / unit),
    };
    match duration.as_micros() {
        0 => "0 s".to_owned(),
        us @ 1..10_000 => format!("{} ms", decimals(us / 10, 100)),
        us @ 10_000..1_000_000 => format!("{} ms", us / 1000),
        us @ 1_000_000..120_000_000 => format!("{} s", decimals(us / 100_000, 10)),
        _ if seconds < HOUR => two(MINUTE, "min", 1, "s"),
        _ if seconds < DAY => two(HOUR, "h", MINUTE, "min"),
        _ => two(DAY, "d", HOUR, "h"),
    }
}

/// `parts` of a whole that has `per`, 10 or 100, without zeros at the end.
fn decimals(parts: u128, per: u128) -> String {
    let digits = if per == 10 { 1 } else { 2 };
    match parts % per {
        0 => (parts / per).to_string(),
        rest => {
            let text = format!("{}.{rest:0digits$}", parts / per);
            text.trim_end_matches('0').to_owned()
        }
    }
}

/// The same of milliseconds.
pub(super) fn milliseconds(ms: u64) -> String {
    duration(Duration::from_millis(ms))
}

/// The same of seconds.
pub(super) fn seconds(seconds: u64) -> String {
    duration(Duration::from_secs(seconds))
}

/// How long ago something was; a moment in the future, after the clock was set back, as it is.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    u64::try_from(now.as_second() - then.as_second())
        .map_or_else(|_| then.to_string(), |age| format!("{} ago", seconds(age)))
}

/// A line of a screen: what it is about, and the fact.
pub(super) fn fact(out: &mut dyn Write, about: &str, fact: &str) -> io::Result<()> {
    writeln!(out, "{about:<10} {fact}")
}

/// The order of names in which numbers count: `pod-9` before `pod-10`.
pub(super) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (one, other) = (piece(left), piece(right));
        match (number(one), number(other)) {
            _ if one.is_empty() || other.is_empty() => break,
            (Some(one), Some(other)) if one != other => return one.cmp(&other),
            (Some(_), Some(_)) => {}
            _ if one != other => return one.cmp(other),
            _ => {}
        }
        (left, right) = (&left[one.len()..], &right[other.len()..]);
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// The digits, or the one other character, that a text begins with.
fn piece(text: &str) -> &str {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let first = text.chars().next().map_or(0, char::len_utf8);
    &text[..digits.max(first)]
}

/// A number of any length: its digits without leading zeros, after how many they are.
fn number(piece: &str) -> Option<(usize, &str)> {
    let digits = piece.trim_start_matches('0');
    piece
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some((digits.len(), digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_one_or_two_units_that_matter() {
        let told = [
            0, 12, 310, 1200, 9_990, 350_000, 999_999, 4_200_000, 5_000_000, 60_000_000, 97_250_000,
        ];
        let told = told.map(|us| duration(Duration::from_micros(us)));
        let expected = [
            "0 s", "0.01 ms", "0.31 ms", "1.2 ms", "9.99 ms", "350 ms", "999 ms", "4.2 s", "5 s",
            "60 s", "97.2 s",
        ];
        assert_eq!(told, expected);
        let told = [120, 125, 3_599, 3_600, 10_925, 86_399, 86_400, 187_300].map(seconds);
        let expected = [
            "2 min",
            "2 min 5 s",
            "59 min 59 s",
            "1 h",
            "3 h 2 min",
            "23 h 59 min",
            "1 d",
            "2 d 4 h",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn an_age_is_a_duration_unless_the_clock_was_set_back() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let told = |then: &str| ago(then.parse().unwrap(), now);
        assert_eq!(told("2026-11-21T11:56:59Z"), "3 min 1 s ago");
        assert_eq!(told("2026-11-20T09:59:59Z"), "1 d 2 h ago");
        assert_eq!(told("2026-11-21T12:00:01Z"), "2026-11-21T12:00:01Z");
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_as_text() {
        assert_eq!(
            escape("a\x1b[2J\n\u{202e}\u{200b}b"),
            "a\\u{1b}[2J\\n\\u{202e}\\u{200b}b"
        );
        assert_eq!(escape("it's \"ö\" C:\\"), "it's \"ö\" C:\\");
    }

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let mut names = [
            "shop/web-10",
            "shop/web-9",
            "shop/web",
            "shop/web-9-a",
            "a/b",
            "shop/web-010",
            "é2",
            "é10",
        ];
        names.sort_by(|a, b| natural(a, b));
        let sorted = [
            "a/b",
            "shop/web",
            "shop/web-9",
            "shop/web-9-a",
            "shop/web-010",
            "shop/web-10",
            "é2",
            "é10",
        ];
        assert_eq!(names, sorted);
    }
}
