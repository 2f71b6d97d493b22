//! Sentences about the pre-check.

use std::fmt;

use crate::model::problem::CheckCause;

impl fmt::Display for CheckCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFolder => f.write_str("does not exist: no snapshot was ever taken. Run `netfix snapshot`, and from cron"),
            Self::FolderUnusable { error } => write!(f, "{error}; no snapshot can be written"),
            Self::TooFewBytes {
                free_kib,
                needed_kib,
            } => write!(f, "has {free_kib} KiB free; a snapshot may need {needed_kib} KiB"),
            Self::TooFewInodes { free } => write!(f, "has only {free} free inodes"),
            Self::CapabilityMissing => f.write_str("this process does not have the capability, so a restore would fail"),
            Self::KindMissing => f.write_str(
                "this kernel cannot create links of this kind, nor load the module for it: a restore of the pods that \
                 have one would fail",
            ),
            Self::NoCompleteSnapshot => f.write_str(
                "no snapshot of all pods was completed since this machine's boot. Run `netfix snapshot`",
            ),
            Self::SnapshotStale { age, completed } => write!(
                f,
                "the last snapshot of all pods was completed {} ago, at {completed}. Run `netfix snapshot`",
                humantime::format_duration(*age)
            ),
            Self::NoCarrierUnderPods => f.write_str("has no carrier: the pods on it cannot be reached"),
            Self::NoCarrier => f.write_str("has no carrier"),
            Self::NoCheckpoint => f.write_str(
                "runs without a checkpoint: netfix could not restore it after a loss of the NIC. Run `netfix snapshot`",
            ),
            Self::Stale { age } => write!(
                f,
                "last verified {} ago. Run `netfix snapshot`",
                humantime::format_duration(*age)
            ),
            Self::OriginFormat => f.write_str(
                "is in the format of i40e_net_fix, which does not have the links under the pod. Run `netfix snapshot`",
            ),
            Self::LinkLost => f.write_str("is lost. Run `netfix restore`"),
            Self::Drift { more, pod } => {
                match more {
                    0 => f.write_str("a restore would do this")?,
                    more => write!(f, "a restore would do this and {more} more steps")?,
                }
                let pod = pod.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
                write!(
                    f,
                    ": see `netfix diff{pod}`. If the present state is right, run `netfix snapshot`"
                )
            }
        }
    }
}
