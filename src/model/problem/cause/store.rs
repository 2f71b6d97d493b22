use std::time::Duration;

use super::causes;

causes! {
    /// Causes found in the state folder.
    StoreCause {
        /// A file is damaged, foreign or newer than this program.
        Corrupt { path: String, reason: String, effect: Option<StoreEffect> } => CheckpointCorrupt,
        /// The disk, or a quota, is full.
        NoSpace { action: String, path: String, error: String, effect: Option<StoreEffect> } => NoSpace,
        /// A file or folder cannot be written.
        CannotWrite { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unwritable,
        /// A file or folder cannot be read.
        CannotRead { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unreadable,
        /// Another netfix holds the lock.
        Locked { path: String, holder: String, waited: Duration } => LockHeld,
        /// There is no generation of that number.
        NoGeneration { kept: Vec<u64> } => NotFound,
    }
}

/// What the command cannot do because of a failed read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreEffect {
    /// No generation holds what would be replaced, so nothing is replaced.
    NothingReplaced,
    /// The host's own addresses and routes are unknown.
    HostUnknown,
    /// When the checkpoints were last verified is unknown.
    TimesUnknown,
}
