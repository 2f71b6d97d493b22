//! What options have in common: the limits of their values, on the command line and in the configuration file, and the heading of those
//! that only `--help` shows.

use std::path::PathBuf;
use std::time::Duration;

/// The heading of options that only `--help` shows.
pub(super) const EXPERT: &str = "Expert options";

/// The shortest deadline: a shorter one would pass before the pods are restored.
const LEAST_DEADLINE: Duration = Duration::from_secs(5);
/// The longest wait: a week.
const MOST_TIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest age: ten years.
const MOST_AGE: Duration = Duration::from_secs(3660 * 24 * 3600);
/// systemd.unit(5): the longest name of a unit.
const MOST_NAME: usize = 255;

fn within(text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    let shown = humantime::format_duration;
    if duration < least {
        Err(format!("must be at least {}", shown(least)))
    } else if duration > most {
        Err(format!("must be at most {}", shown(most)))
    } else {
        Ok(duration)
    }
}

/// How long something is waited for.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, MOST_TIME)
}

/// The same, of at least a second.
pub(super) fn second_or_more(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), MOST_TIME)
}

/// When systemd starts kubelet again.
pub(super) fn deadline(text: &str) -> Result<Duration, String> {
    within(text, LEAST_DEADLINE, MOST_TIME)
}

/// How old something may be.
pub(super) fn age(text: &str) -> Result<Duration, String> {
    within(text, Duration::ZERO, MOST_AGE)
}

/// An interval: one of less than a second would keep the processor busy.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), MOST_AGE)
}

/// A size in bytes, or with a suffix in units of 1024.
pub(super) fn size(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 64 << 10;
    const MOST: u64 = 1 << 30;
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("expected a number, optionally with K, M or G".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|error| format!("{error}"))?;
    match number.checked_mul(1 << shift) {
        Some(size @ LEAST..=MOST) => Ok(size),
        _ => Err("must be at least 64K and at most 1G".to_owned()),
    }
}

/// A socket's path, with or without `unix://` before it.
pub(super) fn endpoint(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").unwrap_or(text);
    if path.starts_with('/') {
        Ok(PathBuf::from(path))
    } else {
        Err("expected unix:///PATH".to_owned())
    }
}

/// The name of a unit of systemd, by the characters of systemd.unit(5): it becomes a part of paths.
pub(super) fn unit(text: &str) -> Result<String, String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    let is_name = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_name && text.chars().all(is_good) && text.len() <= MOST_NAME {
        Ok(text.to_owned())
    } else {
        Err("expected the name of a unit, such as kubelet.service".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_limits_that_a_typo_does_not_pass() {
        assert!(time("0s").is_ok() && time("2m").is_ok() && age("30d").is_ok());
        for refused in ["1000000years", "8d"] {
            assert!(time(refused).unwrap_err().contains("at most 7days"));
        }
        assert!(deadline("4s").unwrap_err().contains("at least 5s"));
        assert!(interval("0s").is_err() && second_or_more("0s").is_err());
    }

    #[test]
    fn the_name_of_a_unit_leads_into_no_other_folder() {
        assert!(unit("kubelet").is_ok() && unit("snap.microk8s.daemon-kubelite.service").is_ok());
        for refused in ["", "../../x", "a/b", "a b", "a\u{202e}b", "-x", ".x"] {
            assert!(unit(refused).is_err(), "{refused:?}");
        }
    }
}
