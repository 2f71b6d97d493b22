//! Words and numbers, in one form everywhere.

use std::cmp::Ordering;
use std::fmt::Display;
use std::time::Duration;

use jiff::Timestamp;
use textwrap::core::display_width;
use textwrap::{Options, WordSplitter};

pub(super) use crate::model::text::{count, duration, escape, join};
use crate::model::{PodInfo, Rehearsal};

/// The sign for an unknown value.
pub(super) const UNKNOWN: &str = "-";

/// A value, or the sign for an unknown value.
pub(super) fn or_dash(text: Option<impl ToString>) -> String {
    text.map_or_else(|| UNKNOWN.to_owned(), |text| text.to_string())
}

/// So much of one sort is printed; the rest is counted.
pub(super) const MOST: usize = 30;

/// The first of many items, and how many more there are.
pub(super) fn bounded<T: ToString>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut items = items.into_iter();
    let first = items.by_ref().take(MOST);
    let mut texts: Vec<String> = first.map(|item| item.to_string()).collect();
    texts.extend(more(items.count()));
    texts
}

/// The words for what is not printed, if there is anything.
pub(super) fn more(count: usize) -> Option<String> {
    (count > 0).then(|| format!("... and {count} more"))
}

/// Values in a row, or the sign for an unknown value.
pub(super) fn list_or_dash<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    or_dash(Some(bounded(items).join(",")).filter(|text| !text.is_empty()))
}

/// `40 pods`, or `38 of 40 pods`.
pub(super) fn part(number: usize, total: usize) -> String {
    part_of(number, total, "pod")
}

/// `40 NOUNs`, or `38 of 40 NOUNs`.
pub(super) fn part_of(number: usize, total: usize, noun: &str) -> String {
    if number == total {
        count(total, noun)
    } else {
        format!("{number} of {}", count(total, noun))
    }
}

/// What a command counts: a selection is not the node.
pub(super) fn pod_noun(is_selection: bool) -> &'static str {
    if is_selection { "selected pod" } else { "pod" }
}

/// The word that agrees with a number: `verb(1, "is", "are")`.
pub(super) fn verb<'a>(number: usize, one: &'a str, many: &'a str) -> &'a str {
    if number == 1 { one } else { many }
}

/// The counts that are not zero, each with its words.
pub(super) fn others(numbers: impl IntoIterator<Item = (usize, impl Display)>) -> String {
    let others = numbers.into_iter().filter(|(number, _)| *number > 0);
    join(
        others.map(|(number, words)| format!(", {number} {words}")),
        "",
    )
}

/// `248 of 250 pods come back identical, 2 not rehearsed (600 ms)`.
pub(super) fn rehearsal(figures: &Rehearsal) -> String {
    let Rehearsal {
        pods,
        identical,
        but_for_daemons,
        unproven,
        host,
        restore_ms: _,
        probe_ms: _,
        took_ms,
        reload_ms: _,
    } = *figures;
    let different = pods - identical - but_for_daemons;
    let numbers = [
        (but_for_daemons, "identical but for what is left to daemons"),
        (different, "different"),
        (unproven, "not rehearsed"),
    ];
    let what = match (pods + unproven, host) {
        (0, true) => "the host; no pod loses anything with its devices".to_owned(),
        (0, false) => "nothing: no pod loses anything with the host's devices".to_owned(),
        (all, _) => format!(
            "{identical} of {} {} back identical{}",
            count(all, "pod"),
            verb(identical, "comes", "come"),
            others(numbers)
        ),
    };
    format!("{what} ({})", milliseconds(took_ms))
}

/// `rehearsed: ` and the above.
pub(super) fn rehearsed(figures: &Rehearsal) -> String {
    format!("rehearsed: {}", rehearsal(figures))
}

/// `expected outage: restore 300 ms, driver reload 4.2 s`: what a window adds up from; the restore with the probe of addresses.
pub(super) fn expected_outage(figures: &Rehearsal) -> String {
    let was_measured = figures.host || figures.pods > 0;
    let restore = was_measured.then_some(figures.restore_ms + figures.probe_ms);
    format!(
        "expected outage: restore {}, driver reload {}",
        milliseconds_or_dash(restore),
        figures
            .reload_ms
            .map_or_else(|| "not measured yet".to_owned(), milliseconds)
    )
}

/// A duration of milliseconds.
pub(super) fn milliseconds(ms: u64) -> String {
    duration(Duration::from_millis(ms))
}

/// A duration of seconds.
pub(super) fn seconds(seconds: u64) -> String {
    duration(Duration::from_secs(seconds))
}

/// A round trip, from microseconds.
pub(super) fn round_trip(us: u64) -> String {
    duration(Duration::from_micros(us))
}

/// A duration of milliseconds, or the sign for an unknown value.
pub(super) fn milliseconds_or_dash(ms: Option<u64>) -> String {
    or_dash(ms.map(milliseconds))
}

/// How long ago something was; a moment in the future, after the clock was set back, as it is.
pub(super) fn ago(then: Timestamp, now: Timestamp) -> String {
    u64::try_from(now.as_second() - then.as_second())
        .map_or_else(|_| then.to_string(), |age| format!("{} ago", seconds(age)))
}

/// A line of a screen: what it is about, and the fact.
pub(super) type Fact = (&'static str, String);
/// The lines of a screen.
pub(super) type Facts = Vec<Fact>;

/// The lines as a text, in so many columns if there is a limit: a long fact is continued below its beginning.
pub(super) fn facts(facts: Facts, width: Option<usize>) -> String {
    let facts = facts.into_iter();
    let facts = facts.map(|(about, fact)| format!("{about:<10} {fact}"));
    let width = width.unwrap_or(usize::MAX);
    lines(facts.map(|line| filled(&line, width, &" ".repeat(11))))
}

/// The text in so many columns, if there is a limit: longer lines are continued below their first word, two columns further right.
pub(super) fn wrapped(text: &str, width: Option<usize>) -> String {
    let indent = |line: &str| " ".repeat(line.len() - line.trim_start().len() + 2);
    let Some(width) = width else {
        return text.to_owned();
    };
    lines(text.lines().map(|line| filled(line, width, &indent(line))))
}

/// A line in so many columns, broken between words only: nobody can copy the halves of a path or an option.
fn filled(line: &str, width: usize, indent: &str) -> String {
    if display_width(line) <= width {
        return line.to_owned();
    }
    let text = line.trim_start();
    let options = Options::new(width).initial_indent(&line[..line.len() - text.len()]);
    let options = options.subsequent_indent(indent).break_words(false);
    textwrap::fill(text, options.word_splitter(WordSplitter::NoHyphenation))
}

/// A text of these lines.
pub(super) fn lines<T: ToString>(lines: impl IntoIterator<Item = T>) -> String {
    let lines = lines.into_iter();
    join(lines.map(|line| line.to_string() + "\n"), "")
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

/// The order of pods for people: by namespace and name, then by id.
pub(super) fn by_name(a: &PodInfo, b: &PodInfo) -> Ordering {
    natural(&a.title(), &b.title()).then_with(|| natural(a.id.as_str(), b.id.as_str()))
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
    fn an_age_is_a_duration_unless_the_clock_was_set_back() {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let text = |then: &str| ago(then.parse().unwrap(), now);
        assert_eq!(text("2026-11-21T11:56:59Z"), "3 min 1 s ago");
        assert_eq!(text("2026-11-20T09:59:59Z"), "1 d 2 h ago");
        assert_eq!(text("2026-11-21T12:00:01Z"), "2026-11-21T12:00:01Z");
    }

    #[test]
    fn a_line_is_wrapped_between_words_and_one_that_fits_is_kept() {
        let text = "error: run `ip link add link eth0 name eth0.3` and --nic-wait 60s\n  short\n";
        let narrow =
            "error: run `ip link add\n  link eth0 name eth0.3`\n  and --nic-wait 60s\n  short\n";
        assert_eq!(wrapped(text, Some(24)), narrow);
        assert_eq!(wrapped(text, None), text);
        let path = "  /var/lib/netfix/checkpoints/0123456789ab is damaged\n";
        let parts = "  /var/lib/netfix/checkpoints/0123456789ab\n    is damaged\n";
        assert_eq!(wrapped(path, Some(20)), parts);
    }

    #[test]
    fn a_long_fact_is_continued_below_its_beginning() {
        let all = || vec![("pods", "three running, one lost".to_owned())];
        let narrow = "pods       three running,\n           one lost\n";
        assert_eq!(facts(all(), Some(26)), narrow);
        assert_eq!(facts(all(), None).lines().count(), 1);
    }

    #[test]
    fn of_a_list_without_end_the_first_are_printed_and_the_others_counted() {
        assert_eq!(list_or_dash(0..3), "0,1,2");
        assert_eq!(bounded(0..MOST).len(), MOST);
        let many = bounded(0..1500);
        assert_eq!(many.len(), MOST + 1);
        assert_eq!(many[MOST], "... and 1470 more");
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
