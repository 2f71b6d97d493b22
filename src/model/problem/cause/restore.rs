use super::{Holder, causes};
use crate::model::Mac;

causes! {
    /// Causes found in carrying a plan out.
    RestoreCause {
        MacTaken { owner: Option<(Mac, Holder)>, error: String } => MacConflict,
        ParentGone { error: String } => ParentMissing,
        PlaceTaken { error: String } => LinkConflict,
        RoutePlaceTaken { error: String } => Failed,
        StepFailed { error: String } => Failed,
        StepWithoutEffect => Failed,
        WaitsForCarrier => NoCarrier,
        NoCarrier => NoCarrier,
        HostFailed { error: String } => Failed,
        NotAnnounced { failed: usize, all: usize, error: String } => Failed,
    }
}
