//! A file a verb: its document from the facts of an engine, with its exit code, and its screen with the last line.

pub(super) mod check;
mod import;
mod list;
mod pause;
pub(super) mod plan;
mod pods;
mod prune;
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
        Verb::Snapshot => snapshot::screen(document, style),
        Verb::List => list::screen(document, style),
        Verb::Show => show::screen(document),
        Verb::Diff | Verb::Plan => plan::screen(document, style),
        Verb::Restore => restore::screen(document, style),
        Verb::Verify => verify::screen(document, style),
        Verb::Check => check::screen(document, style),
        Verb::Status => status::screen(document, style),
        Verb::Pause | Verb::Resume => pause::screen(document, style),
        Verb::Upgrade => upgrade::screen(document, style),
        Verb::Wait => report::of_wait(document, style),
        Verb::Report => report::screen(document, style),
        Verb::Import => import::screen(document, style),
        Verb::Prune => prune::screen(document, style),
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
    SnapshotState { Saved Unchanged Degraded Empty Failed }
    RestoreState { InSync Restored Partial Failed NoCheckpoint }
    Reachability { NoGateway Reachable Unknown Unreachable NoCheckpoint Failed }
    CheckState { InSync Stale Drifted Degraded NoCheckpoint Failed }
}
