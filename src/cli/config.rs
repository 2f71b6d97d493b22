//! `/etc/netfix/config.toml`: what options of this node are where the command line and the environment set nothing else.

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::context::{ConfigFile, ConfigSetting};
use crate::model::text::escape;
use crate::store;

/// The variable with the file, the file without it, and the word for none.
pub(super) const CONFIG: &str = "NETFIX_CONFIG";
pub(super) const DEFAULT_CONFIG: &str = "/etc/netfix/config.toml";
const NONE: &str = "none";

/// The options that the file can set: none that confirms, forces, selects pods or runs a program.
const OPTIONS: &[&str] = &[
    "answer-wait",
    "backoff",
    "cni-cache-dir",
    "command-timeout",
    "conflict-probe",
    "deadline",
    "keep",
    "log-limit",
    "manager-wait",
    "max-age",
    "max-lost",
    "max-new",
    "nic",
    "nic-index",
    "nic-settings",
    "nic-wait",
    "ping",
    "pod-budget",
    "probe-rate",
    "runtime",
    "runtime-endpoint",
    "tcp",
    "unit",
    "watch",
];

/// An error at a line of the file, or about all of it.
fn at(file: &Path, line: Option<usize>, message: &str) -> String {
    let line = line.map(|line| format!(":{line}")).unwrap_or_default();
    // A key or a value may have characters that change what a terminal shows.
    escape(&format!("{}{line}: {message}", file.display()))
}

/// The file that the command line, the environment or neither names. A file that nothing names need not exist.
pub(super) fn load(named: Option<&OsString>, program: &Command) -> Result<ConfigFile, String> {
    let path = match named {
        Some(named) if named == NONE || named.is_empty() => return Ok(ConfigFile::default()),
        Some(named) => PathBuf::from(named),
        // Only root can run what it would set.
        None if !nix::unistd::geteuid().is_root() => return Ok(ConfigFile::default()),
        None => PathBuf::from(DEFAULT_CONFIG),
    };
    if let Some(folder) = path.parent().filter(|_| path.exists()) {
        // Who can replace the file can set what root runs.
        let folder = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        store::check_shared_folder(folder).map_err(|error| error.problem().message())?;
    }
    let text = match store::read_file(&path) {
        Ok(Some(text)) => text,
        Ok(None) if named.is_none() => return Ok(ConfigFile::default()),
        Ok(None) => return Err(at(&path, None, "does not exist (--config)")),
        Err(error) => return Err(error.problem().message()),
    };
    let settings = parse(&path, &text, program)?;
    Ok(ConfigFile {
        path: Some(path),
        settings,
        error: None,
    })
}

/// What the text sets, or the first line that is wrong.
fn parse(file: &Path, text: &str, program: &Command) -> Result<Vec<ConfigSetting>, String> {
    let line =
        |span: Range<usize>| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1;
    let table = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(line);
        let content = line.and_then(|line| text.lines().nth(line - 1));
        let content = content.map(|content| format!("`{:.60}`: ", content.trim()));
        at(file, line, &(content.unwrap_or_default() + error.message()))
    })?;
    let mut settings = Vec::new();
    for (key, value) in entries(table.get_ref()) {
        let name = key.get_ref().as_ref();
        let DeValue::Table(table) = value.get_ref() else {
            let setting = setting(program, None, name, value.get_ref());
            settings.push(setting.map_err(|why| at(file, Some(line(key.span())), &why))?);
            continue;
        };
        if program.find_subcommand(name).is_none() {
            let message = format!("[{name}]: no such command");
            return Err(at(file, Some(line(key.span())), &message));
        }
        for (key, value) in entries(table) {
            let option = key.get_ref().as_ref();
            let setting = setting(program, Some(name), option, value.get_ref());
            settings.push(setting.map_err(|why| at(file, Some(line(key.span())), &why))?);
        }
    }
    // Those of a command are set last.
    settings.sort_by_key(|setting: &ConfigSetting| setting.command.is_some());
    Ok(settings)
}

/// A key and its value, with their places in the text.
type Entry<'a, 'i> = (
    &'a Spanned<toml::de::DeString<'i>>,
    &'a Spanned<DeValue<'i>>,
);

/// The entries in the order of the text.
fn entries<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<Entry<'a, 'i>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// One option with a value that it takes, or why it is none.
fn setting(
    program: &Command,
    command: Option<&str>,
    option: &str,
    value: &DeValue<'_>,
) -> Result<ConfigSetting, String> {
    let argument = OPTIONS
        .contains(&option)
        .then(|| owners(program, option))
        .into_iter()
        .flatten()
        .find(|(owner, _)| command.is_none_or(|command| owner.get_name() == command));
    let Some((_, argument)) = argument else {
        let whose = command.map(|command| format!(" for {command}"));
        let similar = similar(option).map(|one| format!(". Did you mean {one}?"));
        let [whose, similar] = [whose, similar].map(Option::unwrap_or_default);
        return Err(format!(
            "{option}: no option that can be set here{whose}{similar}. See docs/reference/configuration.md"
        ));
    };
    let values =
        values(value, is_repeatable(argument)).map_err(|why| format!("{option}: {why}"))?;
    check(argument, option, &values)?;
    Ok(ConfigSetting {
        command: command.map(str::to_owned),
        option: option.to_owned(),
        values,
    })
}

/// The option that was probably meant.
fn similar(option: &str) -> Option<&'static str> {
    let all = OPTIONS.iter();
    let all = all.map(|one| (strsim::jaro_winkler(one, option), *one));
    let nearest = all.max_by(|(a, _), (b, _)| a.total_cmp(b));
    nearest.and_then(|(likeness, one)| (0.8..1.0).contains(&likeness).then_some(one))
}

fn is_repeatable(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
}

/// A text or a number; for an option that can be repeated, several.
fn values(value: &DeValue<'_>, is_repeatable: bool) -> Result<Vec<String>, String> {
    match value {
        DeValue::String(text) => Ok(vec![text.to_string()]),
        DeValue::Integer(number) => Ok(vec![number.as_str().to_owned()]),
        DeValue::Array(all) if is_repeatable => {
            let texts = all.iter().map(|one| values(one.get_ref(), false));
            Ok(texts.collect::<Result<Vec<_>, _>>()?.concat())
        }
        _ if is_repeatable => Err("expected a text or a list of texts".to_owned()),
        _ => Err("expected a text, such as \"60s\", or a number".to_owned()),
    }
}

/// Has clap parse the values, as if they were typed.
fn check(argument: &Arg, option: &str, values: &[String]) -> Result<(), String> {
    let words = values.iter().map(|value| format!("--{option}={value}"));
    let parsed = Command::new("netfix")
        .no_binary_name(true)
        .arg(argument.clone())
        .try_get_matches_from(words);
    let Err(error) = parsed else { return Ok(()) };
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut lines = text.lines().map(str::trim);
    let possible = lines.find(|line| line.starts_with("[possible values"));
    let possible = possible.map_or_else(String::new, |line| format!(" {line}"));
    let first = first.trim_start_matches("error: ");
    Err(format!("{option}: {first}{possible}"))
}

/// The commands that have this option.
fn owners<'a>(program: &'a Command, option: &str) -> Vec<(&'a Command, &'a Arg)> {
    let own = |command: &'a Command| {
        let mut arguments = command.get_arguments();
        let argument = arguments.find(|one| one.get_long() == Some(option))?;
        Some((command, argument))
    };
    program.get_subcommands().filter_map(own).collect()
}

/// The command line with these defaults.
pub(super) fn applied(config: &ConfigFile, mut program: Command) -> Command {
    for setting in &config.settings {
        let owners = owners(&program, &setting.option).into_iter();
        let owners = owners
            .map(|(owner, argument)| (owner.get_name().to_owned(), argument.get_id().to_string()));
        for (owner, id) in owners.collect::<Vec<_>>() {
            if setting.command.as_ref().is_some_and(|own| *own != owner) {
                continue;
            }
            // clap keeps defaults for as long as the program runs.
            let values: Vec<&'static str> = setting
                .values
                .iter()
                .map(|value| &*value.clone().leak())
                .collect();
            program = program.mut_subcommand(owner, |command| {
                command.mut_arg(id, |argument| argument.default_values(values))
            });
        }
    }
    program
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::cli::{Cli, Command as Verb};
    use crate::report::listed_part;

    fn parsed(text: &str) -> Result<Vec<ConfigSetting>, String> {
        parse(Path::new("/c.toml"), text, &Cli::command())
    }

    fn with(text: &str, line: &str) -> Cli {
        let config = ConfigFile {
            settings: parsed(text).unwrap(),
            ..ConfigFile::default()
        };
        let program = applied(&config, Cli::command());
        let matches = program.try_get_matches_from(line.split(' ')).unwrap();
        Cli::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_a_command_over_all() {
        let text = "nic-wait = \"9s\"\nnic = [\"eth0\", \"eth1\"]\nkeep = 7\nmax-lost = 3\n[restore]\nnic-wait = \"2m\"\n";
        let wait = |line: &str| match with(text, line).command {
            Verb::Restore(args) => args.nic_wait.unwrap().as_secs(),
            Verb::Upgrade(args) => args.nic_wait.as_secs(),
            other => panic!("{other:?}"),
        };
        assert_eq!(wait("netfix restore"), 120);
        assert_eq!(wait("netfix restore --nic-wait 1s"), 1);
        assert_eq!(wait("netfix upgrade -- true"), 9);
        let Verb::Upgrade(args) = with(text, "netfix upgrade -- true").command else {
            panic!("another command");
        };
        let nics: Vec<String> = args.nics.iter().map(ToString::to_string).collect();
        assert_eq!(
            (nics.join(" "), args.keep.get(), args.max_lost),
            ("eth0 eth1".to_owned(), 7, 3)
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_line_and_key() {
        for (text, error) in [
            (
                "\ndeadlin = \"5m\"",
                "/c.toml:2: deadlin: no option that can be set here. Did you mean deadline?",
            ),
            (
                "yes = true",
                "/c.toml:1: yes: no option that can be set here. See",
            ),
            (
                "[restore]\ndeadline = \"5m\"",
                "/c.toml:2: deadline: no option that can be set here for restore. See",
            ),
            (
                "[frobnicate]\na = 1",
                "/c.toml:1: [frobnicate]: no such command",
            ),
            (
                "keep = true",
                "/c.toml:1: keep: expected a text, such as \"60s\", or a number",
            ),
            (
                "keep = 0",
                "/c.toml:1: keep: invalid value '0' for '--keep <COUNT>'",
            ),
            (
                "\n\nruntime = \"podman\"",
                "/c.toml:3: runtime: invalid value 'podman' for '--runtime <RUNTIME>' [possible values: auto",
            ),
            (
                "deadline = \"1s\"",
                "/c.toml:1: deadline: invalid value '1s' for '--deadline <DURATION>': must be at least 5s",
            ),
            ("keep = 1\nkeep = 2", "/c.toml:2: `keep = 2`: duplicate key"),
            ("keep = 1\nnic-wait = 60s", "/c.toml:2: `nic-wait = 60s`: "),
        ] {
            let found = parsed(text).unwrap_err();
            assert!(found.starts_with(error), "{text:?}: {found}");
        }
    }

    #[test]
    fn every_option_of_the_file_is_one_of_a_command_and_has_its_name_once() {
        let program = Cli::command();
        assert!(OPTIONS.is_sorted_by(|a, b| a < b));
        for option in OPTIONS {
            assert!(!owners(&program, option).is_empty(), "{option}");
        }
    }

    /// Of the options that the help does not list, those that are no settings: the other name of an argument, and what netfix calls itself with.
    const INTERNAL: &[&str] = &["needed", "no-conflict-probe", "no-echo", "pod", "step"];

    #[test]
    fn the_help_of_a_command_has_few_options_and_the_file_the_others() {
        for verb in Cli::command().get_subcommands() {
            let (hidden, shown): (Vec<&Arg>, Vec<&Arg>) = verb
                .get_arguments()
                .filter(|argument| argument.get_long().is_some() && !argument.is_global_set())
                .partition(|argument| argument.is_hide_set());
            let (name, shown) = (verb.get_name(), shown.len());
            let most = if name == "upgrade" { 20 } else { 12 };
            assert!(shown <= most, "{name}: {shown} options");
            for option in hidden.iter().filter_map(|argument| argument.get_long()) {
                let is_known = OPTIONS.contains(&option) || INTERNAL.contains(&option);
                assert!(is_known, "{name}: --{option} is in no list");
            }
        }
    }

    const BEGIN: &str = "<!-- options -->\n";
    const END: &str = "<!-- end of options -->\n";

    /// The table of docs/reference/configuration.md.
    fn listed() -> String {
        let program = Cli::command();
        let mut text = BEGIN.to_owned();
        text += "| option | commands | default | meaning |\n|---|---|---|---|\n";
        for option in OPTIONS {
            let owners = owners(&program, option);
            let names: Vec<String> = owners
                .iter()
                .map(|(owner, _)| format!("`{}`", owner.get_name()))
                .collect();
            let default = |argument: &Arg| {
                let values = argument.get_default_values().iter();
                let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
                match values.as_slice() {
                    [] => "-".to_owned(),
                    values => values.join(", "),
                }
            };
            let mut defaults: Vec<String> = owners.iter().map(|(_, one)| default(one)).collect();
            defaults.dedup();
            let first = owners[0].1;
            let mut meaning = first.get_help().unwrap_or_default().to_string();
            meaning = meaning.replace('|', "\\|").replace('\n', " ");
            if is_repeatable(first) {
                meaning += " (a list)";
            }
            let (names, defaults) = (names.join(", "), defaults.join(" / "));
            let _ = writeln!(text, "| `{option}` | {names} | {defaults} | {meaning} |");
        }
        text + END
    }

    #[test]
    fn the_documentation_lists_the_options_of_the_file() {
        let file = "docs/reference/configuration.md";
        listed_part::compare(file, BEGIN, END, &listed(), "config");
    }
}
