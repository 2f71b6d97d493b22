//! One file a command: gather, decide, act, answer.

mod ask;
mod check;
mod check_in;
mod claims;
mod cni_cache;
mod conflicts;
mod diff;
mod generations;
mod import;
mod list;
mod origin;
mod pods;
mod prepare;
mod prune;
mod record;
mod report;
mod restore;
mod select;
mod session;
mod show;
mod snapshot;
mod status;
mod upgrade;
mod verify;
mod wait;
mod window;

use std::io::{self, Write};

use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::model::{Code, Problem};
use crate::report::{Document, Extra, NodeView, PodView, Verdict};

pub use session::Context;

/// What a command has to say.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The exit code.
    pub exit: Exit,
    /// The host.
    pub node: NodeView,
    /// The pods.
    pub pods: Vec<PodView>,
    /// What went wrong or is worth knowing.
    pub problems: Vec<Problem>,
    /// What only this command answers.
    pub extra: Option<Extra>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Exit {
    /// All done.
    #[default]
    Done,
    /// Failed.
    Failed,
    /// Drift was found.
    Drift,
    /// Refused before anything was changed.
    Refused,
    /// Some pods were handled, some not.
    Partly,
    /// What `check` found, in the convention of monitoring plugins.
    Check(Verdict),
    /// The answer was given by another process, which ended with this code.
    Printed(u8),
}

impl Exit {
    /// The process's exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Drift => 3,
            Self::Refused => 4,
            Self::Partly => 5,
            Self::Check(verdict) => verdict as u8,
            Self::Printed(code) => code,
        }
    }
}

impl Outcome {
    /// Refused before anything was changed.
    #[must_use]
    pub fn refused(problem: Problem) -> Self {
        Self { exit: Exit::Refused, problems: vec![problem], ..Self::default() }
    }

    /// Another process has given the answer.
    #[must_use]
    pub fn printed(code: u8) -> Self {
        Self { exit: Exit::Printed(code), ..Self::default() }
    }

    /// Failed as a whole.
    #[must_use]
    pub fn failed(problem: Problem) -> Self {
        Self { exit: Exit::Failed, ..Self::refused(problem) }
    }

    /// What several pods' fates add up to: something that netfix cannot do is never more than part of the work.
    fn judge(pods: &[PodView], problems: &[Problem]) -> Exit {
        let errors = || problems.iter().filter(|problem| problem.is_error());
        let good = pods.iter().filter(|pod| pod.state.is_good()).count();
        match (errors().count(), good) {
            (0, all) if all == pods.len() => Exit::Done,
            (_, 0) if !errors().any(|problem| problem.code == Code::Unsupported) => Exit::Failed,
            _ => Exit::Partly,
        }
    }
}

/// The document for an outcome.
#[must_use]
pub fn document(command: &Command, outcome: Outcome) -> Document {
    let Outcome { exit, node, pods, problems, extra } = outcome;
    Document { schema: "netfix/v1", command: command.name(), exit: exit.code(), node, pods, problems, extra }
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

    /// Whether the command only prints a text about netfix itself; then that is written to `out`.
    ///
    /// # Errors
    /// When writing fails.
    pub fn print_text(&self, out: &mut dyn Write) -> io::Result<bool> {
        match self {
            Self::Completions { shell } => {
                clap_complete::generate(*shell, &mut Cli::command(), "netfix", out);
            }
            Self::Man => manual(out)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// The manual page: the program, then each command with its own options.
fn manual(out: &mut dyn Write) -> io::Result<()> {
    let mut program = Cli::command();
    program.build();
    clap_mangen::Man::new(program.clone()).render(out)?;
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        writeln!(out, ".SH \"NETFIX {}\"", command.get_name().to_uppercase())?;
        let own =
            command.get_arguments().filter(|argument| argument.is_global_set()).map(|a| a.get_id().clone());
        let hidden: Vec<_> = own.collect();
        let command =
            hidden.iter().fold(command.clone(), |command, id| command.mut_arg(id, |a| a.hide(true)));
        let page = clap_mangen::Man::new(command);
        page.render_synopsis_section(out)?;
        page.render_description_section(out)?;
        page.render_options_section(out)?;
    }
    Ok(())
}

/// Carries out a command that looks at the machine.
pub fn run(command: &Command, context: &mut Context) -> Outcome {
    if !nix::unistd::geteuid().is_root() {
        let message = "netfix enters other processes' network namespaces and must be run as root";
        return Outcome::refused(Problem::error(Code::PermissionDenied, "", message));
    }
    crate::kernel::netns::raise_file_limit();
    let result = match command {
        Command::Snapshot { selectors, runtimes, keep } => snapshot::run(selectors, runtimes, *keep, context),
        Command::List { generations: true, .. } => generations::list(context),
        Command::List { pods, .. } => list::list(pods, context),
        Command::Show { pod, generation, runtimes } => {
            show::run(pod, *generation, &runtimes.config(), context)
        }
        Command::Diff { pod, pods, runtimes } => diff::diff(pod.as_deref(), pods, runtimes, context),
        Command::Plan { target, source, exit_code } => diff::plan(target, source, *exit_code, context),
        Command::Restore { target, source, dry_run: true, .. } => diff::plan(target, source, false, context),
        Command::Restore { target, source, wait, .. } => restore::run(target, source, *wait, context),
        Command::Verify { selectors, timeout } => verify::run(selectors, *timeout, context),
        Command::Check { selectors, runtimes, max_age, nagios: _, textfile } => {
            let check = check::Check { selectors, config: runtimes.config(), max_age: *max_age };
            return check::run(&check, textfile.as_deref(), context);
        }
        Command::Status { follow: true, .. } => upgrade::follow(context),
        Command::Status { runtimes, .. } => status::run(runtimes, context),
        Command::Pause { hold } => window::pause(hold.unit.as_deref(), hold.deadline, context),
        Command::Resume => window::resume(context),
        Command::Upgrade(args) => upgrade::run(args, context),
        Command::Report { list: true, .. } => report::list(context),
        Command::Report { window, html, .. } => report::run(window.as_deref(), html.as_deref(), context),
        Command::Import { path, runtimes } => import::run(path, runtimes, context),
        Command::Prune { keep } => prune::run(*keep, context),
        Command::Completions { .. } | Command::Man => {
            return Outcome::refused(no_text());
        }
    };
    result.unwrap_or_else(|outcome| *outcome)
}

fn no_text() -> Problem {
    Problem::error(Code::Failed, "", "this command only prints a text")
}

/// What ends a command early.
type Early = Box<Outcome>;
