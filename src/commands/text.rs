//! `netfix completions` and `netfix man`: texts about netfix itself.

use std::io::{self, Write};

use clap::CommandFactory;

use crate::cli::{Cli, Command};

impl Command {
    /// The text, if the command only prints one about netfix itself.
    ///
    /// # Errors
    /// When the manual page cannot be made.
    pub fn text(&self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        match self {
            Self::Completions { shell } => {
                clap_complete::generate(*shell, &mut Cli::command(), "netfix", &mut text);
            }
            Self::Man => manual(&mut text)?,
            _ => return Ok(None),
        }
        Ok(Some(text))
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
