//! What went wrong, in words that scripts can rely on.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PodId;

/// The stable word for one sort of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the words are explained in docs/problems.md
pub enum Code {
    AddressConflict,
    CheckpointCorrupt,
    CheckpointMissing,
    CheckpointStale,
    CommandFailed,
    Degraded,
    DeviceRenamed,
    Drift,
    Failed,
    GatewayUnreachable,
    IfindexDiffers,
    Interrupted,
    KubeletNotPaused,
    KubeletNotResumed,
    LinkConflict,
    LockHeld,
    MacConflict,
    NetnsGone,
    NetnsReplaced,
    NoCarrier,
    NoSpace,
    NotFound,
    OtherBoot,
    OtherMachine,
    ParentMissing,
    PartialSource,
    PermissionDenied,
    PodRebuilt,
    PodReplaced,
    RuntimeUnreachable,
    Surplus,
    SystemdUnreachable,
    Unreadable,
    Unsupported,
    Unwritable,
    WindowOpen,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        f.pad(word.as_str().unwrap_or_default())
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

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// One problem, with the pod and the object that it concerns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The stable word.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The pod, or `None` for the host or the command itself.
    pub pod: Option<PodId>,
    /// What it is about: a link, an address, a file.
    pub object: String,
    /// A sentence for people, with the errno where the kernel gave one.
    pub message: String,
}

impl Problem {
    /// An error of the command or the host.
    #[must_use]
    pub fn error(code: Code, object: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, severity: Severity::Error, pod: None, object: object.into(), message: message.into() }
    }

    /// The same problem, as a warning.
    #[must_use]
    pub fn warning(code: Code, object: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(code, object, message) }
    }

    /// The same, as something that is only worth knowing.
    #[must_use]
    pub fn info(code: Code, object: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Info, ..Self::error(code, object, message) }
    }

    /// The same problem, no worse than a warning.
    #[must_use]
    pub fn demoted(self) -> Self {
        Self { severity: self.severity.min(Severity::Warning), ..self }
    }

    /// Whether the pod or the command failed by it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The same problem, of that pod.
    #[must_use]
    pub fn of(mut self, pod: &PodId) -> Self {
        self.pod = Some(pod.clone());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        if let Some(pod) = &self.pod {
            write!(f, "pod {pod}: ")?;
        }
        if !self.object.is_empty() {
            write!(f, "{}: ", self.object)?;
        }
        f.write_str(&self.message)
    }
}
