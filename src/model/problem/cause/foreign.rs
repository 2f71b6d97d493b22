use super::causes;
use crate::model::{PodId, PodInfo};

causes! {
    /// Causes found in what other programs recorded: libcni's cache, and checkpoints to import.
    ForeignCause {
        /// There is no libcni cache.
        NoCache { error: String } => NotFound,
        /// The cache has no entry for this selection.
        NoCacheEntries { folder: String } => CheckpointMissing,
        /// The cache has entries of an earlier pod in this namespace.
        CacheOfFormerPod { then: PodInfo } => PodReplaced,
        /// The cache has entries of pods that do not run any more.
        CacheOfGonePods { pods: usize } => NetnsGone,
        /// The entries of several sandboxes lead to one namespace.
        AmbiguousSandboxes { sandboxes: Vec<String> } => NetnsReplaced,
        /// A damaged file of the cache, of a sandbox that does not run.
        CacheFileOfGonePod => CheckpointCorrupt,
        /// Two networks have an entry for one interface.
        TwoNetworks { networks: Vec<String> } => CheckpointCorrupt,
        /// Interfaces that other plugins made.
        OtherPlugins { plugins: Vec<String> } => PartialSource,
        /// Interfaces get the link of the host's default route as parent.
        ParentAssumed { interfaces: usize } => PartialSource,
        /// The source has only a part of each pod's state.
        SourceIsPartial => PartialSource,
        /// A missing VLAN of which only the name is known.
        VlanKnownByName => PartialSource,
        /// `import` got netfix's own folder.
        ImportOfOwnFolder => NotFound,
        /// `import` got a folder that does not exist.
        ImportOfNoFolder => NotFound,
        /// `import` got an empty folder.
        ImportOfEmptyFolder => NotFound,
        /// The pod of an imported file does not run.
        ImportPodGone => NetnsGone,
        /// Another pod has the namespace of an imported file.
        ImportPodReplaced { now: PodInfo, then: PodInfo } => PodReplaced,
        /// Several imported files lead to one namespace.
        ImportAmbiguous { now: PodInfo } => NetnsReplaced,
        /// Another file is for the same pod, and is imported.
        ImportSuperseded { by: PodId } => NetnsReplaced,
        /// netfix's own checkpoint of the pod is more complete than the imported file.
        OwnCheckpointKept { id: PodId } => PartialSource,
        /// Imported pods have their interface: a snapshot saves more.
        SnapshotSavesMore { pods: usize } => PartialSource,
    }
}
