//! Candidates for a shell's TAB: what is stored. Reads without the lock, and prints no error: a directory that cannot be read, as by
//! a user who is not root, has no candidates.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter};

use crate::model::PodInfo;
use crate::records::stored;
use crate::store::Store;

/// The variable with the state directory, and the directory without it.
pub(super) const STATE_DIR: &str = "NETFIX_STATE_DIR";
pub(super) const DEFAULT_STATE_DIR: &str = "/var/lib/netfix";

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

/// The stored pods; after `--` the files of COMMAND. The completion of clap takes a word there for the first positional argument.
pub(super) fn pods_or_files(typed: &OsStr) -> Vec<CompletionCandidate> {
    // The script of a shell calls `netfix -- LINE`.
    let mut line = env::args_os().skip_while(|word| word != "--").skip(1);
    if line.any(|word| word == "--") {
        PathCompleter::any().complete(typed)
    } else {
        pods(typed)
    }
}

/// What can be given up: the stored pods, and the host.
pub(super) fn accepted(typed: &OsStr) -> Vec<CompletionCandidate> {
    let host = candidates(["host".to_owned()], typed);
    host.into_iter().chain(pods(typed)).collect()
}

/// The words that select a pod, the best one first. A shell puts them into the command line as they are, and any user who starts a
/// process or a container chooses its name: only harmless letters are offered.
fn words(pod: &PodInfo) -> Vec<String> {
    let name = pod.name.as_ref().map(ToString::to_string);
    let full = match (&pod.namespace, &name) {
        (Some(namespace), Some(name)) => Some(format!("{namespace}/{name}")),
        _ => None,
    };
    full.into_iter()
        .chain(name)
        .filter(|word| is_harmless(word))
        .chain([pod.id.to_string()])
        .collect()
}

fn is_harmless(word: &str) -> bool {
    !word.starts_with('-')
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c))
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

/// Those that begin with what is typed.
pub(super) fn candidates(
    words: impl IntoIterator<Item = String>,
    typed: &OsStr,
) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    words
        .into_iter()
        .filter(|word| word.starts_with(typed.as_ref()))
        .map(CompletionCandidate::new)
        .collect()
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
    after.map(|pair| pair[1].clone()).or_else(|| {
        let values = words.iter().filter_map(|word| word.to_str());
        values
            .filter_map(|word| word.strip_prefix("--state-dir="))
            .map(OsString::from)
            .next()
    })
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
