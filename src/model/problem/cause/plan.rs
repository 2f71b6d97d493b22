use super::causes;
use crate::model::{Hardware, IfName};

causes! {
    /// Causes found in what a plan cannot restore.
    PlanCause {
        HostLinkMissing { parent: IfName } => ParentMissing,
        OwnLinkMissing { parent: IfName } => ParentMissing,
        DeviceMissing { hardware: Option<Hardware> } => ParentMissing,
        DeviceRenamed { now: IfName } => DeviceRenamed,
        KindMissing { kind: String } => Unsupported,
        MasterLost { master: IfName } => Unsupported,
        QdiscLost { now: String, then: String } => Unsupported,
        ObjectLost => Unsupported,
        IfindexDiffers { now: u32, then: u32 } => IfindexDiffers,
        Surplus => Surplus,
        DuplicateAddress => AddressConflict,
        LifetimeOver => Unsupported,
    }
}
