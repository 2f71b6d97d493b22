use super::causes;
use crate::model::IfName;

causes! {
    /// Causes found in writing checkpoints.
    SnapshotCause {
        LinkLost => Degraded,
        LinkVanished { link: String } => Unreadable,
        HostLinkGone => Degraded,
        HostLinkDown => Degraded,
        OnThirdNamespace => Unsupported,
        KindCannotBeMade => Unsupported,
        QdiscCannotBeRestored { qdisc: String } => Unsupported,
        CannotBeRestored => Unsupported,
        DeviceInPod => Unsupported,
        PortCannotBeRestored { master: IfName } => Unsupported,
    }
}
