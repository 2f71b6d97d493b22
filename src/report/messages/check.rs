//! Sentences about the pre-check.

use super::or_nothing;
use crate::model::problem::CheckCause;
use crate::model::text::{count, duration};

sentences! {
    CheckCause {
        NoFolder => "does not exist: no snapshot was ever taken. Run `netfix snapshot`, and from cron",
        FolderUnusable { error } => "{error}; no snapshot can be written",
        TooFewBytes { free_kib: free, needed_kib: needed } => "has {free} KiB free; a snapshot may need {needed} KiB",
        TooFewInodes { free } => "has only {inodes} free" (inodes = count(*free, "inode")),
        CapabilityMissing => "this process does not have the capability, so a restore would fail",
        KindMissing => "this kernel cannot create links of this kind, nor load the module for it: a restore of the pods \
            that have one would fail",
        NoCompleteSnapshot => "no snapshot of all pods was completed since this machine's boot. Run `netfix snapshot`",
        SnapshotStale { age, completed } => "the last snapshot of all pods was completed {age} ago, at {completed}. Run \
            `netfix snapshot`" (age = duration(*age)),
        NoCarrierUnderPods => "has no carrier: the pods on it cannot be reached",
        NoCarrier => "has no carrier",
        NoCheckpoint => "runs without a checkpoint: netfix could not restore it after a loss of the NIC. Run `netfix \
            snapshot`",
        Stale { age } => "last verified {age} ago. Run `netfix snapshot`" (age = duration(*age)),
        OriginFormat => "is in the format of i40e_net_fix, which does not have the links under the pod. Run `netfix \
            snapshot`",
        LinkLost => "is lost. Run `netfix restore`",
        Drift { more: 0, pod } => "a restore would do this: see `netfix diff{pod}`. If the present state is right, run \
            `netfix snapshot`" (pod = or_nothing(" ", pod.as_ref())),
        Drift { more, pod } => "a restore would do this and {steps}: see `netfix diff{pod}`. If the present state is \
            right, run `netfix snapshot`" (steps = count(*more, "more step"), pod = or_nothing(" ", pod.as_ref())),
    }
}
