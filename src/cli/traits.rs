//! What the program knows of a command before it carries it out.

use super::Command;

impl Command {
    /// The command's word.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Snapshot { .. } => "snapshot",
            Self::List { .. } => "list",
            Self::Show { .. } => "show",
            Self::Diff { .. } => "diff",
            Self::Plan { .. } | Self::Restore { dry_run: true, .. } => "plan",
            Self::Restore { .. } => "restore",
            Self::Verify { .. } => "verify",
            Self::Check { .. } => "check",
            Self::Status { .. } => "status",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Upgrade(_) => "upgrade",
            Self::Report { .. } => "report",
            Self::Import { .. } => "import",
            Self::Prune { .. } => "prune",
            Self::Completions { .. } => "completions",
            Self::Man => "man",
        }
    }

    /// Whether the answer is about pods.
    pub(super) fn lists_pods(&self) -> bool {
        matches!(
            self,
            Self::Snapshot { .. }
                | Self::List {
                    generations: false,
                    ..
                }
                | Self::Show { .. }
                | Self::Diff { .. }
                | Self::Plan { .. }
                | Self::Restore { .. }
                | Self::Verify { .. }
                | Self::Check { nagios: false, .. }
                | Self::Import { .. }
        )
    }

    /// Whether the answer is to be a monitoring plugin's status line.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        matches!(self, Self::Check { nagios: true, .. })
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
            Self::Restore { dry_run, .. } => !dry_run,
            other => matches!(
                other,
                Self::Snapshot { .. }
                    | Self::Import { .. }
                    | Self::Prune { .. }
                    | Self::Pause { .. }
                    | Self::Resume
            ),
        }
    }
}
