//! One file a command: gather, decide, act, answer.

mod check;
mod diff;
mod generations;
mod import;
mod list;
mod pause;
mod prune;
mod report;
mod restore;
mod show;
mod snapshot;
mod status;
mod text;
mod upgrade;
mod verify;

use crate::cli::Command;
use crate::model::problem::UsageCause;
use crate::report::Document;

use crate::context::Context;
use crate::report::outcome::Outcome;

/// The document for an outcome.
#[must_use]
pub fn document(command: &Command, outcome: Outcome) -> Document {
    let Outcome {
        exit,
        node,
        pods,
        problems,
        extra,
    } = outcome;
    Document {
        schema: "netfix/v1",
        command: command.name(),
        exit: exit.code(),
        node,
        pods,
        problems,
        extra,
    }
}

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

    /// Whether the command is there to change something: in the kernel, in the state folder.
    #[must_use]
    pub fn changes(&self) -> bool {
        match self {
            Self::Restore { dry_run, .. } => !dry_run,
            Self::Upgrade(args) => !args.dry_run,
            Self::Snapshot { .. }
            | Self::Import { .. }
            | Self::Prune { .. }
            | Self::Pause { .. }
            | Self::Resume => true,
            Self::List { .. }
            | Self::Show { .. }
            | Self::Diff { .. }
            | Self::Plan { .. }
            | Self::Verify { .. }
            | Self::Check { .. }
            | Self::Status { .. }
            | Self::Report { .. }
            | Self::Completions { .. }
            | Self::Man => false,
        }
    }
}

/// Carries out a command that looks at the machine.
pub fn run(command: &Command, context: &mut Context) -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        return Outcome::refused(UsageCause::NotRoot.error(""));
    }
    crate::kernel::netns::raise_file_limit();
    let result = match command {
        Command::Snapshot {
            selectors,
            runtimes,
            keep,
        } => snapshot::snapshot(selectors, runtimes, *keep, context),
        Command::List {
            generations: true, ..
        } => generations::list(context),
        Command::List { pods, .. } => list::list(pods, context),
        Command::Show {
            pod,
            generation,
            runtimes,
        } => show::run(pod, *generation, &runtimes.config(), context),
        Command::Diff { pods, runtimes } => diff::diff(pods, runtimes, context),
        Command::Plan {
            target,
            source,
            exit_code,
        } => diff::plan(target, source, *exit_code, context),
        Command::Restore {
            target,
            source,
            dry_run: true,
            ..
        } => diff::plan(target, source, false, context),
        Command::Restore {
            target,
            source,
            wait,
            ..
        } => restore::restore(target, source, *wait, context),
        Command::Verify { selectors, timeout } => verify::verify(selectors, *timeout, context),
        Command::Check {
            selectors,
            runtimes,
            max_age,
            nagios: _,
            textfile,
        } => {
            let textfile = textfile.as_deref();
            return check::check(selectors, runtimes, *max_age, textfile, context);
        }
        Command::Status { follow: true, .. } => status::follow(context),
        Command::Status { runtimes, .. } => status::run(runtimes, context),
        Command::Pause { hold } => pause::pause(hold, context),
        Command::Resume => pause::resume(context),
        Command::Upgrade(args) => upgrade::run(args, context),
        Command::Report { list: true, .. } => report::list(context),
        Command::Report { window, html, .. } => {
            report::run(window.as_deref(), html.as_deref(), context)
        }
        Command::Import { path, runtimes } => import::run(path, runtimes, context),
        Command::Prune { keep } => prune::run(*keep, context),
        Command::Completions { .. } | Command::Man => {
            return Outcome::refused(UsageCause::TextOnly.error(""));
        }
    };
    result.unwrap_or_else(|outcome| *outcome)
}
