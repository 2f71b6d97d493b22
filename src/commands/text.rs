//! `netfix completions` and `netfix man`: texts about netfix itself.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::cli::{Cli, Command};

impl Command {
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
    for command in program
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
    {
        writeln!(out, ".SH \"NETFIX {}\"", command.get_name().to_uppercase())?;
        let own = command
            .get_arguments()
            .filter(|argument| argument.is_global_set())
            .map(|a| a.get_id().clone());
        let hidden: Vec<_> = own.collect();
        let command = hidden.iter().fold(command.clone(), |command, id| {
            command.mut_arg(id, |a| a.hide(true))
        });
        let page = clap_mangen::Man::new(command);
        page.render_synopsis_section(out)?;
        page.render_description_section(out)?;
        page.render_options_section(out)?;
    }
    Ok(())
}
