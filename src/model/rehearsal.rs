//! The figures of a rehearsal.

use serde::{Deserialize, Serialize};

/// The restore of the pods in a twin of the node, before anything was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// Pods that were rehearsed.
    pub pods: usize,
    /// How many of them come back identical.
    pub identical: usize,
    /// Pods that could not be rehearsed, or only in part.
    pub unproven: usize,
    /// Whether the links of the host were rehearsed.
    pub host: bool,
    /// How long the restore of the twin took, in milliseconds.
    pub restore_ms: u64,
    /// How long the whole rehearsal took, in milliseconds.
    pub took_ms: u64,
}
