//! The commands that have a document.

use std::str::FromStr;

use serde::Serialize;

macro_rules! verbs {
    ($($(#[$meta:meta])* $verb:ident = $word:literal,)*) => {
        /// A command that answers with a document.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Verb {
            $($(#[$meta])* $verb,)*
        }

        impl Verb {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$verb),*];

            /// The word on the command line and in JSON.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$verb => $word,)*
                }
            }
        }
    };
}

verbs! {
    /// Writes checkpoints.
    Snapshot = "snapshot",
    /// Lists them, or their generations.
    List = "list",
    /// Shows one.
    Show = "show",
    /// Compares them with the kernel.
    Diff = "diff",
    /// Lists the steps of a restore; also `restore --dry-run`.
    Plan = "plan",
    /// Restores what is missing.
    Restore = "restore",
    /// Probes the gateways.
    Verify = "verify",
    /// Checks whether every pod could be restored.
    Check = "check",
    /// Shows the state of everything; what a document has until its command is set.
    #[default]
    Status = "status",
    /// Stops kubelet.
    Pause = "pause",
    /// Starts kubelet.
    Resume = "resume",
    /// Runs a maintenance window.
    Upgrade = "upgrade",
    /// Waits for the end of a window.
    Wait = "wait",
    /// Reports a window.
    Report = "report",
    /// Imports the checkpoints of `i40e_net_fix`.
    Import = "import",
    /// Removes old generations.
    Prune = "prune",
}

impl FromStr for Verb {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|verb| verb.word() == text);
        known
            .copied()
            .ok_or_else(|| format!("{text} has no document"))
    }
}
