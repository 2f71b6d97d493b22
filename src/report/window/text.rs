//! Words and numbers of a window's report, the same for the terminal and the page.

use jiff::{SignedDuration, Timestamp};

use super::verdict::Tally;
use crate::model::window::Run;
use crate::model::{GatewayView, InterfaceView, Window};

/// What nobody knows.
pub(super) const UNKNOWN: &str = "-";

/// A text without anything that a terminal obeys or that hides what is there: control, format and invisible characters
/// are shown as their numbers.
pub(super) fn harmless(text: &str) -> String {
    let shown = |c: char| match c {
        '"' | '\'' | '\\' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

/// A line that a program has printed, as a terminal would show it: without colours, and only what stands last where the
/// line was written over.
pub(super) fn printed(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    let last = plain.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default();
    let columns: Vec<String> = last.split('\t').map(harmless).collect();
    columns.join("\t")
}

/// Milliseconds in the units that people read: `402 ms`, `9.747 s`, `1 min 37.2 s`, `2 h 03 min 00 s`.
pub(super) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{:03} s", ms / 1000, ms % 1000),
        60_000..3_600_000 => {
            let tenths = ms / 100;
            format!("{} min {:02}.{} s", tenths / 600, tenths / 10 % 60, tenths % 10)
        }
        _ => {
            let seconds = ms / 1000;
            format!("{} h {:02} min {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }
}

/// The same, or that it is not known.
pub(super) fn duration_or_dash(ms: Option<u64>) -> String {
    ms.map_or_else(|| UNKNOWN.to_owned(), duration)
}

/// Microseconds as `1.234 ms`.
pub(in crate::report) fn milliseconds(us: u64) -> String {
    format!("{}.{:03} ms", us / 1000, us % 1000)
}

/// A moment of the window by the wall clock, as `format` (strftime) says, in UTC; a dash where the record does not say
/// when it began.
pub(super) fn clock(window: &Window, ms: u64, format: &str) -> String {
    let moment = || {
        let started: Timestamp = window.started.parse().ok()?;
        let offset = SignedDuration::from_millis(i64::try_from(ms).ok()?);
        Some(started.checked_add(offset).ok()?.strftime(format).to_string())
    };
    moment().unwrap_or_else(|| UNKNOWN.to_owned())
}

/// Forms of [`clock`].
pub(super) const DATE_AND_TIME: &str = "%Y-%m-%d %H:%M:%S%.3f UTC";
pub(super) const TIME: &str = "%H:%M:%S%.3f";

/// The user's command as one would type it, close enough to recognise it: what is not plain stands in quotes.
pub(super) fn argv(run: &Run) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    let word = |text: &String| {
        if !text.is_empty() && text.chars().all(is_plain) {
            text.clone()
        } else {
            format!("\"{}\"", harmless(text))
        }
    };
    let words: Vec<String> = run.argv.iter().map(word).collect();
    words.join(" ")
}

/// How the user's command ended.
pub(super) fn run_end(run: &Run) -> String {
    match (&run.error, run.signal, run.exit) {
        (Some(error), ..) => format!("could not be started: {}", harmless(error)),
        (None, Some(signal), _) => {
            let name = nix::sys::signal::Signal::try_from(signal);
            let name = name.map_or_else(|_| String::new(), |name| format!(" ({name})"));
            format!("was ended by signal {signal}{name}")
        }
        (None, None, Some(exit)) => format!("ended with exit code {exit}"),
        (None, None, None) => "its end is not known".to_owned(),
    }
}

/// An interface in few words.
pub(super) fn interface(interface: &InterfaceView) -> String {
    let addresses = interface.addresses.iter().map(|address| format!(" {}", harmless(address)));
    format!("{}{}", interface.name, addresses.collect::<String>())
}

/// What a gateway answered.
pub(super) fn gateway(gateway: &GatewayView) -> String {
    let answer = match (gateway.reachable, gateway.rtt_us) {
        (Some(true), Some(us)) => milliseconds(us),
        (Some(true), None) => "answers".to_owned(),
        (Some(false), _) => "no answer".to_owned(),
        (None, _) => "not asked".to_owned(),
    };
    format!("{} {answer}", gateway.address)
}

/// How many pods are known to be back, of how many.
pub(super) fn back(pods: &Tally) -> String {
    match pods.total {
        0 => UNKNOWN.to_owned(),
        total if pods.unknown == total => format!("{UNKNOWN} of {total}"),
        total => format!("{} of {total}", pods.back),
    }
}

/// `yes`, `no`, or that it is not known.
pub(super) fn yes_or_no(known: Option<bool>) -> &'static str {
    known.map_or(UNKNOWN, |yes| if yes { "yes" } else { "no" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_in_units_that_people_read() {
        let told = [0, 999, 1000, 59_999, 60_000, 97_250, 3_599_999, 3_600_000, 7_380_000].map(duration);
        let expected = [
            "0 ms",
            "999 ms",
            "1.000 s",
            "59.999 s",
            "1 min 00.0 s",
            "1 min 37.2 s",
            "59 min 59.9 s",
            "1 h 00 min 00 s",
            "2 h 03 min 00 s",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_a_terminal_obeys_is_shown_as_text() {
        assert_eq!(harmless("a\x1b[2J\n\u{202e}\u{200b}b"), "a\\u{1b}[2J\\n\\u{202e}\\u{200b}b");
        assert_eq!(harmless("it's \"ö\" C:\\"), "it's \"ö\" C:\\");
    }

    #[test]
    fn a_printed_line_is_what_a_terminal_would_leave_of_it() {
        assert_eq!(printed("\x1b[1;32mok\x1b[0m\tdone\r"), "ok\tdone");
        assert_eq!(printed("10%\r50%\r100%"), "100%");
        assert_eq!(printed("\x07bell \x1b]0;title\x07\u{202e}"), "bell \\u{202e}");
    }

    #[test]
    fn a_command_is_shown_as_one_types_it() {
        let run = |argv: &[&str]| Run {
            process: None,
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            exit: None,
            signal: Some(9),
            error: None,
        };
        assert_eq!(
            argv(&run(&["sh", "-c", "rmmod a && insmod b", ""])),
            "sh -c \"rmmod a && insmod b\" \"\""
        );
        assert_eq!(run_end(&run(&[])), "was ended by signal 9 (SIGKILL)");
    }
}
