//! Sentences about writing checkpoints.

use crate::model::problem::SnapshotCause;

sentences! {
    SnapshotCause {
        LinkLost => "is lost; netfix keeps the good checkpoint. Run `netfix restore`",
        LinkVanished { link } => "{link} vanished while it was read. Run `netfix snapshot` again",
        HostLinkGone => "is missing under stored checkpoints: netfix keeps the good state of the host",
        HostLinkDown => "is down under stored checkpoints: netfix keeps the good state of the host",
        OnThirdNamespace => "is on a link of a third namespace: a restore could not recreate it",
        KindCannotBeMade => "is of a kind that netfix cannot create: a restore could not recreate it",
        QdiscCannotBeRestored { qdisc } => "has qdisc {qdisc}: a restore could not recreate that",
        CannotBeRestored => "a restore could not recreate this",
        DeviceInPod => "is a device inside a pod: a restore could not move it back into the pod",
        PortCannotBeRestored { master } => "is a port of {master}: a restore could not make it one again",
    }
}
