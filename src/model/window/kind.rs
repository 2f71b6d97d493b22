//! What a record is about, beside a window of `upgrade` or `pause`.

use serde::{Deserialize, Serialize};

use super::Window;

/// What a window is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// A loss that no COMMAND caused, which `netfix guard` restores.
    Unplanned,
    /// A `netfix restore` outside of a window.
    Restore,
    /// A `netfix snapshot --accept`: its pods are those whose loss a person gave up.
    Accept,
}

impl Window {
    /// Whether `netfix guard` opened it.
    #[must_use]
    pub fn is_unplanned(&self) -> bool {
        self.kind == Some(WindowKind::Unplanned)
    }

    /// Whether it is a `netfix restore` outside of a window: nothing was asked before it, and nothing is after it.
    #[must_use]
    pub fn is_bare_restore(&self) -> bool {
        self.kind == Some(WindowKind::Restore)
    }

    /// Whether it is about losses that a person gave up.
    #[must_use]
    pub fn is_accept(&self) -> bool {
        self.kind == Some(WindowKind::Accept)
    }

    /// Whether it is no window: what a person did outside of one.
    pub(crate) fn is_outside(&self) -> bool {
        self.is_bare_restore() || self.is_accept()
    }
}
