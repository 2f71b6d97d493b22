//! What a window logs. The sentences are in `report/messages/window_log.rs`.

use std::time::Duration;

use crate::model::window::PhaseName;
use crate::model::{Problem, State};

/// The journal's `TARGET` of phases and warnings.
pub(super) const TARGET: &str = "netfix::maintenance";

/// One line of a window's log.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// An interrupted window continues.
    ResumingWindow,
    /// The check begins.
    Checking,
    /// The snapshot begins.
    TakingSnapshot,
    /// The snapshot is complete.
    SnapshotTaken { pods: usize },
    /// Gateways that do not answer before the window.
    SilentGateways { count: usize },
    /// COMMAND begins.
    Running { argv: Vec<String> },
    /// COMMAND succeeded.
    CommandSucceeded { elapsed: Duration },
    /// COMMAND failed.
    CommandFailed(Problem),
    /// The restore begins.
    Restoring,
    /// The first restore was incomplete.
    RestoringAgain,
    /// The restore ended.
    Restored {
        restored: usize,
        correct: usize,
        failed: usize,
    },
    /// Pods that are not restored, before kubelet starts.
    Unrestored { pods: usize },
    /// One of them.
    UnrestoredPod {
        title: String,
        state: State,
        is_bare: bool,
    },
    /// The gateways are probed.
    Verifying,
    /// The gateways were probed.
    Verified { reachable: usize, pods: usize },
    /// The rebuild check begins.
    Watching { settle: Duration },
    /// The rebuild check ended.
    RebuildChecked { same: usize, pods: usize },
    /// A phase ended.
    PhaseEnded { name: PhaseName, ok: bool },
    /// The record could not be written.
    NotSaved(Problem),
    /// The pause of kubelet.
    Kubelet(KubeletEvent),
    /// Something failed.
    Failed(Problem),
}

/// One line about kubelet's unit.
#[derive(Debug, Clone)]
pub(crate) enum KubeletEvent {
    /// The pause begins.
    Pausing { unit: String },
    /// The unit is stopped and masked.
    Paused {
        unit: String,
        timer: String,
        deadline: Duration,
    },
    /// The unit is paused since the interrupted window.
    StillPaused,
    /// No kubelet runs.
    NothingToPause,
    /// The unit has been paused for so long that it matters.
    PausedFor { seconds: u64, budget: Budget },
    /// kubelet stays paused for a repair.
    HeldForRepair,
    /// The resume begins.
    Resuming { unit: String },
    /// The unit runs.
    Resumed { unit: String },
}

impl From<KubeletEvent> for Event {
    fn from(event: KubeletEvent) -> Self {
        Self::Kubelet(event)
    }
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
