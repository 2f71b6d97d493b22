//! Options that had another name in an earlier version. The old name works, and netfix says the new one.

use std::ffi::OsString;

use clap::Command;

/// An option that is now a value of another one.
const NOW_A_VALUE: (&str, &str) = ("--no-conflict-probe", "--conflict-probe off");

/// The old names in the words of a command line of this verb, each with the new one. Old names are the hidden aliases of options.
pub(super) fn found(
    program: &Command,
    verb: &str,
    words: impl Iterator<Item = OsString>,
) -> Vec<(String, String)> {
    let Some(verb) = program.find_subcommand(verb) else {
        return Vec::new();
    };
    let renamed = verb.get_arguments().flat_map(|argument| {
        let new = argument.get_long().unwrap_or_default();
        let old = argument.get_all_aliases().unwrap_or_default();
        old.into_iter()
            .map(move |old| (format!("--{old}"), format!("--{new}")))
    });
    let (old, new) = NOW_A_VALUE;
    let now_a_value = [(old.to_owned(), new.to_owned())];
    let has_it = verb
        .get_arguments()
        .any(|one| one.get_long() == Some(&old[2..]));
    let mut renamed: Vec<_> = renamed
        .chain(now_a_value.into_iter().filter(|_| has_it))
        .collect();
    // The words after it are COMMAND's. Before it, a value does not begin with a dash.
    let words = words.take_while(|word| word != "--");
    let words: Vec<String> = words
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    renamed.retain(|(old, _)| {
        let mut words = words.iter();
        words.any(|word| word.split('=').next() == Some(old.as_str()))
    });
    renamed
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn notes(line: &str) -> Vec<String> {
        let words = line.split(' ').map(OsString::from);
        let verb = line.split(' ').next().unwrap_or_default();
        let found = found(&Cli::command(), verb, words);
        found
            .iter()
            .map(|(old, new)| format!("{old}: {new}"))
            .collect()
    }

    #[test]
    fn an_old_name_is_found_with_its_new_one() {
        let line = "upgrade --device eth0 --device eth1 --hold --settle=9s --nic-wait 5s -- sh --timeout 3s --wait";
        let expected = [
            "--device: --nic",
            "--settle: --watch",
            "--hold: --keep-paused",
        ];
        assert_eq!(notes(line), expected);
        let line = "restore --wait 1s --manager-grace 1s --no-conflict-probe";
        let expected = [
            "--wait: --nic-wait",
            "--manager-grace: --manager-wait",
            "--no-conflict-probe: --conflict-probe off",
        ];
        assert_eq!(notes(line), expected);
        assert_eq!(notes("verify --timeout 3s"), ["--timeout: --answer-wait"]);
    }

    #[test]
    fn a_name_that_another_verb_has_still_is_no_old_one() {
        assert_eq!(notes("wait --timeout 3s"), [""; 0]);
        assert_eq!(notes("restore --watch 3s"), [""; 0]);
        assert_eq!(notes("host -- netfix restore --wait 1s"), [""; 0]);
    }
}
