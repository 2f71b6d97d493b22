//! `--every`: the same command again and again, each time in a new process.

use std::env;
use std::ffi::OsString;
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use crate::report;

/// This program, also after its file was replaced.
const OWN: &str = "/proc/self/exe";
/// The option that the repeated command does not get.
const OPTION: &str = "--every";

/// Repeats this process's command until a signal ends this process. Returns an exit code when the command cannot be started.
///
/// A run that fails does not end it: it has printed why, and the next one may succeed. A new process each time holds no memory and
/// no file of the last one.
#[must_use]
pub fn repeat(interval: Duration) -> u8 {
    let words = without_option(env::args_os().skip(1));
    loop {
        let begin = Instant::now();
        let run = process::Command::new(OWN).args(&words).status();
        if let Err(error) = run {
            report::cannot_start(OWN.as_ref(), &error);
            return 1;
        }
        thread::sleep(interval.saturating_sub(begin.elapsed()));
    }
}

/// The words of a command line without the option and its value.
fn without_option(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = words;
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word);
            kept.extend(words);
            return kept;
        }
        if word == OPTION {
            words.next();
        } else if !word.to_string_lossy().starts_with("--every=") {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_option_and_its_value_are_left_out() {
        for (line, kept) in [
            ("snapshot --every 1h -q", "snapshot -q"),
            ("--every=5m check -q", "check -q"),
            ("check -q --every 5m -- --every", "check -q -- --every"),
            ("check -q", "check -q"),
        ] {
            let words = line.split(' ').map(OsString::from);
            let expected: Vec<OsString> = kept.split(' ').map(OsString::from).collect();
            assert_eq!(without_option(words), expected, "{line}");
        }
    }
}
