use std::time::Duration;

use super::causes;

causes! {
    /// Causes found in the state folder.
    StoreCause {
        Corrupt { path: String, reason: String, effect: Option<StoreEffect> } => CheckpointCorrupt,
        NoSpace { action: String, path: String, error: String, effect: Option<StoreEffect> } => NoSpace,
        CannotWrite { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unwritable,
        CannotRead { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unreadable,
        Locked { path: String, holder: String, waited: Duration } => LockHeld,
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
