//! Causes found in the state folder, and what snapshots and the pre-check find.

use std::net::IpAddr;
use std::time::Duration;

use super::causes;
use crate::model::pod::empty::Evidence;
use crate::model::{CutOffCause, IfName, LossCause, Mac, PodId};

causes! {
    /// Causes found in the state directory.
    StoreCause {
        Corrupt { path: String, reason: String, effect: Option<StoreEffect> } => CheckpointCorrupt,
        NoSpace { action: String, path: String, error: String, effect: Option<StoreEffect> } => NoSpace,
        TooLarge { path: String, size: u64, most: u64 } => PodBudget,
        CannotWrite { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unwritable,
        CannotRead { action: String, path: String, error: String, effect: Option<StoreEffect> } => Unreadable,
        Locked { path: String, holder: String, waited: Duration } => LockHeld,
        NoGeneration { kept: Vec<u64> } => NotFound,
    }
}

/// What the command cannot do because of a failed read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreEffect {
    /// No generation holds what would be replaced, so nothing is replaced.
    NothingReplaced,
    /// The host's own addresses and routes are unknown.
    HostUnknown,
    /// The host's record is that of a generation.
    HostOfGeneration,
    /// When the checkpoints were last verified is unknown.
    TimesUnknown,
    /// Whether a window is open, and kubelet paused in it, is unknown.
    WindowUnknown,
    /// The window is over, and only memory has its end.
    KeptInMemory,
}

causes! {
    /// Causes found in writing checkpoints.
    SnapshotCause {
        Lost { what: LossCause, generation: Option<u64> } => Degraded,
        LinkVanished { link: String } => Unreadable,
        TooLong { most: usize, left: usize } => PodBudget,
        NoRecord { evidence: Evidence } => CheckpointMissing,
        Incomplete { what: LossCause } => Degraded,
        CutOffAccepted { why: CutOffCause } => CutOff,
        GivenUp { what: LossCause, generation: Option<u64> } => Degraded,
        BareGivenUp => CheckpointMissing,
        NotRunning => NotFound,
        Several { pods: usize } => NotFound,
        NothingLost => NotFound,
        HostLost { what: LossCause, generation: Option<u64> } => Degraded,
        HostObjectLost => Degraded,
        LessRestorable { generation: Option<u64>, is_host: bool } => Degraded,
        HostGivenUp => Degraded,
        AnswersGivenUp => Degraded,
        HostNoCarrier => NoCarrier,
        HostLinkGone => Degraded,
        HostLinkDown => Degraded,
        OnThirdNamespace => Unsupported,
        KindCannotBeMade => Unsupported,
        KeysCannotBeRead => Unsupported,
        LowerCannotBeSet => Unsupported,
        LowerIsGone => Unsupported,
        TrafficCannotBeRestored { what: String } => Unsupported,
        RedirectCannotBeRestored { filter: String, link: IfName } => Unsupported,
        ProgramCannotBeRestored { what: String } => Unsupported,
        ProgramOwned { what: String, owner: String } => Unsupported,
        CannotBeRestored => Unsupported,
        DeviceInPod => Unsupported,
        PortCannotBeRestored { master: IfName } => Unsupported,
        MembershipStays => Unsupported,
        HeldDown => Unsupported,
        PairNotRecorded { what: String } => Unsupported,
        DcbCannotBeRestored { what: String } => Unsupported,
        DcbManaged { what: String } => Unsupported,
        NetworkAnswers { mac: Mac, addresses: usize } => AddressConflict,
        SameMacAnswers { addresses: Vec<IpAddr> } => AddressConflict,
        AnotherAnswers { mac: Mac, addresses: Vec<IpAddr> } => AddressConflict,
    }
}

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
        NoCarrierUnderHost => NoCarrier,
        NoCarrier => NoCarrier,
        NoCheckpoint => CheckpointMissing,
        Stale { age: Duration } => CheckpointStale,
        OriginFormat => PartialSource,
        Lost { what: LossCause, generation: Option<u64> } => Degraded,
        HostLost { what: LossCause, generation: Option<u64> } => Degraded,
        Drift { more: usize, pod: Option<PodId> } => Drift,
        Unrecorded { more: usize } => Surplus,
    }
}

causes! {
    /// Causes found in a rehearsal: what a restore in a twin of the node would not bring back as it is.
    RehearsalCause {
        NotBack => RehearsalDiffers,
        Surplus => RehearsalDiffers,
        Differs { attribute: String, now: Option<String>, then: Option<String>, more: usize } => RehearsalDiffers,
        Contents => RehearsalDiffers,
        Order => RehearsalDiffers,
        Refused { message: String } => RehearsalDiffers,
        MoreDiffer { more: usize } => RehearsalDiffers,
        Failed { error: String } => RehearsalDiffers,
        TimeOver { limit: Duration } => RehearsalDiffers,
        NotRehearsed { why: Unrehearsed } => NotRehearsed,
        LeftToDaemon { more: usize } => LeftToDaemon,
    }
}

/// Why something is not rehearsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unrehearsed {
    /// A device of hardware, which is in one namespace.
    Device,
    /// A link of a namespace that is neither the host's nor the pod's is below it.
    Elsewhere,
    /// A rehearsal cannot make a link of this kind.
    Kind,
    /// A link of the host below it is not rehearsed.
    Below,
    /// It has no record that can be used.
    NoRecord,
    /// Its record has gaps.
    Partial,
    /// It has lost a part of its network.
    Lost,
}

causes! {
    /// Causes found in the command line and the machine.
    UsageCause {
        NotRoot => PermissionDenied,
        NotTheHost { why: Elsewhere } => NotTheHost,
        TextOnly => Failed,
    }
}

/// Why this process does not see the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// Its network namespace is not that of process 1.
    Netns,
    /// The processes of the host are not visible.
    Pids,
}

causes! {
    /// Causes found in the documents of many nodes.
    FleetCause {
        Unreadable { error: String } => Unreadable,
        NoDocument { error: String } => Unreadable,
        Empty => Unreadable,
        Old { age: Duration, most: Duration } => CheckpointStale,
        Future { by: Duration } => CheckpointStale,
        Undated => CheckpointStale,
        Selection => NotSelected,
        Superseded { others: usize, newest: String } => CheckpointStale,
    }
}
