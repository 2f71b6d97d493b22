//! Candidates for a shell's TAB: what is stored, and the commands. Reads without the lock, and prints no error: a directory that
//! cannot be read, as by a user who is not root, has no candidates.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::{CompleteEnv, CompletionCandidate};

use super::{Cli, DEFAULT_STATE_DIR, STATE_DIR};
use crate::model::PodInfo;
use crate::records::stored;
use crate::store::Store;

/// The variable in which a completion script names its shell. No other program's `COMPLETE` may keep a command from running.
pub const COMPLETE: &str = "_NETFIX_COMPLETE";

/// Answers a completion script, which calls `netfix -- WORD...`. `false`: this process was started for something else.
#[must_use]
pub fn complete() -> bool {
    // The variable alone must not turn a command into silence and exit code 0.
    if env::args_os().nth(1).is_none_or(|word| word != "--") {
        return false;
    }
    let folder = env::current_dir().ok();
    CompleteEnv::with_factory(offered)
        .var(COMPLETE)
        .completer("netfix")
        .try_complete(env::args_os(), folder.as_deref())
        // An unknown shell, or a word that no argument takes.
        .unwrap_or(true)
}

/// The command line; its options are offered after a dash, or where nothing else is.
fn offered() -> clap::Command {
    let words: Vec<OsString> = env::args_os().skip(2).collect();
    // bash and zsh name the word by its number; of fish it is the last one.
    let index = env::var("_CLAP_COMPLETE_INDEX").ok();
    let index = index.and_then(|text| text.parse().ok());
    let word = index.map_or(words.last(), |index: usize| words.get(index));
    let is_option = word.is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let mut program = Cli::command();
    // Adds --help, which is hidden too.
    program.build();
    if is_option {
        return program;
    }
    let hide = |argument: clap::Arg| {
        let hidden = argument.is_hide_set() || !argument.is_positional();
        argument.hide(hidden)
    };
    program
        .mut_args(hide)
        .mut_subcommands(move |command| command.mut_args(hide))
}

/// The stored pods: NAMESPACE/NAME, after some letters also NAME and the id.
pub(super) fn pods(typed: &OsStr) -> Vec<CompletionCandidate> {
    let pods = stored::pods(&store());
    let mut found = BTreeSet::new();
    for pod in &pods {
        let words = words(pod);
        let all = if typed.is_empty() { 1 } else { words.len() };
        found.extend(words.into_iter().take(all));
    }
    candidates(found, typed)
}

/// The words that select a pod, the best one first. A shell puts them into the command line as they are, and any user who starts a
/// process or a container chooses its name: only harmless letters are offered.
fn words(pod: &PodInfo) -> Vec<String> {
    let name = pod.name.as_ref().map(ToString::to_string);
    let full = match (&pod.namespace, &name) {
        (Some(namespace), Some(name)) => Some(format!("{namespace}/{name}")),
        _ => None,
    };
    let words = full.into_iter().chain(name);
    words
        .filter(|word| is_harmless(word))
        .chain([pod.id.to_string()])
        .collect()
}

fn is_harmless(word: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    !word.starts_with('-') && word.chars().all(letter)
}

/// The numbers of the stored generations.
pub(super) fn generations(typed: &OsStr) -> Vec<CompletionCandidate> {
    let stored = store().generations().unwrap_or_default();
    let numbers = stored.iter().map(|one| one.number.to_string());
    candidates(numbers, typed)
}

/// The ids of the windows, closed ones and the open one.
pub(super) fn windows(typed: &OsStr) -> Vec<CompletionCandidate> {
    let store = store();
    let open = store.open_window().ok().flatten().map(|window| window.id);
    let closed = store.windows().unwrap_or_default();
    candidates(closed.into_iter().chain(open), typed)
}

/// The commands of netfix.
pub(super) fn commands(typed: &OsStr) -> Vec<CompletionCandidate> {
    let program = Cli::command();
    let names = program.get_subcommands().map(clap::Command::get_name);
    candidates(names.map(str::to_owned), typed)
}

/// Those that begin with what is typed.
fn candidates(words: impl IntoIterator<Item = String>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fitting = words
        .into_iter()
        .filter(|word| word.starts_with(typed.as_ref()));
    fitting.map(CompletionCandidate::new).collect()
}

/// The state directory that the typed command would use.
fn store() -> Store {
    let of_line = state_dir(env::args_os());
    let folder = of_line.or_else(|| env::var_os(STATE_DIR));
    Store::new(folder.map_or_else(|| PathBuf::from(DEFAULT_STATE_DIR), PathBuf::from))
}

/// The value of `--state-dir` among these words.
fn state_dir(words: impl Iterator<Item = OsString>) -> Option<OsString> {
    let words: Vec<OsString> = words.collect();
    let after = words.windows(2).find(|pair| pair[0] == "--state-dir");
    let joined = || {
        let values = words.iter().filter_map(|word| word.to_str());
        values
            .filter_map(|word| word.strip_prefix("--state-dir="))
            .map(OsString::from)
            .next()
    };
    after.map(|pair| pair[1].clone()).or_else(joined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, PodId};

    fn pod(namespace: Option<&str>, name: &str) -> PodInfo {
        PodInfo {
            namespace: namespace.map(str::to_owned),
            name: Some(Bytes::from(OsStr::new(name))),
            ..PodInfo::nameless(&PodId::try_from("0123456789ab".to_owned()).unwrap())
        }
    }

    #[test]
    fn a_pod_is_offered_by_its_full_name_its_name_and_its_id() {
        let words = words(&pod(Some("shop"), "web-0"));
        assert_eq!(words, ["shop/web-0", "web-0", "0123456789ab"]);
    }

    #[test]
    fn a_name_that_a_shell_would_run_is_offered_by_its_id_only() {
        for name in ["$(reboot)", "a b", "x;y", "-f", "`x`", "a'b", "a\nb"] {
            assert_eq!(words(&pod(None, name)), ["0123456789ab"], "{name}");
        }
    }

    #[test]
    fn the_state_directory_of_the_command_line_is_used() {
        let of = |line: &str| state_dir(line.split(' ').map(OsString::from));
        assert_eq!(of("netfix restore --state-dir /a x"), Some("/a".into()));
        assert_eq!(of("netfix --state-dir=/b list"), Some("/b".into()));
        assert_eq!(of("netfix list"), None);
    }
}
