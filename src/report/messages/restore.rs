//! Sentences about carrying a plan out.

use crate::model::problem::RestoreCause;
use crate::model::text::count;

sentences! {
    RestoreCause {
        MacTaken { owner: Some((address, owner)), error } => "{owner} has the same MAC {address} on the same parent, so this \
            link cannot go up: {error}",
        MacTaken { owner: None, error } => "another link has the same MAC on the same parent, so this link cannot go up: \
            {error}",
        ParentGone { error } => "the parent is missing: {error}",
        PlaceTaken { error } => "another link has its place: {error}",
        RoutePlaceTaken { error } => "another route has its place and is left unchanged: {error}",
        StepFailed { error } => "{error}",
        HostFailed { error } => "{error}",
        StepWithoutEffect => "the kernel reported success, but the change is missing",
        WaitsForCarrier => "must wait for carrier. Run `netfix restore` again when the link has it",
        NoCarrier => "is up but has no carrier: the pods on it are restored and cannot be reached",
        NotAnnounced { failed, all, error } => "cannot send {failed} of {all}: {error}"
            (all = count(*all, "ARP announcement")),
    }
}
