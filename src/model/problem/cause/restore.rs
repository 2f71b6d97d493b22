use super::{Holder, causes};
use crate::model::Mac;

causes! {
    /// Causes found in carrying a plan out.
    RestoreCause {
        /// The link cannot go up beside another link of its MAC.
        MacTaken { owner: Option<(Mac, Holder)>, error: String } => MacConflict,
        /// The parent disappeared before the link was created on it.
        ParentGone { error: String } => ParentMissing,
        /// Another link has the link's name or place.
        PlaceTaken { error: String } => LinkConflict,
        /// Another route has the route's place.
        RoutePlaceTaken { error: String } => Failed,
        /// The kernel refused the step.
        StepFailed { error: String } => Failed,
        /// The kernel accepted the step, and its effect is missing.
        StepWithoutEffect => Failed,
        /// The step must wait until the link has carrier.
        WaitsForCarrier => NoCarrier,
        /// A host link under pods has no carrier.
        NoCarrier => NoCarrier,
        /// The host could not be read or changed.
        HostFailed { error: String } => Failed,
        /// ARP announcements could not be sent.
        NotAnnounced { failed: usize, all: usize, error: String } => Failed,
    }
}
