//! What the program knows of a command before it carries it out.

use std::time::Duration;

use super::{CheckArgs, Command, RestoreArgs, SnapshotArgs};

impl Command {
    /// The command's word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Snapshot(_) => "snapshot",
            Self::List { .. } => "list",
            Self::Show(_) => "show",
            Self::Diff(_) => "diff",
            Self::Plan(_) | Self::Restore(RestoreArgs { dry_run: true, .. }) => "plan",
            Self::Restore(_) => "restore",
            Self::Verify(_) => "verify",
            Self::Check(_) => "check",
            Self::Status { .. } => "status",
            Self::Pause(_) => "pause",
            Self::Resume { .. } => "resume",
            Self::Upgrade(_) => "upgrade",
            Self::Wait(_) => "wait",
            Self::Host { .. } => "host",
            Self::Report(_) => "report",
            Self::Import(_) => "import",
            Self::Prune { .. } => "prune",
            Self::Explain { .. } => "explain",
            Self::Schema { .. } => "schema",
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
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
        matches!(self, Self::Upgrade(_) | Self::Status { follow: true, .. })
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
                    | Self::Pause(_)
                    | Self::Resume { .. }
            ),
        }
    }
}
