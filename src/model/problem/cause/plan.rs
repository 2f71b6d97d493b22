use super::causes;
use crate::model::{Hardware, IfName};

causes! {
    /// Causes found in what a plan cannot restore.
    PlanCause {
        /// The host's link below it is missing.
        HostLinkMissing { parent: IfName } => ParentMissing,
        /// The link below it, in the same namespace, is missing.
        OwnLinkMissing { parent: IfName } => ParentMissing,
        /// A device of the host is missing.
        DeviceMissing { hardware: Option<Hardware> } => ParentMissing,
        /// A device has another name now.
        DeviceRenamed { now: IfName } => DeviceRenamed,
        /// A link of a kind that netfix cannot create is missing.
        KindMissing { kind: String } => Unsupported,
        /// The link is no longer a port of its bridge or VRF.
        MasterLost { master: IfName } => Unsupported,
        /// The link has another root qdisc now.
        QdiscLost { now: String, then: String } => Unsupported,
        /// An object that netfix does not know in full is missing.
        ObjectLost => Unsupported,
        /// The link has another ifindex now.
        IfindexDiffers { now: u32, then: u32 } => IfindexDiffers,
        /// The kernel has it, and the checkpoint does not.
        Surplus => Surplus,
        /// Duplicate address detection failed.
        DuplicateAddress => AddressConflict,
        /// The address's lifetime is over.
        LifetimeOver => Unsupported,
    }
}
