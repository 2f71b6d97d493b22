//! Causes found in finding pods, and matching them with what is stored.

use super::causes;
use crate::model::{CutOffCause, IfName, PodId, PodInfo};

causes! {
    /// Causes found in finding namespaces and pods.
    InventoryCause {
        NotAPattern { reason: String } => NotFound,
        SelectorUnreadable { error: String } => NotFound,
        NoSuchPod => NotFound,
        CannotObserve { error: String } => Unreadable,
        TooMany { most: usize } => PodBudget,
        NetnsHidden => Unreadable,
        Unseen { namespaces: usize } => Unreadable,
        MountsUnread { more: usize } => Unreadable,
        CannotOpenNetns { error: String } => Unreadable,
        CannotEnterNetns { error: String } => Unreadable,
        SandboxNotFound { pod: PodInfo, reason: NoNetns } => Unreadable,
        SharedNetns { sandboxes: Vec<String> } => Unsupported,
        NoRuntimeSocket { sockets: Vec<String> } => RuntimeUnreachable,
        RuntimeFailed { error: String } => RuntimeUnreachable,
        RuntimeRefused { error: String, other: String, namespaces: Vec<String> } => RuntimeUnreachable,
        RuntimeLeftOver { error: String, other: String } => RuntimeUnreachable,
        ClientFailed { error: String } => RuntimeUnreachable,
        PodListIncomplete { namespaces: Vec<String> } => RuntimeUnreachable,
    }
}

/// Why the namespace of a sandbox is not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoNetns {
    /// The runtime reports neither a path nor a process.
    NothingReported,
    /// The path and the process that it reports lead to different namespaces.
    TwoNamespaces {
        /// The path.
        path: String,
        /// Inode of its namespace.
        of_path: u64,
        /// The process's path.
        process: String,
        /// Inode of its namespace.
        of_process: u64,
    },
    /// Neither leads to a namespace; each with the errno.
    Unreachable(Vec<String>),
    /// Its process is in another pod's namespace.
    InOtherPod,
    /// The namespace existed but no process and no mount led to it.
    NotDiscovered,
}

causes! {
    /// Causes found in matching stored state with namespaces.
    MatchingCause {
        OtherMachine => OtherMachine,
        OtherBoot => OtherBoot,
        NetnsGone => NetnsGone,
        NoPodAtPath => NetnsGone,
        HostNotSelected => NotSelected,
        NetnsReplaced => NetnsReplaced,
        NetnsUnproven => NetnsReplaced,
        PodReplaced { now: PodInfo, then: PodInfo } => PodReplaced,
        PodRecreated { now: PodInfo, then: PodInfo } => PodReplaced,
        AmbiguousCheckpoints { ids: Vec<PodId> } => NetnsReplaced,
        Superseded { by: PodId } => CheckpointStale,
        BareWithoutCheckpoint => CheckpointMissing,
        WithoutCheckpoint => CheckpointMissing,
        CutOff { why: CutOffCause } => CutOff,
        NoCheckpoints => CheckpointMissing,
        FromGeneration { generation: u64 } => FromGeneration,
        NodeOfOtherMachine => OtherMachine,
        NodeOfOtherBoot => OtherBoot,
        UnknownParent => ParentMissing,
        SeveralPods { pods: usize } => NotFound,
    }
}

causes! {
    /// Causes found in what other programs recorded: libcni's cache, and checkpoints to import.
    ForeignCause {
        NoCache { error: String } => NotFound,
        NoCacheEntries { folder: String } => CheckpointMissing,
        FromCniCache => FromCniCache,
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

causes! {
    /// Causes: the parts that an incomplete source lacks.
    PartialCause {
        ParentUnknown => ParentMissing,
        MtuAboveParent { mtu: u32, parent: IfName, available: u32 } => Failed,
        MacUnknown => PartialSource,
        PluginLost { what: String } => Unsupported,
        PluginUnseen { what: String } => PartialSource,
        ConfiguredOtherwise => PartialSource,
        SettingUnknown => Unsupported,
        RouteOfTwoFamilies { route: String } => Unsupported,
    }
}
