//! Sentences about a maintenance window.

use crate::model::problem::{DetachedCause, RecordCause, WindowCause};
use crate::model::text::count;

sentences! {
    WindowCause {
        Open { started, command, pid, unit: None } => "a window is open since {started}, by `netfix {command}` (pid \
            {pid}). Run `netfix status`, then `netfix resume`",
        Open { started, command, pid, unit: Some(unit) } => "a window is open since {started}, by `netfix {command}` \
            (pid {pid}); {unit} is paused. Run `netfix status`, then `netfix resume`",
        CommandStillRuns { pid } => "COMMAND of this window still runs (pid {pid}). Wait for its end or stop it, then \
            run this again",
        NoneOpen => "no window is open",
        NothingPaused => "no window is open: netfix has paused nothing",
        NoTerminal => "cannot ask for confirmation: stdin or stderr is not a terminal. Use --yes",
        NotConfirmed => "not confirmed; nothing was changed",
        Signals { error } => "cannot catch signals: {error}",
        NotRestorable { problems } => "{problems} would prevent a full restore (listed above). Nothing was changed. Use \
            --force to continue anyway" (problems = count(*problems, "problem")),
        NamespaceUnreadable { error } => "{error}",
        Panicked => "netfix failed in this window (a bug: please report it); kubelet is resumed. Run `netfix restore`",
        SilentBefore => "does not answer, as before the window",
    }
}

sentences! {
    DetachedCause {
        NotDetached { error } => "{error}. Use --foreground to run without a unit",
        NotQueried { error } => "{error}. The window continues: run `netfix status --follow`",
        EndUnknown => "ended, and its exit code is not known. Run `netfix status`, then `netfix report`",
        Killed { signal } => "killed by signal {signal}; it left the window open and the deadline starts kubelet again. \
            Run `netfix restore`, then `netfix resume`",
        SharedFile { error } => "{error}",
    }
}

sentences! {
    RecordCause {
        Nothing => "no window is recorded here: `netfix upgrade` and `netfix pause` record one",
        NoSuch { windows } if windows.is_empty() => "no such window; none is recorded here",
        NoSuch { windows } => "no such window; recorded: {windows}" (windows = windows.join(", ")),
        Ambiguous { windows } => "several windows match: {windows}" (windows = windows.join(", ")),
        Gone => "was removed in this moment",
    }
}
