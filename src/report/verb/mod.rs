//! The verbs, alike ones in one file: the document from the facts of an engine, with its exit code, and the screen with the last line.

pub(super) mod check;
mod guard;
mod hold;
mod list;
pub(super) mod plan;
mod pods;
pub(super) mod report;
pub(super) mod restore;
pub(super) mod show;
pub(super) mod snapshot;
mod status;
pub(super) mod upgrade;
pub(super) mod verify;

use crate::check::CheckState;
use crate::gateways::Reachability;
use crate::model::State;
use crate::report::document::{Document, Verb};
use crate::report::screen::Screen;
use crate::report::style::{Form, Style};
use crate::restore::RestoreState;
use crate::snapshot::SnapshotState;

/// The screen of a command.
pub(super) fn screen(document: &Document, style: Style) -> Screen<'_> {
    if style.form == Form::Name {
        return Screen::new(pods::names(document), None);
    }
    match document.command {
        Verb::Snapshot | Verb::Import => snapshot::screen(document, style),
        Verb::List => list::screen(document, style),
        Verb::Show => show::screen(document),
        Verb::Diff | Verb::Plan => plan::screen(document, style),
        Verb::Restore => restore::screen(document, style),
        Verb::Verify => verify::screen(document, style),
        Verb::Check => check::screen(document, style),
        Verb::Status => status::screen(document, style),
        Verb::Pause | Verb::Resume => hold::screen(document, style),
        Verb::Upgrade => upgrade::screen(document, style),
        Verb::Wait | Verb::Report => report::screen(document, style),
        Verb::Prune => list::of_prune(document, style),
    }
}

/// The states of the engines have the names of the words in the document.
macro_rules! states {
    ($($engine:ident { $($state:ident)* })*) => {
        $(impl From<$engine> for State {
            fn from(state: $engine) -> Self {
                match state {
                    $($engine::$state => Self::$state,)*
                }
            }
        })*
    };
}

states! {
    SnapshotState { Saved Unchanged Degraded Empty NoCheckpoint Failed }
    RestoreState { InSync Restored Partial Failed CutOff NoCheckpoint Unknown }
    Reachability { NoGateway NeverAnswered Reachable Unknown CutOff Unreachable NoCheckpoint Failed }
    CheckState { InSync Stale Drifted Degraded New CutOff NoCheckpoint Failed }
}
