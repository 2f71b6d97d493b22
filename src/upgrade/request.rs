//! The requests for a window and for its rollback.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::gateways::targets::VerifyTarget;
use crate::kubelet::unit::UnitToPause;
use crate::matching::Selection;
use crate::model::{ConflictProbe, IfName, ProbeRate};
use crate::plan::{IndexMode, NicMode};
use crate::runtime::RuntimeConfig;
use crate::upgrade::condition::DriverVersion;

/// The request for a window.
pub(crate) struct UpgradeRequest<'a> {
    pub selection: Selection,
    pub runtimes: RuntimeConfig,
    /// The devices of the host that COMMAND takes away; none: those that pods stand on.
    pub devices: Vec<IfName>,
    pub pause: UnitToPause<'a>,
    /// How long the unit may be paused.
    pub deadline: Duration,
    /// How long COMMAND and the rollback may run; by default until the restore has to begin.
    pub command_timeout: Option<Duration>,
    /// How long to wait for the NIC.
    pub wait: Duration,
    /// How long a network manager that owns a host link goes first.
    pub manager_grace: Duration,
    /// What the restore of one pod may cost, before the rest of its work waits for all others.
    pub pod_budget: Duration,
    /// How the restore probes an address before it adds it.
    pub conflict_probe: ConflictProbe,
    /// What becomes of settings of NICs.
    pub nic: NicMode,
    /// What becomes of the ifindexes of NICs.
    pub index: IndexMode,
    /// How many probes and announcements may leave in a second.
    pub probe_rate: Option<ProbeRate>,
    /// How long a gateway or target may take to answer.
    pub timeout: Duration,
    /// What each pod has to reach beyond its gateways.
    pub targets: Vec<VerifyTarget>,
    /// How long to watch that no pod is rebuilt.
    pub settle: Duration,
    /// How many snapshots to keep.
    pub keep: NonZeroUsize,
    /// Keep kubelet paused while a pod is not restored.
    pub keep_paused: bool,
    pub accepts: Accepts,
    /// Whether the restore is rehearsed before COMMAND runs.
    pub rehearse: bool,
    /// The size of the window's log, in bytes.
    pub log_limit: u64,
    pub command: &'a [String],
    /// For `sh -c`, before kubelet is paused.
    pub before: Option<&'a str>,
    /// For `sh -c`, when all is done.
    pub after: Option<&'a str>,
    /// The versions in which drivers are to run after COMMAND.
    pub drivers: &'a [DriverVersion],
    /// Whether the log is copied to stderr.
    pub echo: bool,
    pub rollback: Option<RollbackRequest<'a>>,
}

/// Over what a window may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accepts {
    /// Over nothing that stands against it.
    Nothing,
    /// Over pods that have lost their network already: it restores them (`--repair`).
    Lost,
    /// Over these, pods that cannot be restored and pods that are not selected (`--force`).
    Everything,
}

impl UpgradeRequest<'_> {
    /// Whether the window begins over what netfix cannot restore.
    pub(crate) fn is_forced(&self) -> bool {
        self.accepts == Accepts::Everything
    }

    /// Whether it restores what was lost before it.
    pub(crate) fn restores_lost(&self) -> bool {
        self.accepts != Accepts::Nothing
    }
}

/// The request for a rollback.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RollbackRequest<'a> {
    /// For `sh -c`.
    pub command: &'a str,
    /// So many pods may be lost without a rollback.
    pub max_lost: usize,
}
