use super::causes;
use crate::model::IfName;

causes! {
    /// Causes found in writing checkpoints.
    SnapshotCause {
        /// The pod has lost a link, and its good checkpoint is kept.
        LinkLost => Degraded,
        /// A link vanished while a pod without a checkpoint was read.
        LinkVanished { link: String } => Unreadable,
        /// A host link under stored checkpoints is gone.
        HostLinkGone => Degraded,
        /// A host link under stored checkpoints is down.
        HostLinkDown => Degraded,
        /// The link is on a link of a third namespace.
        OnThirdNamespace => Unsupported,
        /// The link's kind cannot be created.
        KindCannotBeMade => Unsupported,
        /// The link has a qdisc of its own.
        QdiscCannotBeRestored { qdisc: String } => Unsupported,
        /// An object that netfix does not know in full.
        CannotBeRestored => Unsupported,
        /// A device inside a pod.
        DeviceInPod => Unsupported,
        /// A link of the host is a port of something else than a bond.
        PortCannotBeRestored { master: IfName } => Unsupported,
    }
}
