//! Answers to a shell's TAB.

use std::env;
use std::ffi::OsString;

use clap::CommandFactory;
use clap_complete::CompleteEnv;

use super::Cli;

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
