//! What went wrong: a stable code, the pod and object concerned, and the cause as typed data.
//!
//! A cause is made where the fact is found. Its sentence is written in `report/messages`, once.

mod cause;
mod object;

use std::fmt;

use serde::{Deserialize, Serialize};

use super::text::escape;
use super::window::LoggedCause;
use super::{IfName, PodId};

pub use cause::*;
pub use object::Object;

/// The stable word for one sort of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the words are explained in docs/reference/problems.md
pub enum Code {
    AddressConflict,
    AlreadyDone,
    CheckpointCorrupt,
    CheckpointMissing,
    CheckpointStale,
    CommandFailed,
    CutOff,
    Degraded,
    DeviceRenamed,
    Drift,
    DriverReload,
    DriverVersion,
    Failed,
    FromCniCache,
    FromGeneration,
    GatewayUnknown,
    GatewayUnreachable,
    GuardStopped,
    IfindexDiffers,
    IfindexNamed,
    Interrupted,
    KernelLog,
    KubeletNotPaused,
    KubeletNotResumed,
    Leased,
    LeftToDaemon,
    LinkConflict,
    LinkDeleted,
    LockHeld,
    LossRepeats,
    MacConflict,
    ManagedLink,
    ManagerUnreachable,
    NetnsGone,
    NetnsReplaced,
    NoCarrier,
    NoSpace,
    NotAdvertised,
    NotFound,
    NotRehearsed,
    NotSelected,
    NotTheHost,
    OtherBoot,
    OtherMachine,
    ParentMissing,
    PartialSource,
    PermissionDenied,
    PodBudget,
    PodGone,
    PodRebuilt,
    PodReplaced,
    PodRestarted,
    ProbeRate,
    RehearsalDiffers,
    RolledBack,
    RuntimeUnreachable,
    SettingDiffers,
    SettingRefused,
    SettingUnknown,
    SocketLost,
    SriovOperator,
    Surplus,
    SystemdUnreachable,
    TargetUnreachable,
    UdevPending,
    Unreadable,
    Unsupported,
    Unwritable,
    UplinkLost,
    WindowOpen,
}

impl Code {
    /// Whether it names what a window takes from pods and host while its COMMAND reloads the driver.
    pub(crate) fn is_of_a_window(self) -> bool {
        matches!(
            self,
            Self::Degraded
                | Self::Drift
                | Self::IfindexNamed
                | Self::NoCarrier
                | Self::ParentMissing
                | Self::UplinkLost
        )
    }
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; nothing is missing.
    Info,
    /// Something differs from the checkpoint and is left as it is.
    Warning,
    /// The pod or the command failed.
    Error,
}

/// One problem, with the pod and the object that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", from = "Written")]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The pod, or `None` for the host or the command itself.
    pub pod: Option<PodId>,
    /// What it is about.
    pub object: Object,
    /// What is wrong.
    pub cause: Box<Cause>,
    /// The cause that the kernel's log names for it.
    pub because: Option<LoggedCause>,
}

/// The form of a problem in JSON documents and window records.
#[derive(Serialize, Deserialize)]
struct Written {
    code: Code,
    severity: Severity,
    pod: Option<PodId>,
    object: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    because: Option<LoggedCause>,
}

impl From<Problem> for Written {
    fn from(problem: Problem) -> Self {
        Self {
            code: problem.code(),
            message: problem.message(),
            severity: problem.severity,
            pod: problem.pod,
            object: problem.object.to_string(),
            because: problem.because,
        }
    }
}

impl From<Written> for Problem {
    fn from(written: Written) -> Self {
        Self {
            pod: written.pod,
            because: written.because,
            ..Self::recorded(
                written.severity,
                written.code,
                &written.object,
                &written.message,
            )
        }
    }
}

impl Problem {
    /// A problem of the command or the host.
    pub(crate) fn new(
        severity: Severity,
        object: impl Into<Object>,
        cause: impl Into<Cause>,
    ) -> Self {
        Self {
            severity,
            pod: None,
            object: object.into(),
            cause: Box::new(cause.into()),
            because: None,
        }
    }

    /// A problem as a record has it.
    #[must_use]
    pub fn recorded(severity: Severity, code: Code, object: &str, message: &str) -> Self {
        let message = message.to_owned();
        Self::new(severity, object, Cause::Recorded { code, message })
    }

    /// The stable word.
    #[must_use]
    pub fn code(&self) -> Code {
        self.cause.code()
    }

    /// The sentence for people, with the errno where the kernel gave one.
    pub(crate) fn message(&self) -> String {
        self.cause.to_string()
    }

    /// The problem as a warning, if it was an error.
    pub(crate) fn demoted(self) -> Self {
        Self {
            severity: self.severity.min(Severity::Warning),
            ..self
        }
    }

    /// The problem as an error.
    pub(crate) fn into_error(self) -> Self {
        Self {
            severity: Severity::Error,
            ..self
        }
    }

    /// Whether the host's recorded state could not be read.
    pub(crate) fn hides_host_record(&self) -> bool {
        match &*self.cause {
            Cause::Store(
                StoreCause::Corrupt { effect, .. } | StoreCause::CannotRead { effect, .. },
            ) => matches!(
                effect,
                Some(StoreEffect::HostUnknown | StoreEffect::HostOfGeneration)
            ),
            _ => false,
        }
    }

    /// Whether pods or their records could not be read: a count of pods is too small then.
    pub(crate) fn hides_pods(&self) -> bool {
        let is_unread = match &*self.cause {
            Cause::Store(
                StoreCause::Corrupt { effect, .. } | StoreCause::CannotRead { effect, .. },
            ) => effect.is_none(),
            Cause::Inventory(cause) => matches!(
                cause,
                InventoryCause::CannotObserve { .. }
                    | InventoryCause::NetnsHidden
                    | InventoryCause::Unseen { .. }
                    | InventoryCause::MountsUnread { .. }
                    | InventoryCause::CannotOpenNetns { .. }
                    | InventoryCause::CannotEnterNetns { .. }
                    | InventoryCause::SandboxNotFound { .. }
            ),
            _ => false,
        };
        is_unread && self.is_error()
    }

    /// The device of the host that is missing by it.
    pub(crate) fn missing_device(&self) -> Option<&IfName> {
        let is_missing = matches!(*self.cause, Cause::Plan(PlanCause::DeviceMissing { .. }));
        let device = self.object.device();
        device.filter(|_| is_missing && self.pod.is_none())
    }

    /// Whether the pod or the command failed by it.
    pub(crate) fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The problem as one of that pod.
    #[must_use]
    pub fn of(mut self, pod: &PodId) -> Self {
        self.pod = Some(pod.clone());
        self
    }

    /// The problem in one line, with the pod's name where that is known. Safe for terminals and logs.
    pub(crate) fn line(&self, title: Option<&str>) -> String {
        let pod = match (&self.pod, title) {
            (None, _) => String::new(),
            (Some(id), Some(title)) if title != id.as_str() => format!("pod {title} ({id}): "),
            (Some(id), _) => format!("pod {id}: "),
        };
        let object = match escape(&self.object.text()) {
            object if object.is_empty() => object,
            object => format!("{object}: "),
        };
        format!("{}: {pod}{object}{}", self.code(), escape(&self.message()))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(None))
    }
}
