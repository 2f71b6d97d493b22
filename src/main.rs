//! The `netfix` program: reads the command line, runs one command, prints its answer once.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use netfix::cli::{Cli, Output};
use netfix::commands::{self, Context, Exit};
use netfix::journal;
use netfix::report::{self, Progress, Style, listener};
use netfix::store::Store;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = run(&cli);
    log::logger().flush();
    match result {
        Ok(code) => ExitCode::from(code),
        // Whoever reads the answer may stop reading, as `head` does.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "netfix: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> anyhow::Result<u8> {
    let mut out = io::stdout().lock();
    if cli.command.print_text(&mut out)? {
        return Ok(0);
    }
    let global = &cli.global;
    let begin = Instant::now();
    journal::start(global.verbose);
    if cli.command.changes() {
        journal::begins(cli.command.name());
    }
    let terminal = io::stderr().is_terminal();
    // Lines on stderr and a bar there do not go together.
    let silent = global.quiet || global.verbose || global.output == Output::Json;
    let say = if global.quiet { log_waiting } else { say_waiting };
    let store = Store::new(global.state_dir.clone()).patient(global.lock_wait, say);
    let (quiet, json) = (global.quiet, global.output == Output::Json);
    let mut context = Context { store, progress: listener(terminal, silent), quiet, json };
    let outcome = commands::run(&cli.command, &mut context);
    context.progress.notice(Progress::Done);
    if let Exit::Printed(code) = outcome.exit {
        return Ok(code);
    }
    let document = commands::document(&cli.command, outcome);
    journal::ends(&document, cli.command.changes(), begin.elapsed());
    let style = Style::new(global, cli.command.is_plugin(), io::stdout().is_terminal());
    report::render(&document, style, &mut out, &mut io::stderr().lock())?;
    out.flush()?;
    Ok(document.exit)
}

fn log_waiting(holder: &str) {
    log::info!("waits for the lock, which {holder} holds");
}

fn say_waiting(holder: &str) {
    log_waiting(holder);
    let _ = writeln!(io::stderr(), "netfix: waits for the lock, which {holder} holds");
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
