//! The figures of a rehearsal.

use serde::{Deserialize, Serialize};

/// The restore of the pods in a twin of the node, before anything was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsal {
    /// Pods that come back identical, or differ.
    pub pods: usize,
    /// How many of them come back identical.
    pub identical: usize,
    /// How many come back identical but for what a restore leaves to daemons.
    #[serde(default)]
    pub but_for_daemons: usize,
    /// All other pods that lose something with the host's devices: not rehearsed, or only in part.
    pub unproven: usize,
    /// Whether the links of the host were rehearsed.
    pub host: bool,
    /// How long the restore of the twin took, in milliseconds.
    pub restore_ms: u64,
    /// How long the last pod waits until its addresses are probed, by the settings of the window, in milliseconds.
    #[serde(default)]
    pub probe_ms: u64,
    /// How long the network was away in an earlier window with this COMMAND: from the first loss of a pod until COMMAND had ended, in
    /// milliseconds; null where none is known.
    #[serde(default)]
    pub reload_ms: Option<u64>,
    /// How long the whole rehearsal took, in milliseconds.
    pub took_ms: u64,
}
