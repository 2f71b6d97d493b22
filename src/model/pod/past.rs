//! What the generations of the state directory have.

use std::collections::BTreeMap;

use crate::model::{Checkpoint, PodId};

/// What a generation has.
#[derive(Debug, Default)]
pub(crate) struct PastFiles {
    /// The generation's number.
    pub number: u64,
    /// The checkpoints that can be read, and that no newer generation has.
    pub checkpoints: BTreeMap<PodId, Checkpoint>,
    /// When the host's state was read (RFC 3339, UTC).
    pub node: Option<String>,
}

impl PastFiles {
    /// The newest of these generations, which are newest first, that has the checkpoint of this name that was written then.
    pub(crate) fn newest_with(past: &[Self], id: &PodId, created: &str) -> Option<u64> {
        let has_it = |one: &&Self| {
            let own = one.checkpoints.get(id).and_then(|one| one.netfix.as_ref());
            own.is_some_and(|own| own.created == created)
        };
        past.iter().find(has_it).map(|one| one.number)
    }

    /// The newest of these generations that has the host's state that was read then.
    pub(crate) fn newest_with_node(past: &[Self], created: &str) -> Option<u64> {
        let has_it = |one: &&Self| one.node.as_deref() == Some(created);
        past.iter().find(has_it).map(|one| one.number)
    }
}
