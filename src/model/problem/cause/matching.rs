use super::causes;
use crate::model::{PodId, PodInfo};

causes! {
    /// Causes found in matching stored state with namespaces.
    MatchingCause {
        OtherMachine => OtherMachine,
        OtherBoot => OtherBoot,
        NetnsGone => NetnsGone,
        NoPodAtPath => NetnsGone,
        NetnsReplaced => NetnsReplaced,
        NetnsUnproven => NetnsReplaced,
        PodReplaced { now: PodInfo, then: PodInfo } => PodReplaced,
        PodRecreated { now: PodInfo, then: PodInfo } => PodReplaced,
        AmbiguousCheckpoints { ids: Vec<PodId> } => NetnsReplaced,
        Superseded { by: PodId } => CheckpointStale,
        BareWithoutCheckpoint => CheckpointMissing,
        WithoutCheckpoint => CheckpointMissing,
        NoCheckpoints => CheckpointMissing,
        NodeOfOtherMachine => OtherMachine,
        NodeOfOtherBoot => OtherBoot,
        UnknownParent => ParentMissing,
        SeveralPods { pods: usize } => NotFound,
    }
}
