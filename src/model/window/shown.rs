//! What the answers of gateways and targets have shown of a network.

use serde::{Deserialize, Serialize};

/// Whether a pod or the host has shown again that its packets arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shown {
    /// Something answers, and all that answered before COMMAND.
    Again,
    /// Nothing answered before COMMAND, or there is nothing to probe.
    Never,
    /// Something that answered before COMMAND is silent.
    NotAgain,
    /// Something that answered before COMMAND cannot be probed.
    Unknown,
}
