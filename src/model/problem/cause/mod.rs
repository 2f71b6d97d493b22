//! Every cause of a problem, by the part of netfix that finds it.

mod drivers;
mod files;
mod maintenance;
mod network;
mod pods;

use super::{Code, Object, Problem, Severity};

pub use drivers::{DriverCause, FullFilters};
pub use files::{
    CheckCause, Elsewhere, FleetCause, RehearsalCause, SnapshotCause, StoreCause, StoreEffect,
    Unrehearsed, UsageCause,
};
pub use maintenance::{
    AlreadyLost, CommandCause, ConditionCause, DetachedCause, GuardCause, HookCause, JobEnd,
    KubeletCause, LogCause, RebuildCause, RecordCause, RollbackCause, SystemdCause, WindowCause,
};
pub use network::{
    ClaimHolder, ConflictCause, GatewayCause, KeptIndex, LostObjects, Others, PlanCause,
    RestoreCause, SocketCause, Title,
};
pub use pods::{ForeignCause, InventoryCause, MatchingCause, NoNetns, PartialCause};

/// Defines the causes of one part of netfix, each with its code: `Variant { field: Type } => Code,`. Its sentence, which
/// defines it, is in `report/messages`.
macro_rules! causes {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $({ $($field:ident: $type:ty),* $(,)? })? => $code:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the sentences in report/messages define each")]
        pub enum $name {
            $($variant $({ $($field: $type),* })?,)*
        }

        impl $name {
            /// The stable word.
            #[must_use]
            pub fn code(&self) -> $crate::model::Code {
                match *self {
                    $(Self::$variant $({ $($field: _),* })? => $crate::model::Code::$code,)*
                }
            }
        }
    };
}
use causes;

macro_rules! areas {
    ($($variant:ident($area:ident),)*) => {
        /// What is wrong.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs, reason = "named after the parts of netfix")]
        pub enum Cause {
            $($variant($area),)*
            /// Read from a record that an earlier netfix wrote.
            Recorded { code: Code, message: String },
        }

        impl Cause {
            /// The stable word.
            #[must_use]
            pub fn code(&self) -> Code {
                match self {
                    $(Self::$variant(cause) => cause.code(),)*
                    Self::Recorded { code, message: _ } => *code,
                }
            }
        }

        $(impl From<$area> for Cause {
            fn from(cause: $area) -> Self {
                Self::$variant(cause)
            }
        }

        impl $area {
            /// The pod or the command failed by it.
            #[must_use]
            pub fn error(self, object: impl Into<Object>) -> Problem {
                Problem::new(Severity::Error, object, self)
            }

            /// Something differs and is left as it is.
            #[must_use]
            pub fn warning(self, object: impl Into<Object>) -> Problem {
                Problem::new(Severity::Warning, object, self)
            }

            /// Worth knowing; nothing is missing.
            #[must_use]
            pub fn info(self, object: impl Into<Object>) -> Problem {
                Problem::new(Severity::Info, object, self)
            }
        })*
    };
}

areas! {
    Inventory(InventoryCause),
    Store(StoreCause),
    Matching(MatchingCause),
    Foreign(ForeignCause),
    Plan(PlanCause),
    Conflict(ConflictCause),
    Partial(PartialCause),
    Restore(RestoreCause),
    Snapshot(SnapshotCause),
    Check(CheckCause),
    Rehearsal(RehearsalCause),
    Socket(SocketCause),
    Driver(DriverCause),
    Gateway(GatewayCause),
    Window(WindowCause),
    Log(LogCause),
    Guard(GuardCause),
    Detached(DetachedCause),
    Record(RecordCause),
    Command(CommandCause),
    Condition(ConditionCause),
    Hook(HookCause),
    Rollback(RollbackCause),
    Systemd(SystemdCause),
    Kubelet(KubeletCause),
    Rebuild(RebuildCause),
    Usage(UsageCause),
    Fleet(FleetCause),
}
