//! The commands of the user that run in a window.

use serde::{Deserialize, Serialize};

use crate::model::IfName;
use crate::model::pod::identity::Holder;
use crate::model::text::{escape, join};

/// The user's command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Its process; null when it did not start.
    #[serde(default)]
    pub process: Option<Holder>,
    /// Its exit code; null while it runs, and when a signal ended it or it did not start.
    pub exit: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Why it did not start.
    pub error: Option<String>,
    /// After how many milliseconds netfix ended it (`--command-timeout`); absent when it ended before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<u64>,
}

impl Run {
    /// A command that is not started yet.
    #[must_use]
    pub fn new(argv: &[String]) -> Self {
        Self {
            argv: argv.to_vec(),
            process: None,
            exit: None,
            signal: None,
            error: None,
            timed_out: None,
        }
    }
}

/// The command that brings the former driver back; it runs at most once in a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rollback {
    /// Why it was started.
    pub reason: RollbackReason,
    /// The NICs that were missing, had no carrier or a driver in safe mode, by their name before the window.
    pub nics: Vec<IfName>,
    /// The number of pods that were lost.
    pub lost: usize,
    /// The command.
    #[serde(flatten)]
    pub run: Run,
}

/// Why a rollback was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RollbackReason {
    /// A NIC was missing after `--nic-wait`.
    NicMissing,
    /// A NIC had no carrier after `--nic-wait`.
    NoCarrier,
    /// The driver of a NIC runs in safe mode.
    SafeMode,
    /// More than `--max-lost` pods were lost after the restore.
    PodsLost,
    /// What was restored was lost again and again.
    LostAgain,
}

/// Program and arguments as one types them in a shell: words with special characters are quoted, control characters escaped.
pub(crate) fn command_line(argv: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    let words = argv.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            return word.clone();
        }
        let quoted = word.chars().flat_map(|c| {
            let is_special = matches!(c, '\\' | '"' | '$' | '`');
            is_special.then_some('\\').into_iter().chain([c])
        });
        let quoted = escape(&quoted.collect::<String>());
        format!("\"{quoted}\"")
    });
    join(words, " ")
}
