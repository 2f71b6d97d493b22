//! The `netfix` program: reads the command line, runs one command, prints its answer once.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use netfix::cli::{self, Cli, Color, Command, Global};
use netfix::commands::{self, Reply};
use netfix::context::Context;
use netfix::journal::{self, CommandEnd};
use netfix::progress::Progress;
use netfix::report::{self, Detail, Form, Style};
use netfix::store::Store;

fn main() -> ExitCode {
    if cli::complete::complete() {
        return ExitCode::SUCCESS;
    }
    let cli = Cli::of_process();
    if let Some(interval) = cli.command.every() {
        return ExitCode::from(commands::repeat(interval));
    }
    if let Command::Host { command } = &cli.command {
        return ExitCode::from(commands::on_host(command));
    }
    let code = match cli.command.text() {
        Ok(None) => run(&cli),
        Ok(Some(text)) => u8::from(has_failed(io::stdout().write_all(&text))),
        Err(error) => u8::from(has_failed(Err(error))),
    };
    log::logger().flush();
    ExitCode::from(code)
}

/// Runs the command, and prints its answer. Returns the exit code of the command, also if stdout or stderr cannot be written: a
/// script must not take a lost pod for a good one. A command that only answers has failed without its answer.
fn run(cli: &Cli) -> u8 {
    let style = style(&cli.global, cli.command.is_plugin());
    let begin = Instant::now();
    journal::start(cli.global.verbose);
    // `upgrade` may only start a unit, which does the work.
    if cli.command.changes() && !matches!(cli.command, Command::Upgrade(_)) {
        journal::begins(cli.command.name());
    }
    let mut context = context(cli, style);
    let reply = commands::run(&cli.command, &mut context);
    context.progress.notice(Progress::Done);
    let document = match reply {
        Reply::Document(document) => document,
        Reply::Printed(code) => return code,
    };
    journal::ends(&CommandEnd {
        command: document.command.word(),
        exit: document.exit,
        pods: document
            .pods
            .iter()
            .map(|pod| (&pod.info.id, (&pod.info, pod.netns.as_ref())))
            .collect(),
        problems: &document.problems,
        changes: cli.command.changes(),
        took: begin.elapsed(),
    });
    let mut out = io::stdout().lock();
    let written = report::render(&document, style, &mut out, &mut io::stderr().lock());
    let is_lost = has_failed(written) && cli.command.only_answers();
    context.finish();
    document.exit.max(u8::from(is_lost))
}

/// Logs and prints that an answer could not be written. A reader may stop reading, as `head` does: that is no failure.
fn has_failed(written: io::Result<()>) -> bool {
    let Err(error) = written else { return false };
    let is_failure = error.kind() != io::ErrorKind::BrokenPipe;
    let error = anyhow::Error::new(error).context("cannot write the answer");
    log::warn!("{error:#}");
    if is_failure {
        let _ = writeln!(io::stderr(), "netfix: {error:#}");
    }
    is_failure
}

fn context(cli: &Cli, style: Style) -> Context {
    let global = &cli.global;
    // Lines of a log on stderr and a bar there do not go together.
    let shows_bar = style.detail == Detail::Normal
        && !style.form.is_json()
        && !cli.command.logs_to_stderr()
        && io::stderr().is_terminal();
    let notify = if global.quiet {
        log_waiting
    } else {
        say_waiting
    };
    let store = Store::new(global.state_dir.clone());
    let store = match global.lock_wait {
        Some(patience) => store.patient(patience, notify),
        None => store.patient(Duration::ZERO, notify).after_guard(),
    };
    let progress = report::listener(shows_bar, style.ascii);
    let mut context = Context::new(store, progress);
    context.quiet = global.quiet;
    context.json = style.form.is_json();
    context.config = cli.config.clone();
    context
}

/// How the user and the terminal want the answer.
fn style(global: &Global, is_plugin: bool) -> Style {
    let Global {
        output,
        no_headers,
        color,
        quiet,
        verbose,
        ..
    } = global;
    let columns = env::var("COLUMNS").ok();
    let columns = columns.as_deref();
    Style {
        form: match output {
            form if form.is_json() => *form,
            _ if is_plugin => Form::Plugin,
            other => *other,
        },
        detail: match (quiet, verbose) {
            (true, _) => Detail::Errors,
            (false, 0) => Detail::Normal,
            (false, _) => Detail::Steps,
        },
        color: match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                io::stdout().is_terminal()
                    && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        },
        headers: !no_headers,
        ascii: !report::is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| env::var(name).ok())),
        width: report::width(columns),
        lines: report::terminal_width(io::stdout(), columns),
        messages: report::terminal_width(io::stderr(), columns),
        now: jiff::Timestamp::now(),
    }
}

fn log_waiting(holder: &str) {
    log::info!("waiting for the lock held by {holder}");
}

fn say_waiting(holder: &str) {
    log_waiting(holder);
    report::waits_for_lock(holder);
}
