//! What a window logs. The sentences are in `report/messages/window_log.rs`.

use std::time::Duration;

use crate::gateways::{Reachability, Verified};
use crate::model::fate::Fate;
use crate::model::problem::AlreadyLost;
use crate::model::window::{KernelLine, PhaseName, Rollback, WindowPod};
use crate::model::{GatewayAnswer, IfName, Problem, Rehearsal, State};
use crate::progress::Wait;

/// The journal's `TARGET` of phases and warnings.
pub(crate) const TARGET: &str = "netfix::maintenance";

/// One line of a window's log.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Links of the host were lost without a COMMAND.
    Lost {
        links: Vec<IfName>,
    },
    /// An interrupted window continues.
    ResumingWindow,
    Checking,
    TakingSnapshot,
    SnapshotTaken {
        pods: PodCount,
    },
    /// The restore was carried out in a twin of the node.
    Rehearsed(Rehearsal),
    /// Pods that got their network after the snapshot are saved too.
    LateSnapshot {
        pods: PodCount,
    },
    /// Pods, or the host, that have lost their network before the window.
    RestoresLost(AlreadyLost),
    /// Gateways that do not answer before the window.
    SilentGateways {
        count: usize,
    },
    Running {
        argv: Vec<String>,
        limit: Duration,
    },
    /// `--before` or `--after`.
    RunningHook {
        command: String,
    },
    CommandSucceeded {
        elapsed: Duration,
    },
    /// COMMAND or the rollback failed.
    CommandFailed(Problem),
    /// A command of the user has passed its limit, and got SIGTERM.
    TimedOut {
        program: UserCommand,
        pid: u32,
        limit: Duration,
        grace: Duration,
    },
    /// It still runs after SIGTERM, and got SIGKILL.
    KilledAtLimit {
        program: UserCommand,
        pid: u32,
    },
    /// It still runs after SIGKILL.
    DoesNotEnd {
        program: UserCommand,
        pid: u32,
    },
    /// A signal arrived.
    Signal {
        signal: &'static str,
        effect: SignalEffect,
    },
    /// The rollback starts, for this reason.
    RollingBack {
        rollback: Rollback,
        limit: Duration,
    },
    /// The rollback succeeded.
    RolledBack {
        elapsed: Duration,
    },
    /// The kernel has logged something about a recorded device.
    KernelLogged(KernelLine),
    Restoring,
    /// The first restore was incomplete.
    RestoringAgain,
    /// Masqueraded connections whose link was lost: restored, and not.
    ConnectionsRestored {
        restored: usize,
        left: usize,
    },
    Restored {
        restored: usize,
        correct: usize,
        failed: usize,
        is_selection: bool,
    },
    /// Pods that are not restored, before this unit starts, if one is paused.
    Unrestored {
        pods: PodCount,
        unit: Option<String>,
    },
    /// One of them.
    UnrestoredPod {
        title: String,
        state: State,
        is_bare: bool,
    },
    /// So many more.
    MoreUnrestored {
        pods: usize,
    },
    Verifying,
    Verified(Reached),
    /// Every pod, host link and gateway.
    LookingAgain,
    Watching {
        settle: Duration,
    },
    RebuildChecked {
        check: RebuildCheck,
        is_selection: bool,
    },
    PhaseEnded {
        name: PhaseName,
        ok: bool,
    },
    /// The record could not be written.
    NotSaved(Problem),
    Pausing {
        unit: String,
    },
    /// The unit is stopped and masked.
    Paused {
        unit: String,
        timer: String,
        deadline: Duration,
    },
    /// The unit is paused since the interrupted window.
    StillPaused,
    NothingToPause,
    /// The unit has been paused for so long that it matters.
    PausedFor {
        seconds: u64,
        budget: Budget,
    },
    /// kubelet stays paused for a repair.
    HeldForRepair,
    Resuming {
        unit: String,
    },
    Resumed {
        unit: String,
    },
    Failed(Problem),
    /// So much of the log is not kept.
    LeftOut {
        bytes: u64,
    },
}

/// A command of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UserCommand {
    Command,
    Rollback,
    /// `--before`
    Before,
    /// `--after`
    After,
}

impl UserCommand {
    /// Whether netfix restores the pods after it.
    pub(crate) fn is_before_restore(self) -> bool {
        matches!(self, Self::Command | Self::Rollback)
    }
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignalEffect {
    /// The command that runs gets it too; the third one kills it.
    Passed { program: UserCommand, pid: u32 },
    /// It killed the command.
    Killed { program: UserCommand, pid: u32 },
    /// It ends a wait of netfix, or this phase is completed first.
    OnPhase(WindowMoment),
}

/// What a window does at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WindowMoment {
    /// The phase that has begun last.
    pub phase: Option<PhaseName>,
    /// What it waits for.
    pub waits: Option<Wait>,
}

/// How many pods reach their gateways, and the answers of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub host: Vec<GatewayAnswer>,
    /// All pods.
    pub total: usize,
    pub reachable: usize,
    /// Pods that have no gateway.
    pub without: usize,
    /// Pods with a gateway that has never answered.
    pub never: usize,
    /// Pods with a gateway that could not be probed.
    pub unknown: usize,
    /// Whether pods were to reach more than gateways.
    pub has_targets: bool,
    /// Whether only some of the pods were probed.
    pub is_selection: bool,
}

impl Reached {
    pub(crate) fn of(verified: &Verified) -> Self {
        let count = |state| {
            let pods = verified.pods.iter();
            pods.filter(|one| one.answers.state == state).count()
        };
        Self {
            host: verified.host.gateways.clone(),
            total: verified.pods.len(),
            reachable: count(Reachability::Reachable),
            without: count(Reachability::NoGateway),
            never: count(Reachability::NeverAnswered),
            unknown: count(Reachability::Unknown),
            has_targets: verified.pods.iter().any(|pod| !pod.targets.is_empty()),
            is_selection: false,
        }
    }
}

/// So many pods, of the node or of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodCount {
    pub pods: usize,
    pub is_selection: bool,
}

/// A limit on how long kubelet may be paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Budget {
    /// The node is marked `NotReady` after this many seconds.
    NotReady(u64),
    /// The pods are marked for eviction after this many seconds.
    Eviction(u64),
    /// The deadline starts kubelet after this many seconds.
    Deadline(u64),
}

impl Budget {
    /// The limit in seconds.
    pub(crate) fn limit(self) -> u64 {
        match self {
            Self::NotReady(limit) | Self::Eviction(limit) | Self::Deadline(limit) => limit,
        }
    }
}

/// What happened to the pods of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RebuildCheck {
    pub pods: usize,
    /// Those that are known not to be rebuilt.
    pub same: usize,
    pub restarted: usize,
    pub gone: usize,
    /// Those that an operator must look at.
    unexpected: usize,
}

impl RebuildCheck {
    pub(crate) fn of(pods: &[WindowPod]) -> Self {
        let count =
            |is_it: &dyn Fn(&WindowPod) -> bool| pods.iter().filter(|pod| is_it(pod)).count();
        Self {
            pods: pods.len(),
            same: count(&|pod| pod.rebuilt == Some(false)),
            restarted: count(&|pod| pod.fate == Some(Fate::Restarted)),
            gone: count(&|pod| pod.fate == Some(Fate::Gone)),
            unexpected: count(&|pod| pod.unexpected),
        }
    }

    /// Whether no pod was rebuilt, and nothing else happened that it should not.
    pub(crate) fn is_well(self) -> bool {
        self.same == self.pods && self.unexpected == 0
    }
}
