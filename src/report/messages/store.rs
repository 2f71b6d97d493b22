//! Sentences about the state folder.

use std::fmt;
use std::time::Duration;

use super::and;
use crate::model::problem::{StoreCause, StoreEffect};

impl fmt::Display for StoreCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let effect = match self {
            Self::Corrupt {
                path,
                reason,
                effect,
            } => {
                write!(f, "{path}: {reason}")?;
                effect
            }
            Self::NoSpace {
                action,
                path,
                error,
                effect,
            }
            | Self::CannotWrite {
                action,
                path,
                error,
                effect,
            }
            | Self::CannotRead {
                action,
                path,
                error,
                effect,
            } => {
                write!(f, "{action} {path}: {error}")?;
                effect
            }
            Self::Locked {
                path,
                holder,
                waited,
            } => {
                return write!(f, "{path} is held by {holder}{}", then(*waited));
            }
            Self::NoGeneration { kept } => {
                return write!(f, "there is no such generation{}", those(kept));
            }
        };
        effect.map_or(Ok(()), |effect| effect.fmt(f))
    }
}

impl fmt::Display for StoreEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NothingReplaced => {
                "; no generation holds the old checkpoint, so it is not replaced"
            }
            Self::HostUnknown => "; the host's own addresses and routes are unknown",
            Self::TimesUnknown => "; when the checkpoints were last verified is unknown",
        })
    }
}

fn then(waited: Duration) -> String {
    if waited.is_zero() {
        return ". Run this again when that command has ended, or wait for it with --lock-wait 60s"
            .to_owned();
    }
    format!(
        ", which did not end within --lock-wait {}",
        humantime::format_duration(waited)
    )
}

fn those(numbers: &[u64]) -> String {
    match numbers {
        [] => ": none is kept yet. Run `netfix snapshot`".to_owned(),
        [one] => format!(": only {one} is kept"),
        all => format!(": {} are kept", and(all)),
    }
}
