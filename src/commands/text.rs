//! `netfix completions` and `netfix man`: texts about netfix itself.

use std::env;
use std::io::{self, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::env::Shells;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::complete::COMPLETE;
use crate::cli::{Cli, Command, Page, page};
use crate::{report, store};

/// The section of the manual: commands for the administrator.
const SECTION: &str = "8";

impl Command {
    /// The text, if the command only prints one about netfix itself.
    ///
    /// # Errors
    /// When a manual page cannot be made or written.
    pub fn text(&self) -> io::Result<Option<Vec<u8>>> {
        let mut text = Vec::new();
        match self {
            Self::Explain { code } => text = explained(code.as_deref()).into_bytes(),
            Self::Schema { command } => text = report::schema(*command).into_bytes(),
            Self::Completions { shell } => completions(shell, &mut text)?,
            Self::Man { dir: Some(dir), .. } => all_pages(dir, &mut text)?,
            Self::Man { command, .. } => manual(command.as_deref(), &mut text)?,
            _ => return Ok(None),
        }
        Ok(Some(text))
    }
}

/// The widest text, in columns: longer lines are hard to read.
const TEXT_WIDTH: usize = 100;

/// What is known about one code, or about each.
fn explained(code: Option<&str>) -> String {
    let columns = env::var("COLUMNS").ok();
    let width = report::width(columns.as_deref());
    let width = width.unwrap_or(TEXT_WIDTH).min(TEXT_WIDTH);
    match code {
        Some(code) => report::explain(code, width).unwrap_or_default(),
        None => report::list_codes(width),
    }
}

/// A script that runs netfix for the candidates.
fn completions(shell: &str, out: &mut dyn Write) -> io::Result<()> {
    let shells = Shells::builtins();
    let known = shells
        .completer(shell)
        .ok_or_else(|| io::Error::other(format!("no completion script for {shell}")))?;
    known.write_registration(COMPLETE, "netfix", "netfix", "netfix", out)?;
    // zsh loads the file at the first TAB, as the function of its name: that has to answer too.
    if shell == "zsh" {
        let answer = "_clap_dynamic_completer_netfix \"$@\"";
        writeln!(out, "[[ ${{funcstack[1]}} != _netfix ]] || {answer}")?;
    }
    Ok(())
}

/// Writes every page to the directory, and its path to `out`.
fn all_pages(dir: &Path, out: &mut dyn Write) -> io::Result<()> {
    let program = Cli::command();
    let names = program.get_subcommands().map(clap::Command::get_name);
    for name in [None].into_iter().chain(names.map(Some)) {
        let mut text = Vec::new();
        manual(name, &mut text)?;
        let of_command = name.map(|name| format!("-{name}")).unwrap_or_default();
        let path = dir.join(format!("netfix{of_command}.{SECTION}"));
        store::publish(&path, &text)
            .map_err(|error| io::Error::other(error.problem().line(None)))?;
        writeln!(out, "{}", path.display())?;
    }
    Ok(())
}

/// The page of one command, or that of the program, which lists the commands.
fn manual(name: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    let Page { command, sections } = page(name);
    let man = titled(match name {
        Some(_) => without_global(command),
        None => command,
    });
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if name.is_some() {
        let mut global = Roff::default();
        global.control("SH", ["GLOBAL OPTIONS"]);
        global.text([roman("The options of every command are in netfix(8).")]);
        global.to_writer(out)?;
    } else {
        man.render_subcommands_section(out)?;
    }
    tail(sections, out)
}

fn titled(command: clap::Command) -> Man {
    let source = concat!("netfix ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command).section(SECTION).source(source);
    man.manual("netfix")
}

/// A command without the options of every command.
fn without_global(command: clap::Command) -> clap::Command {
    let global = command.get_arguments().filter(|one| one.is_global_set());
    let ids: Vec<_> = global.map(|one| one.get_id().clone()).collect();
    ids.into_iter().fold(command, |command, id| {
        command.mut_arg(id, |one| one.hide(true))
    })
}

/// The sections that clap does not know. A line is a word and, after two spaces, its meaning; or a sentence.
fn tail(sections: Vec<(&'static str, Vec<String>)>, out: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::default();
    for (heading, lines) in sections {
        roff.control("SH", [heading]);
        for line in lines.iter().map(|line| line.trim()) {
            match line.split_once("  ") {
                Some((word, meaning)) => {
                    roff.control("TP", []);
                    roff.text([bold(word)]);
                    roff.text([roman(meaning.trim())]);
                }
                None if line.is_empty() => {
                    roff.control("PP", []);
                }
                None if heading == "EXAMPLES" => {
                    roff.control("PP", []);
                    roff.text([bold(line)]);
                }
                None => {
                    roff.text([roman(line)]);
                }
            }
        }
    }
    roff.to_writer(out)
}
