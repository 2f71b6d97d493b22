use std::time::Duration;

use super::causes;
use crate::model::PodId;

causes! {
    /// Causes found in the pre-check.
    CheckCause {
        NoFolder => CheckpointMissing,
        FolderUnusable { error: String } => Unwritable,
        TooFewBytes { free_kib: u64, needed_kib: u64 } => NoSpace,
        TooFewInodes { free: u64 } => NoSpace,
        CapabilityMissing => PermissionDenied,
        KindMissing => Unsupported,
        NoCompleteSnapshot => CheckpointMissing,
        SnapshotStale { age: Duration, completed: String } => CheckpointStale,
        NoCarrierUnderPods => NoCarrier,
        NoCarrier => NoCarrier,
        NoCheckpoint => CheckpointMissing,
        Stale { age: Duration } => CheckpointStale,
        OriginFormat => PartialSource,
        LinkLost => Degraded,
        Drift { more: usize, pod: Option<PodId> } => Drift,
    }
}
