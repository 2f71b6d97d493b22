use super::causes;
use crate::model::{PodId, PodInfo};

causes! {
    /// Causes found in what other programs recorded: libcni's cache, and checkpoints to import.
    ForeignCause {
        NoCache { error: String } => NotFound,
        NoCacheEntries { folder: String } => CheckpointMissing,
        CacheOfFormerPod { then: PodInfo } => PodReplaced,
        CacheOfGonePods { pods: usize } => NetnsGone,
        AmbiguousSandboxes { sandboxes: Vec<String> } => NetnsReplaced,
        CacheFileOfGonePod => CheckpointCorrupt,
        TwoNetworks { networks: Vec<String> } => CheckpointCorrupt,
        OtherPlugins { plugins: Vec<String> } => PartialSource,
        ParentAssumed { interfaces: usize } => PartialSource,
        SourceIsPartial => PartialSource,
        VlanKnownByName => PartialSource,
        ImportOfOwnFolder => NotFound,
        ImportOfNoFolder => NotFound,
        ImportOfEmptyFolder => NotFound,
        ImportPodGone => NetnsGone,
        ImportPodReplaced { now: PodInfo, then: PodInfo } => PodReplaced,
        ImportAmbiguous { now: PodInfo } => NetnsReplaced,
        ImportSuperseded { by: PodId } => NetnsReplaced,
        OwnCheckpointKept { id: PodId } => PartialSource,
        SnapshotSavesMore { pods: usize } => PartialSource,
    }
}
