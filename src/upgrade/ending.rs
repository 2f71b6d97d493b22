//! How a window ends: its record is closed, or stays open while kubelet does not run.

use crate::model::{Exit, Problem, Window};
use crate::restore::Restored;
use crate::upgrade::ledger::Ledger;

/// How a window ended.
pub(crate) struct Upgraded {
    pub end: Exit,
    /// The record; `None` where the window ended before its first change.
    pub window: Option<Window>,
    /// Whether the window is still open: kubelet does not run.
    pub is_open: bool,
    pub restored: Restored,
    pub problems: Vec<Problem>,
}

/// Ends a window before COMMAND. One that was found paused stays paused and open.
pub(crate) fn refused(ledger: Ledger, restored: Restored) -> Upgraded {
    let (mut session, mut problems) = (ledger.session, ledger.problems.into_problems());
    session.note_refusal(&problems);
    let window = session.window();
    if window.is_paused() || window.pause.is_none() {
        session.leave();
    } else {
        problems.extend(session.close(Exit::Refused, None).1);
    }
    Upgraded {
        end: Exit::Refused,
        window: None,
        is_open: false,
        restored,
        problems,
    }
}

/// Ends a window after COMMAND.
pub(crate) fn closed(ledger: Ledger, mut end: Exit, restored: Restored) -> Upgraded {
    let (mut session, mut problems) = (ledger.session, ledger.problems.into_problems());
    session.note_outcome(&problems);
    let is_open = session.window().is_paused();
    let window = if is_open {
        // kubelet does not run: the window stays open for the next process.
        session.save_if_possible();
        session.leave()
    } else {
        let (window, failed) = session.close(end, None);
        if end == Exit::Done && failed.iter().any(Problem::is_error) {
            // All is well but the window, which is still open.
            end = Exit::Failed;
        }
        problems.extend(failed);
        window
    };
    Upgraded {
        end,
        window: Some(window),
        is_open,
        restored,
        problems,
    }
}
