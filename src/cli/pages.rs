//! The manual pages: which there are, and their sections that the command line does not have.

use std::ffi::OsStr;

use clap::{Command, CommandFactory};
use clap_complete::CompletionCandidate;

use super::Cli;
use super::candidates::candidates;
use super::exit_status::exit_status;

/// One page: a command with its own arguments, and the sections after its options.
pub struct Page {
    /// The command; the program itself for `netfix.8`.
    pub command: Command,
    /// Heading and lines of each section.
    pub sections: Vec<(&'static str, Vec<String>)>,
}

/// The name of a command, or why it is none.
pub(super) fn command(word: &str) -> Result<String, String> {
    let program = Cli::command();
    let known = program.get_subcommands().any(|one| one.get_name() == word);
    if known {
        return Ok(word.to_owned());
    }
    let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
    Err(format!("the commands are {}", names.join(", ")))
}

/// The commands of netfix.
pub(super) fn commands(typed: &OsStr) -> Vec<CompletionCandidate> {
    let program = Cli::command();
    let names = program.get_subcommands().map(Command::get_name);
    candidates(names.map(str::to_owned), typed)
}

/// The page of this command, else that of the program.
#[must_use]
pub fn page(name: Option<&str>) -> Page {
    let mut program = Cli::command();
    program.build();
    let command = name.and_then(|name| program.find_subcommand(name)).cloned();
    let command = command.unwrap_or(program);
    let mut sections = of_help(&command);
    if let Some(name) = name {
        sections.push(("EXIT STATUS", exit_status(name)));
    }
    sections.push(("ENVIRONMENT", environment(&command, name)));
    sections.push(("FILES", files(name)));
    sections.push(("SEE ALSO", see_also(name)));
    Page { command, sections }
}

/// The sections at the end of the help: a line in capitals, and the lines below it.
fn of_help(command: &Command) -> Vec<(&'static str, Vec<String>)> {
    let help = command.get_after_help().map(ToString::to_string);
    let mut sections: Vec<(&'static str, Vec<String>)> = Vec::new();
    for line in help.as_deref().unwrap_or_default().lines() {
        match (line, sections.last_mut()) {
            ("EXAMPLES", _) => sections.push(("EXAMPLES", Vec::new())),
            ("EXIT CODES", _) => sections.push(("EXIT STATUS", Vec::new())),
            ("SETTINGS", _) => sections.push(("SETTINGS", Vec::new())),
            (line, Some((_, lines))) => lines.push(line.to_owned()),
            (_, None) => {}
        }
    }
    for (_, lines) in &mut sections {
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
    }
    sections
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// The variables that a command reads.
fn environment(command: &Command, name: Option<&str>) -> Vec<String> {
    let variables = command.get_arguments().filter_map(|argument| {
        let variable = argument.get_env()?.to_string_lossy().into_owned();
        Some(format!(
            "{variable}  the default of --{}",
            argument.get_long()?
        ))
    });
    let mut all: Vec<String> = variables.collect();
    all.sort();
    if !matches!(name, Some("completions" | "host" | "man" | "schema")) {
        all.extend(lines(
            "NETFIX_HOST_NETNS  self: the network namespace of this process is the host's, also where process 1 has another one\n\
            NO_COLOR  if not empty: no colors without --color always\n\
            COLUMNS  the width of the output; default: that of the terminal\n\
            LC_ALL, LC_CTYPE, LANG  without UTF-8 in the first that is set, the output is ASCII",
        ));
    }
    if name == Some("host") {
        all.push(
            "PATH  where COMMAND is searched on the host; if not set, the usual directories"
                .to_owned(),
        );
    }
    if name == Some("upgrade") {
        all.extend(lines(
            "PATH, HOME, LANG, LC_ALL, TZ, TERM, COLUMNS, NO_COLOR, NETFIX_*  what COMMAND gets from this shell, unless --foreground is given",
        ));
    }
    all
}

/// The files that a command reads and writes.
fn files(name: Option<&str>) -> Vec<String> {
    const STATE: &str =
        "/var/lib/netfix  the state directory, readable by root only; --state-dir sets another one";
    const CHECKPOINTS: &str =
        "/var/lib/netfix/checkpoints, node.json, generations  the checkpoints and the host's state";
    const WINDOW: &str =
        "/var/lib/netfix/window.json, windows  the open window; records and logs of closed ones";
    const UNITS: &str = "/etc/default/netfix  options of netfix-snapshot.service, netfix-check.service, netfix-rehearsal.service and netfix-guard.service";
    const CONFIG: &str =
        "/etc/netfix/config.toml  other defaults of options; --config names another file";
    const LOCK: &str = "/var/lib/netfix/lock  held by the command that changes the node";
    const CACHE: &str = "/var/lib/cni  libcni's cache; --cni-cache-dir sets another one";
    const MASK: &str =
        "/run/systemd  the mask of kubelet's unit, until the next boot at the latest";
    let own: &[&str] = match name {
        None => &[CHECKPOINTS, WINDOW, LOCK, UNITS],
        Some("snapshot") => &[CHECKPOINTS, LOCK, UNITS],
        Some("restore" | "plan") => &[CHECKPOINTS, LOCK, CACHE],
        Some("check") => &[CHECKPOINTS, UNITS],
        Some("upgrade") => &[CHECKPOINTS, WINDOW, LOCK, MASK],
        Some("pause" | "resume") => &[WINDOW, LOCK, MASK],
        Some("report" | "status" | "wait") => &[WINDOW],
        Some("completions") => &[
            "/usr/share/bash-completion/completions/netfix, /usr/share/zsh/vendor-completions/_netfix, \
            /usr/share/fish/vendor_completions.d/netfix.fish  the scripts of the package",
        ],
        Some("explain") => {
            &["/usr/share/doc/netfix/docs/reference/problems.md  the same text in the package"]
        }
        Some("schema") => {
            &["/usr/share/doc/netfix/docs/reference/schema.json  the same schema in the package"]
        }
        Some("host") => &["/proc/1/ns  the namespaces of the host"],
        Some("man") => &["/usr/share/man/man8/netfix*.8.gz  the pages of the package"],
        Some(_) => &[CHECKPOINTS, LOCK],
    };
    let has_state = !matches!(
        name,
        Some("completions" | "explain" | "host" | "man" | "schema")
    );
    let common: &[&str] = if has_state { &[STATE, CONFIG] } else { &[] };
    common
        .iter()
        .copied()
        .chain(own.iter().copied())
        .map(str::to_owned)
        .collect()
}

/// The other pages.
fn see_also(name: Option<&str>) -> Vec<String> {
    let program = Cli::command();
    let mut pages: Vec<String> = program
        .get_subcommands()
        .map(Command::get_name)
        .filter(|other| name.is_none_or(|name| name != *other))
        .map(|other| format!("netfix-{other}(8)"))
        .collect();
    if name.is_some() {
        pages.insert(0, "netfix(8)".to_owned());
    }
    let manuals =
        "/usr/share/doc/netfix has the format of -o json, every problem code and the runbooks.";
    vec![pages.join(", "), String::new(), manuals.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_examples_exit_status_environment_and_files() {
        let program = Cli::command();
        let names = program.get_subcommands().map(|one| Some(one.get_name()));
        for name in names.chain([None]) {
            let sections = page(name).sections;
            for wanted in ["EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
                let found = sections.iter().find(|(heading, _)| *heading == wanted);
                assert!(
                    found.is_some_and(|(_, lines)| !lines.is_empty()),
                    "{name:?} has no {wanted}"
                );
            }
        }
    }

    #[test]
    fn a_word_that_is_no_command_has_no_page() {
        assert!(command("restore").is_ok());
        assert!(command("frobnicate").unwrap_err().contains("snapshot"));
    }
}
