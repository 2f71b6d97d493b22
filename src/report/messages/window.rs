//! Sentences about a maintenance window.

use std::fmt;

use crate::model::problem::{DetachedCause, RecordCause, WindowCause};

impl fmt::Display for WindowCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open {
                started,
                command,
                pid,
                unit,
            } => {
                let paused = unit
                    .as_ref()
                    .map_or_else(String::new, |unit| format!("; {unit} is paused"));
                return write!(
                    f,
                    "a window is open since {started}, by `netfix {command}` (pid {pid}){paused}. Run `netfix status`, \
                     then `netfix resume`"
                );
            }
            Self::CommandStillRuns { pid } => {
                return write!(
                    f,
                    "COMMAND of this window still runs (pid {pid}). Wait for its end or stop it, then run this again"
                );
            }
            Self::NoneOpen => "no window is open",
            Self::NothingPaused => "no window is open: netfix has paused nothing",
            Self::NoTerminal => {
                "cannot ask for confirmation: stdin or stderr is not a terminal. Use --yes"
            }
            Self::NotConfirmed => "not confirmed; nothing was changed",
            Self::Signals { error } => return write!(f, "cannot catch signals: {error}"),
            Self::NotRestorable { problems } => {
                let s = if *problems == 1 { "" } else { "s" };
                return write!(
                    f,
                    "{problems} problem{s} would prevent a full restore (listed above). Nothing was changed. Use --force \
                     to continue anyway"
                );
            }
            Self::NamespaceUnreadable { error } => error,
            Self::Panicked => {
                "netfix failed in this window (a bug: please report it); kubelet is resumed. Run `netfix restore`"
            }
            Self::SilentBefore => "does not answer, as before the window",
        })
    }
}

impl fmt::Display for DetachedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDetached { error } => {
                write!(f, "{error}. Use --foreground to run without a unit")
            }
            Self::NotQueried { error } => {
                write!(
                    f,
                    "{error}. The window continues: run `netfix status --follow`"
                )
            }
            Self::EndUnknown => f.write_str(
                "ended, and its exit code is not known. Run `netfix status`, then `netfix report`",
            ),
            Self::Killed { signal } => write!(
                f,
                "killed by signal {signal}; it left the window open and the deadline starts kubelet again. Run `netfix \
                 restore`, then `netfix resume`"
            ),
            Self::SharedFile { error } => f.write_str(error),
        }
    }
}

impl fmt::Display for RecordCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str(
                "no window is recorded here: `netfix upgrade` and `netfix pause` record one",
            ),
            Self::NoSuch { windows } if windows.is_empty() => {
                f.write_str("no such window; none is recorded here")
            }
            Self::NoSuch { windows } => {
                write!(f, "no such window; recorded: {}", windows.join(", "))
            }
            Self::Ambiguous { windows } => {
                write!(f, "several windows match: {}", windows.join(", "))
            }
            Self::Gone => f.write_str("was removed in this moment"),
        }
    }
}
