//! Namespaces that had no interface at a snapshot, and what shows of such a namespace that it should have one.

use serde::{Deserialize, Serialize};

use crate::model::{NetnsIdentity, is_false};

/// So long a namespace must have been without an interface, in milliseconds: one that is being set up gets its interface earlier.
const SETTLED: u64 = 300_000;

/// A namespace without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyNetns {
    /// Which one.
    #[serde(flatten)]
    pub identity: NetnsIdentity,
    /// When the first of the snapshots that found it so was taken, in milliseconds since the machine's boot (`CLOCK_BOOTTIME`);
    /// `None` in a file of an older netfix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// When the last one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<u64>,
    /// Whether a person gave up what it had (`snapshot --accept`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub accepted: bool,
}

impl EmptyNetns {
    /// A namespace that was seen without an interface right before a loss: it lost nothing, unless there is evidence.
    pub(crate) fn before_loss(identity: NetnsIdentity) -> Self {
        Self {
            identity,
            since: Some(0),
            seen: Some(SETTLED),
            accepted: false,
        }
    }

    /// Whether it was long enough without an interface, or a person said that this is right.
    fn is_settled(&self) -> bool {
        let both = self.since.zip(self.seen);
        let is_long = both.is_some_and(|(since, seen)| seen.saturating_sub(since) >= SETTLED);
        self.accepted || is_long
    }
}

/// What shows that a namespace without an interface should have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// A runtime reports it as a pod or container with a network of its own.
    Runtime,
    /// libcni's cache has a result for it.
    CniCache,
    /// A link of it once had its other end or its parent in the host's namespace: then the kernel gave that one an id in it.
    HostId,
    /// The kernel has counted packets that did not come from its loopback device.
    Packets,
    /// It has a checkpoint, which is damaged.
    Checkpoint,
}

/// Whether a namespace without an interface needs none, by the record of earlier snapshots.
pub(crate) fn needs_none(record: Option<&EmptyNetns>, evidence: Option<Evidence>) -> bool {
    record.is_some_and(|known| known.accepted || (known.is_settled() && evidence.is_none()))
}
