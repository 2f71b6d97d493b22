//! Sentences about carrying a plan out.

use std::fmt;

use crate::model::problem::RestoreCause;

impl fmt::Display for RestoreCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MacTaken { owner, error } => {
                match owner {
                    Some((mac, owner)) => {
                        write!(f, "{owner} has the same MAC {mac} on the same parent")?;
                    }
                    None => f.write_str("another link has the same MAC on the same parent")?,
                }
                write!(f, ", so this link cannot go up: {error}")
            }
            Self::ParentGone { error } => write!(f, "the parent is missing: {error}"),
            Self::PlaceTaken { error } => write!(f, "another link has its place: {error}"),
            Self::RoutePlaceTaken { error } => {
                write!(
                    f,
                    "another route has its place and is left unchanged: {error}"
                )
            }
            Self::StepFailed { error } | Self::HostFailed { error } => f.write_str(error),
            Self::StepWithoutEffect => {
                f.write_str("the kernel reported success, but the change is missing")
            }
            Self::WaitsForCarrier => f.write_str(
                "must wait for carrier. Run `netfix restore` again when the link has it",
            ),
            Self::NoCarrier => f.write_str(
                "is up but has no carrier: the pods on it are restored and cannot be reached",
            ),
            Self::NotAnnounced { failed, all, error } => {
                write!(
                    f,
                    "cannot send {failed} of {all} ARP announcements: {error}"
                )
            }
        }
    }
}
