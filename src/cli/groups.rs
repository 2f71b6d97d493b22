//! The groups of the verbs in `netfix -h`.

use std::fmt::Write;

use clap::builder::StyledStr;
use clap::builder::styling::Styles;
use clap::{Command, Subcommand};

/// The groups and their verbs, in the order of the help. A verb that is in no group is in the last one.
const GROUPS: &[(&str, &[&str])] = &[
    (
        "Every day",
        &[
            "status", "check", "snapshot", "restore", "verify", "guard", "list", "show", "diff",
            "plan",
        ],
    ),
    ("The window", &["upgrade", "report", "pause", "resume"]),
    ("Fleet", &["wait", "host"]),
    (
        "Other",
        &["explain", "import", "prune", "schema", "completions", "man"],
    ),
];

/// The width of the longest verb, and two spaces.
const INDENT: usize = 13;

/// The verbs of each group, each with the first line of its help.
fn grouped() -> Vec<(&'static str, Vec<(String, String)>)> {
    let program = super::Command::augment_subcommands(Command::new("netfix"));
    let known = |name: &str| {
        let about = program.find_subcommand(name)?.get_about()?;
        Some((name.to_owned(), about.to_string()))
    };
    let named = |names: &[&str]| names.iter().filter_map(|name| known(name)).collect();
    let mut groups: Vec<(_, Vec<_>)> = GROUPS
        .iter()
        .map(|(title, names)| (*title, named(names)))
        .collect();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let others = program.get_subcommands().map(Command::get_name);
    let others = others.filter(|name| !is_grouped(name)).filter_map(known);
    let help = ("help".to_owned(), "Print the help of a command".to_owned());
    if let Some((_, last)) = groups.last_mut() {
        last.extend(others.chain([help]));
    }
    groups
}

/// The help of the program: clap has no groups of subcommands.
pub(super) fn template() -> StyledStr {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, verbs) in grouped() {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for (verb, about) in verbs {
            let padded = " ".repeat(INDENT.saturating_sub(verb.len()));
            let _ = writeln!(text, "  {literal}{verb}{literal:#}{padded}{about}");
        }
    }
    let _ = write!(
        text,
        "\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    text.into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::cli::values::EXPERT;

    #[test]
    fn the_help_has_every_verb_once_in_lines_of_80_columns() {
        let program = Cli::command();
        let mut verbs: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        verbs.push("help");
        let groups = grouped();
        let mut listed: Vec<&str> = groups
            .iter()
            .flat_map(|(_, verbs)| verbs.iter().map(|(verb, _)| verb.as_str()))
            .collect();
        verbs.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, verbs);
        let help = Cli::command().render_help().to_string();
        for (title, verbs) in groups {
            assert!(help.contains(&format!("\n{title}:\n")), "{help}");
            for (verb, about) in verbs {
                let line = format!("  {verb:INDENT$}{about}");
                assert!(help.lines().any(|one| one == line), "{line}");
                assert!(line.chars().count() <= 80, "{line}");
            }
        }
    }

    #[test]
    fn every_verb_of_a_group_is_one() {
        let program = Cli::command();
        for name in GROUPS.iter().flat_map(|(_, names)| *names) {
            assert!(program.find_subcommand(name).is_some(), "{name}");
        }
    }

    fn options(help: &str) -> usize {
        let begins = |line: &&str| line.starts_with("  -") || line.starts_with("      --");
        help.lines().filter(begins).count()
    }

    #[test]
    fn the_short_help_of_a_verb_has_what_people_type() {
        let mut program = Cli::command().term_width(100);
        program.build();
        for verb in program.get_subcommands() {
            let help = verb.clone().render_help().to_string();
            let (options, words) = (options(&help), help.split_whitespace().count());
            assert!(options <= 18, "{}: {options} options", verb.get_name());
            assert!(words <= 400, "{}: {words} words", verb.get_name());
        }
    }

    #[test]
    fn an_option_that_only_the_long_help_has_is_for_experts_or_of_every_verb() {
        let program = Cli::command();
        for verb in program.get_subcommands() {
            for argument in verb.get_arguments().filter(|one| !one.is_hide_set()) {
                let is_expert = argument.get_help_heading() == Some(EXPERT);
                assert_eq!(
                    argument.is_hide_short_help_set(),
                    is_expert,
                    "{} {argument}",
                    verb.get_name()
                );
            }
        }
    }
}
