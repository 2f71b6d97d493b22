//! Namespaces that had no interface at a snapshot, and what shows of such a namespace that it should have one.

use serde::{Deserialize, Serialize};

use crate::model::{NetnsIdentity, is_false};

/// A namespace without an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmptyNetns {
    /// Which one.
    #[serde(flatten)]
    pub identity: NetnsIdentity,
    /// Whether a person gave up what it had (`snapshot --accept`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub accepted: bool,
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

/// Whether a namespace without an interface needs none: an earlier snapshot found it so, and nothing shows that it had one since.
pub(crate) fn needs_none(record: Option<&EmptyNetns>, evidence: Option<Evidence>) -> bool {
    record.is_some_and(|known| known.accepted || evidence.is_none())
}
