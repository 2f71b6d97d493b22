//! Causes found in a window: its record, COMMAND, kubelet and rebuilt pods.

use std::time::Duration;

use super::{Cause, causes};
use crate::model::fate::{ContainerChange, LastSeen};
use crate::model::next::WindowNow;
use crate::model::window::{KernelCause, PhaseName};
use crate::model::{Bytes, IfName, PodInfo};

causes! {
    /// Causes found around a maintenance window: before it starts, in its unit, in its record.
    WindowCause {
        Open { started: String, command: String, pid: u32, now: WindowNow } => WindowOpen,
        Abandoned { started: String, command: String, pid: u32, now: WindowNow } => WindowOpen,
        NotResumed { started: String, now: WindowNow } => WindowOpen,
        Runs { command: String, pid: u32, phase: Option<PhaseName>, since: Duration, lost: usize } => WindowOpen,
        NotResumable { now: WindowNow } => WindowOpen,
        SnapshotSkipped { command: String, pid: u32 } => WindowOpen,
        DeadlineRepeated { unit: String } => WindowOpen,
        RecordReplaced { error: String, aside: String } => CheckpointCorrupt,
        RecordLost { error: String, aside: String } => CheckpointCorrupt,
        CommandStillRuns { pid: u32 } => WindowOpen,
        RollbackStillRuns { pid: u32 } => WindowOpen,
        NoSuchDevice => NotFound,
        NoPodOnDevice => NotFound,
        NicAbsent => ParentMissing,
        NoneOpen => NotFound,
        StillOpen { limit: Duration } => WindowOpen,
        NothingPaused => NotFound,
        NoTerminal => Interrupted,
        NoUnit => SystemdUnreachable,
        NotConfirmed => Interrupted,
        Signals { error: String } => Failed,
        NotRestorable { problems: usize } => Unsupported,
        AlreadyLost { lost: AlreadyLost } => Degraded,
        RestoresLost { lost: AlreadyLost } => Degraded,
        NotSelected { pods: Vec<PodInfo> } => NotSelected,
        LostUnselected { pods: Vec<PodInfo>, at_risk: usize } => Degraded,
        NamespaceUnreadable { error: String } => Unreadable,
        Panicked => Failed,
        SilentBefore => GatewayUnreachable,
        NotProbedBefore => GatewayUnknown,
        TargetSilentBefore => TargetUnreachable,
    }
}

causes! {
    /// Causes that the kernel's log names.
    LogCause {
        Named { cause: KernelCause } => KernelLog,
    }
}

causes! {
    /// Causes found by `netfix guard`.
    GuardCause {
        Deleted { below: Vec<IfName> } => LinkDeleted,
        Repeats { attempts: u32 } => LossRepeats,
        Stopped => GuardStopped,
        Paused { until: String } => KubeletNotPaused,
        Resumed => NotFound,
        NoStateDirectory => CheckpointMissing,
        Failed { error: String } => Failed,
    }
}

/// What has lost its network before a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AlreadyLost {
    /// Whether the host has lost something.
    pub host: bool,
    /// The number of pods.
    pub pods: usize,
    /// How many of them have no usable checkpoint.
    pub without_checkpoint: usize,
}

causes! {
    /// Causes found in the unit that a window runs as.
    DetachedCause {
        NotDetached { cause: SystemdCause } => SystemdUnreachable,
        NotQueried { cause: SystemdCause } => SystemdUnreachable,
        EndUnknown => Failed,
        Killed { signal: u32, now: Option<WindowNow> } => Failed,
        KilledBefore { signal: u32 } => Failed,
        SharedFile { error: String } => Failed,
    }
}

causes! {
    /// Causes found in the records of windows.
    RecordCause {
        Nothing => NotFound,
        NoSuch { windows: Vec<String> } => NotFound,
        Ambiguous { windows: Vec<String> } => NotFound,
        Gone => NotFound,
    }
}

causes! {
    /// Causes found in COMMAND of a window, and interruptions.
    CommandCause {
        Exited { code: i32 } => CommandFailed,
        Killed { signal: i32 } => CommandFailed,
        NotStarted { error: String } => CommandFailed,
        NotInPath => NotFound,
        NotAProgram { error: String } => NotFound,
        NoInterpreter { interpreter: Bytes, error: String } => NotFound,
        UnknownModule => NotFound,
        TimedOut { limit: Duration } => CommandFailed,
        NotEnded { limit: Duration } => CommandFailed,
        EndUnknown => CommandFailed,
        InterruptedUnchanged => Interrupted,
        InterruptedBefore => Interrupted,
        Interrupted { signal: &'static str, is_rollback: bool, restored: usize, pods: usize } => Interrupted,
        InterruptedRestore => Interrupted,
        InterruptedRepair => Interrupted,
        InterruptedRebuildCheck => Interrupted,
    }
}

causes! {
    /// Causes found in what makes a window unnecessary, and in the versions of drivers.
    ConditionCause {
        UnlessSucceeded => AlreadyDone,
        InVersion => AlreadyDone,
        UnlessFailed { cause: CommandCause } => CommandFailed,
        VersionUnreadable { error: String } => Unreadable,
        NoSuchDriver => NotFound,
        OtherVersion { running: Option<String>, version: String } => DriverVersion,
    }
}

causes! {
    /// Causes found in the commands around a window.
    HookCause {
        BeforeFailed { cause: CommandCause } => CommandFailed,
        AfterFailed { cause: CommandCause } => CommandFailed,
        AfterTimedOut { limit: Duration } => CommandFailed,
    }
}

causes! {
    /// Causes found in the rollback of a window, or in that it does not run.
    RollbackCause {
        NicMissing { wait: Duration } => RolledBack,
        NoCarrier { wait: Duration } => RolledBack,
        SafeMode => RolledBack,
        PodsLost { lost: usize, allowed: usize } => RolledBack,
        LostAgain => RolledBack,
        AlreadyRan => RolledBack,
        Failed { cause: CommandCause } => CommandFailed,
        Useless { cause: Option<CommandCause> } => RolledBack,
        NotRun => Interrupted,
    }
}

/// How a job of systemd ended: with systemd's word for that, or unknown.
pub type JobEnd = Result<String, Box<SystemdCause>>;

causes! {
    /// Why systemd did not do what netfix needs.
    SystemdCause {
        Unreachable { why: String } => SystemdUnreachable,
        Refused { call: String, why: String } => SystemdUnreachable,
        TimedOut { call: String, limit: Duration } => SystemdUnreachable,
        NoSuchUnit { unit: String } => KubeletNotPaused,
        SeveralRun { units: Vec<String> } => KubeletNotPaused,
        RunsMasked { unit: String } => KubeletNotPaused,
        StartsAgain { unit: String, sub: String } => KubeletNotPaused,
        NotMasked { unit: String, folder: &'static str, error: String, refused: Option<Box<SystemdCause>> } =>
            KubeletNotPaused,
        NotUnmasked { link: String, error: String } => KubeletNotResumed,
        NotStarted { unit: String, job: JobEnd, active: String, sub: String } => KubeletNotResumed,
        ProgramMissing { name: &'static str } => KubeletNotPaused,
        NotArmed { timer: String, job: JobEnd } => KubeletNotPaused,
        NoOwnPath { error: String } => SystemdUnreachable,
        NotPrepared { error: String } => SystemdUnreachable,
        NotLaunched { unit: String, result: String } => SystemdUnreachable,
    }
}

causes! {
    /// Causes found while kubelet is paused and resumed.
    KubeletCause {
        Systemd { cause: SystemdCause } => SystemdUnreachable,
        NoSystemd => SystemdUnreachable,
        NothingWithoutSystemd => NotFound,
        NotPaused { cause: SystemdCause } => KubeletNotPaused,
        DeadlineTooShort => KubeletNotPaused,
        RunsInOtherUnit { pid: u32, unit: String } => KubeletNotPaused,
        RunsInNoUnit { pid: u32, unit: Option<String> } => KubeletNotPaused,
        NotToBePaused => KubeletNotPaused,
        StartedBeforeCommand => KubeletNotPaused,
        StartedBeforeRestore => KubeletNotPaused,
        NotResumed { unit: String, cause: SystemdCause } => KubeletNotResumed,
        TimerNotStopped { cause: SystemdCause } => Failed,
        NotRunning => NotFound,
        Masked => NotFound,
        NoUnit => NotFound,
    }
}

causes! {
    /// What happened to a pod in a window, or leaves it unknown.
    RebuildCause {
        SandboxReplaced { was: String, is: String, attempt: Option<u32> } => PodRebuilt,
        SandboxRestarted => PodRebuilt,
        NamespaceReplaced => PodRebuilt,
        NamespaceGone => PodRebuilt,
        ContainersChanged { containers: Vec<ContainerChange> } => PodRestarted,
        Gone { noticed: String, seen: LastSeen } => PodGone,
        Unknown => PodRebuilt,
        RuntimeGone => RuntimeUnreachable,
        NoRuntime => RuntimeUnreachable,
        NotChecked { cause: Box<Cause> } => RuntimeUnreachable,
    }
}
