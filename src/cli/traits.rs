//! What the program knows of a command before it carries it out.

use std::time::Duration;

use super::{CheckArgs, Command, RestoreArgs, SnapshotArgs};
use crate::report::Verb;

impl Command {
    /// The command as its document has it; `None`: it only prints a text, or runs another program.
    #[must_use]
    pub fn verb(&self) -> Option<Verb> {
        Some(match self {
            Self::Snapshot(_) => Verb::Snapshot,
            Self::List { .. } => Verb::List,
            Self::Show(_) => Verb::Show,
            Self::Diff(_) => Verb::Diff,
            Self::Plan(_) | Self::Restore(RestoreArgs { dry_run: true, .. }) => Verb::Plan,
            Self::Restore(_) => Verb::Restore,
            Self::Verify(_) => Verb::Verify,
            Self::Check(_) => Verb::Check,
            Self::Status { .. } => Verb::Status,
            Self::Pause { .. } => Verb::Pause,
            Self::Resume { .. } => Verb::Resume,
            Self::Upgrade(_) => Verb::Upgrade,
            Self::Wait(_) => Verb::Wait,
            Self::Report(_) => Verb::Report,
            Self::Import(_) => Verb::Import,
            Self::Prune { .. } => Verb::Prune,
            Self::Guard(_)
            | Self::Host { .. }
            | Self::Explain { .. }
            | Self::Schema { .. }
            | Self::Completions { .. }
            | Self::Man { .. } => return None,
        })
    }

    /// The command's word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Guard(_) => "guard",
            Self::Host { .. } => "host",
            Self::Explain { .. } => "explain",
            Self::Schema { .. } => "schema",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
            other => other.verb().unwrap_or_default().word(),
        }
    }

    /// The interval at which the command is repeated.
    #[must_use]
    pub fn every(&self) -> Option<Duration> {
        match self {
            Self::Snapshot(SnapshotArgs { every, .. }) | Self::Check(CheckArgs { every, .. }) => {
                *every
            }
            _ => None,
        }
    }

    /// Whether the answer is about pods.
    pub(super) fn lists_pods(&self) -> bool {
        matches!(
            self,
            Self::Snapshot(_)
                | Self::List {
                    generations: false,
                    ..
                }
                | Self::Show(_)
                | Self::Diff(_)
                | Self::Plan(_)
                | Self::Restore(_)
                | Self::Verify(_)
                | Self::Check(CheckArgs { nagios: false, .. })
                | Self::Import(_)
        )
    }

    /// Whether the answer is to be a monitoring plugin's status line.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        matches!(self, Self::Check(CheckArgs { nagios: true, .. }))
    }

    /// Whether the command writes a log to stderr while it works.
    #[must_use]
    pub fn logs_to_stderr(&self) -> bool {
        matches!(
            self,
            Self::Upgrade(_) | Self::Guard(_) | Self::Status { follow: true, .. }
        )
    }

    /// Whether a person needs the command when pods have lost their network.
    pub(super) fn is_needed_after_a_loss(&self) -> bool {
        !matches!(
            self,
            Self::Upgrade(_)
                | Self::Pause { .. }
                | Self::Snapshot(_)
                | Self::Check(_)
                | Self::Guard(_)
                | Self::Import(_)
                | Self::Prune { .. }
        )
    }

    /// Whether the command changes nothing, and its exit code alone does not say what its answer does.
    #[must_use]
    pub fn only_answers(&self) -> bool {
        !self.changes() && !matches!(self, Self::Check(_) | Self::Wait(_))
    }

    /// Whether the command changes something: in the kernel or in the state directory.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            Self::Upgrade(args) => !args.dry_run,
            Self::Restore(args) => !args.dry_run,
            other => matches!(
                other,
                Self::Snapshot(_)
                    | Self::Import(_)
                    | Self::Prune { .. }
                    | Self::Pause { .. }
                    | Self::Resume { .. }
            ),
        }
    }
}
