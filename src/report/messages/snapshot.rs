//! Sentences about writing checkpoints.

use std::fmt;

use crate::model::problem::SnapshotCause;

impl fmt::Display for SnapshotCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkLost => {
                f.write_str("is lost; netfix keeps the good checkpoint. Run `netfix restore`")
            }
            Self::LinkVanished { link } => {
                write!(
                    f,
                    "{link} vanished while it was read. Run `netfix snapshot` again"
                )
            }
            Self::HostLinkGone => f.write_str(
                "is missing under stored checkpoints: netfix keeps the good state of the host",
            ),
            Self::HostLinkDown => f.write_str(
                "is down under stored checkpoints: netfix keeps the good state of the host",
            ),
            Self::OnThirdNamespace => {
                f.write_str("is on a link of a third namespace: a restore could not recreate it")
            }
            Self::KindCannotBeMade => f.write_str(
                "is of a kind that netfix cannot create: a restore could not recreate it",
            ),
            Self::QdiscCannotBeRestored { qdisc } => {
                write!(f, "has qdisc {qdisc}: a restore could not recreate that")
            }
            Self::CannotBeRestored => f.write_str("a restore could not recreate this"),
            Self::DeviceInPod => f.write_str(
                "is a device inside a pod: a restore could not move it back into the pod",
            ),
            Self::PortCannotBeRestored { master } => {
                write!(
                    f,
                    "is a port of {master}: a restore could not make it one again"
                )
            }
        }
    }
}
