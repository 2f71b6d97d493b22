use std::time::Duration;

use super::causes;
use crate::model::PodId;

causes! {
    /// Causes found in the pre-check.
    CheckCause {
        /// There is no state folder.
        NoFolder => CheckpointMissing,
        /// The state folder cannot be used.
        FolderUnusable { error: String } => Unwritable,
        /// Too few bytes are free.
        TooFewBytes { free_kib: u64, needed_kib: u64 } => NoSpace,
        /// Too few inodes are free.
        TooFewInodes { free: u64 } => NoSpace,
        /// The process does not have a capability.
        CapabilityMissing => PermissionDenied,
        /// The kernel cannot create links of this kind.
        KindMissing => Unsupported,
        /// No snapshot of all pods was completed in this boot.
        NoCompleteSnapshot => CheckpointMissing,
        /// The last snapshot of all pods is old.
        SnapshotStale { age: Duration, completed: String } => CheckpointStale,
        /// A link under pods has no carrier.
        NoCarrierUnderPods => NoCarrier,
        /// A device has no carrier.
        NoCarrier => NoCarrier,
        /// A running pod has no checkpoint.
        NoCheckpoint => CheckpointMissing,
        /// No snapshot found the checkpoint true lately.
        Stale { age: Duration } => CheckpointStale,
        /// The checkpoint is in the origin's format.
        OriginFormat => PartialSource,
        /// The pod has lost a link.
        LinkLost => Degraded,
        /// A restore would change something: this step, and so many more.
        Drift { more: usize, pod: Option<PodId> } => Drift,
    }
}
