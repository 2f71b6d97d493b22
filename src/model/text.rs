//! Words and numbers, in one form everywhere.

use std::fmt::{self, Display};
use std::time::Duration;

use serde::Serialize;

/// Why a text, or a number, is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{}\" is not {what}", escape(.text))]
pub struct Invalid {
    text: String,
    what: &'static str,
}

impl Invalid {
    pub(super) fn new(text: &impl ToString, what: &'static str) -> Self {
        let text = text.to_string();
        Self { text, what }
    }
}

/// The name of a module, or of a parameter of one, as the kernel has it.
pub(crate) fn module_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Untrusted text on one line, without anything that a terminal obeys or that hides what is there: control, format and
/// invisible characters are shown as their numbers. To escape a text twice changes nothing.
pub(crate) fn escape(text: &str) -> String {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| match c {
            '"' | '\'' | '\\' => c.to_string(),
            _ => c.escape_debug().to_string(),
        })
        .collect()
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    let digits = bytes.iter();
    digits
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// The bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits.filter(|digits| digits.len() % 2 == 0)?;
    let bytes = pairs.chunks_exact(2);
    bytes
        .map(|pair| u8::try_from(pair[0] << 4 | pair[1]).ok())
        .collect()
}

/// The word of a variant, which is also its word in JSON.
pub(crate) fn word(value: &impl Serialize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let word = serde_json::to_value(value).map_err(|_| fmt::Error)?;
    f.pad(word.as_str().unwrap_or_default())
}

/// Shows each of these types by its word in JSON.
macro_rules! shown_by_word {
    ($($type:path,)*) => {
        $(impl Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                word(self, f)
            }
        })*
    };
}

shown_by_word! {
    crate::model::net::link::bond::BondOption,
    crate::model::net::link::IpvlanMode,
    crate::model::net::link::MacvlanMode,
    crate::model::net::link::VlanProtocol,
    super::problem::Code,
    super::problem::Severity,
    crate::model::pod::summary::State,
    super::window::PhaseName,
}

/// Texts in one, with a separator between them.
pub(crate) fn join<T: ToString>(items: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    texts.join(separator)
}

/// `1 pod`, `40 pods`; for nouns with a plural in `s`.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = match noun {
        _ if number == N::from(1) => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{plural}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_one_or_two_units_that_matter() {
        let texts = [
            0, 12, 310, 1200, 9_990, 350_000, 999_999, 4_200_000, 5_000_000, 60_000_000, 97_250_000,
        ];
        let texts = texts.map(|us| duration(Duration::from_micros(us)));
        let expected = [
            "0 s", "0.01 ms", "0.31 ms", "1.2 ms", "9.99 ms", "350 ms", "999 ms", "4.2 s", "5 s",
            "60 s", "97.2 s",
        ];
        assert_eq!(texts, expected);
        let texts = [120, 125, 3_599, 3_600, 10_925, 86_399, 86_400, 187_300]
            .map(|s| duration(Duration::from_secs(s)));
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
        assert_eq!(texts, expected);
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_as_text() {
        assert_eq!(
            escape("a\x1b[2J\n\u{202e}\u{200b}b"),
            "a\\u{1b}[2J\\n\\u{202e}\\u{200b}b"
        );
        // General category Cc and Cf, Zl and Zp (UnicodeData.txt).
        let obeyed = [
            0..=0x1f,
            0x7f..=0x9f,
            0xad..=0xad,
            0x600..=0x605,
            0x61c..=0x61c,
            0x6dd..=0x6dd,
            0x70f..=0x70f,
            0x890..=0x891,
            0x8e2..=0x8e2,
            0x180e..=0x180e,
            0x200b..=0x200f,
            0x2028..=0x202e,
            0x2060..=0x2064,
            0x2066..=0x206f,
            0xfeff..=0xfeff,
            0xfff9..=0xfffb,
            0x110bd..=0x110bd,
            0x110cd..=0x110cd,
            0x13430..=0x1343f,
            0x1bca0..=0x1bca3,
            0x1d173..=0x1d17a,
            0xe0001..=0xe0001,
            0xe0020..=0xe007f,
        ];
        for c in obeyed.into_iter().flatten().filter_map(char::from_u32) {
            let shown = escape(&c.to_string());
            assert!(
                shown.starts_with('\\') && shown.is_ascii(),
                "{c:?}: {shown}"
            );
        }
        assert_eq!(escape("it's \"ö\""), "it's \"ö\"");
        assert_eq!(escape("\\n"), "\\n");
    }
}
