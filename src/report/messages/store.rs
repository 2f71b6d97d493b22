//! Sentences about the state folder.

use super::{and, or_nothing};
use crate::model::problem::{StoreCause, StoreEffect};
use crate::model::text::duration;

sentences! {
    StoreCause {
        Corrupt { path, reason, effect } => "{path}: {reason}{effect}" (effect = or_nothing("; ", effect.as_ref())),
        NoSpace { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        CannotWrite { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        CannotRead { action, path, error, effect } => "{action} {path}: {error}{effect}"
            (effect = or_nothing("; ", effect.as_ref())),
        Locked { path, holder, waited } if waited.is_zero() => "{path} is held by {holder}. Run this again when that \
            command has ended, or wait for it with --lock-wait 60s",
        Locked { path, holder, waited } => "{path} is held by {holder}, which did not end within {waited} (--lock-wait)"
            (waited = duration(*waited)),
        NoGeneration { kept } if kept.is_empty() => "there is no such generation: none is kept yet. Run `netfix snapshot`",
        NoGeneration { kept } if kept.len() == 1 => "there is no such generation: only {kept} is kept"
            (kept = and(kept)),
        NoGeneration { kept } => "there is no such generation: {kept} are kept" (kept = and(kept)),
    }
}

sentences! {
    StoreEffect {
        NothingReplaced => "no generation holds the old checkpoint, so it is not replaced",
        HostUnknown => "the host's own addresses and routes are unknown",
        TimesUnknown => "when the checkpoints were last verified is unknown",
    }
}
