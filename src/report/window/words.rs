//! Words of a window's report, the same for the terminal and the page.

use jiff::{SignedDuration, Timestamp};

use super::outcome::PodCounts;
use crate::model::Window;
use crate::model::window::{Phase, PhaseName, Rollback, RollbackReason, Run, command_line};
use crate::report::text::{UNKNOWN, count, escape, join, milliseconds, or_dash};

/// A line of a program's output as a terminal shows it: without colours, and without what a carriage return overwrote.
pub(super) fn printed(line: &str) -> String {
    let plain = anstream::adapter::strip_str(line).to_string();
    let last = plain
        .trim_end_matches('\r')
        .rsplit('\r')
        .next()
        .unwrap_or_default();
    join(last.split('\t').map(escape), "\t")
}

/// A moment of the window by the wall clock, in UTC, in a strftime format; a dash when the record has no start time.
pub(super) fn clock(window: &Window, ms: u64, format: &str) -> String {
    let moment = || {
        let started: Timestamp = window.started.parse().ok()?;
        let offset = SignedDuration::from_millis(i64::try_from(ms).ok()?);
        let moment = started.checked_add(offset).ok()?;
        Some(moment.strftime(format).to_string())
    };
    or_dash(moment())
}

/// Forms of [`clock`].
pub(super) const DATE_AND_TIME: &str = "%Y-%m-%d %H:%M:%S UTC";
pub(super) const SECOND: &str = "%H:%M:%S";
pub(super) const TIME: &str = "%H:%M:%S%.3f";

/// The user's command, for people: words with special characters are quoted.
pub(super) fn argv(run: &Run) -> String {
    command_line(&run.argv)
}

/// How long a phase lasted.
pub(super) fn lasted(phase: &Phase) -> Option<u64> {
    phase.to?.checked_sub(phase.from)
}

/// How COMMAND or the rollback ended, and how long its phase lasted if that is known.
pub(super) fn run_end(window: &Window, name: PhaseName, run: &Run) -> String {
    let mut phases = window.phases.iter();
    let lasted = phases.find(|phase| phase.name == name).and_then(lasted);
    let time = lasted.map(|ms| format!(", {}", milliseconds(ms)));
    end(run, &time.unwrap_or_default())
}

/// How COMMAND or the rollback ended, with a time behind the fact.
pub(super) fn end(run: &Run, time: &str) -> String {
    match (&run.error, run.timed_out, run.signal, run.exit) {
        (Some(error), ..) => format!("could not be started: {}", escape(error)),
        (None, Some(limit), signal, exit) => {
            let end = match (signal, exit) {
                (_, Some(exit)) => format!("; exit {exit}"),
                (Some(_), None) => String::new(),
                (None, None) => "; its end was not seen".to_owned(),
            };
            let limit = milliseconds(limit);
            format!("was killed after {limit} (--command-timeout){end}")
        }
        (None, None, Some(signal), _) => {
            let name = nix::sys::signal::Signal::try_from(signal);
            let name = name.map_or_else(|_| signal.to_string(), |name| name.to_string());
            format!("was killed ({name}{time})")
        }
        (None, None, None, Some(0)) => format!("succeeded (exit 0{time})"),
        (None, None, None, Some(exit)) => format!("failed (exit {exit}{time})"),
        (None, None, None, None) => "started; how it ended is unknown".to_owned(),
    }
}

/// What a window was about, on one line.
pub(super) fn cause(window: &Window) -> Option<String> {
    let lost = window.devices_lost.iter().flatten();
    let parts: Vec<String> = match &window.run {
        Some(run) => vec![argv(run)],
        None if window.is_accept() => window.pods.iter().map(|pod| pod.info.title()).collect(),
        None => lost.map(ToString::to_string).collect(),
    };
    Some(join(parts, ", ")).filter(|text| !text.is_empty())
}

/// Why a rollback ran.
pub(in crate::report) fn reason(rollback: &Rollback) -> String {
    let nics = join(rollback.nics.iter().map(ToString::to_string), ", ");
    match rollback.reason {
        RollbackReason::NicMissing if rollback.nics.len() > 1 => {
            format!("{nics} were missing after COMMAND")
        }
        RollbackReason::NicMissing => format!("{nics} was missing after COMMAND"),
        RollbackReason::NoCarrier => format!("{nics} had no carrier after COMMAND"),
        RollbackReason::SafeMode => format!("the driver of {nics} ran in safe mode after COMMAND"),
        RollbackReason::PodsLost => {
            format!("{} lost after COMMAND", count(rollback.lost, "pod"))
        }
        RollbackReason::LostAgain => {
            "the network was lost again and again after COMMAND".to_owned()
        }
    }
}

/// The pods to which something else happened.
pub(in crate::report) fn others(restarted: usize, gone: usize) -> String {
    let parts = [(restarted, "restarted"), (gone, "gone")];
    let parts = parts.into_iter().filter(|(number, _)| *number > 0);
    join(parts.map(|(number, word)| format!("; {number} {word}")), "")
}

/// How many pods are back.
pub(super) fn back(pods: &PodCounts) -> String {
    match pods.total {
        0 => UNKNOWN.to_owned(),
        total if pods.unknown == total => format!("{UNKNOWN} of {total}"),
        total => format!("{} of {total}", pods.back),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_is_what_a_terminal_would_leave_of_it() {
        assert_eq!(printed("\x1b[1;32mok\x1b[0m\tdone\r"), "ok\tdone");
        assert_eq!(printed("10%\r50%\r100%"), "100%");
        assert_eq!(
            printed("\x07bell \x1b]0;title\x07\u{202e}"),
            "bell \\u{202e}"
        );
    }

    #[test]
    fn a_command_is_shown_as_one_types_it() {
        let run = Run::new(&["sh", "-c", "rmmod a && insmod b", ""].map(str::to_owned));
        assert_eq!(argv(&run), "sh -c \"rmmod a && insmod b\" \"\"");
        let run = Run::new(&["echo", "\"$x\" `y` \\"].map(str::to_owned));
        assert_eq!(argv(&run), r#"echo "\"\$x\" \`y\` \\""#);
    }

    #[test]
    fn the_signal_that_killed_a_command_is_named() {
        let record = include_str!("../../../testdata/windows/well.json");
        let window: Window = serde_json::from_str(record).expect("a record");
        let run = Run {
            signal: Some(9),
            ..Run::new(&[])
        };
        let end = run_end(&window, PhaseName::Command, &run);
        assert_eq!(end, "was killed (SIGKILL, 9.7 s)");
        let timed_out = Run {
            timed_out: Some(475_000),
            ..run
        };
        let end = run_end(&window, PhaseName::Command, &timed_out);
        assert_eq!(end, "was killed after 7 min 55 s (--command-timeout)");
    }
}
