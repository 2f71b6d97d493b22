use super::causes;
use crate::model::{PodId, PodInfo};

causes! {
    /// Causes found in matching stored state with namespaces.
    MatchingCause {
        /// The checkpoint is from another machine.
        OtherMachine => OtherMachine,
        /// The checkpoint is from before the last boot.
        OtherBoot => OtherBoot,
        /// A checkpoint's namespace does not exist any more.
        NetnsGone => NetnsGone,
        /// The path that is all a file has leads to no running pod.
        NoPodAtPath => NetnsGone,
        /// Another namespace is at the checkpoint's path.
        NetnsReplaced => NetnsReplaced,
        /// A namespace has the same inode, and nothing proves that it is the same one.
        NetnsUnproven => NetnsReplaced,
        /// Another pod has the checkpoint's namespace.
        PodReplaced { now: PodInfo, then: PodInfo } => PodReplaced,
        /// A pod with the checkpoint's name runs in another sandbox.
        PodRecreated { now: PodInfo, then: PodInfo } => PodReplaced,
        /// Several checkpoints lead to one namespace.
        AmbiguousCheckpoints { ids: Vec<PodId> } => NetnsReplaced,
        /// A more complete checkpoint about the same namespace is used.
        Superseded { by: PodId } => CheckpointStale,
        /// A running pod without interface and checkpoint.
        BareWithoutCheckpoint => CheckpointMissing,
        /// A running pod without checkpoint.
        WithoutCheckpoint => CheckpointMissing,
        /// No checkpoint for this selection.
        NoCheckpoints => CheckpointMissing,
        /// The node's state is from another machine.
        NodeOfOtherMachine => OtherMachine,
        /// The node's state is from before the last boot.
        NodeOfOtherBoot => OtherBoot,
        /// `--parent` names no link.
        UnknownParent => ParentMissing,
        /// `show POD`: several checkpoints begin like that.
        SeveralPods { pods: usize } => NotFound,
    }
}
