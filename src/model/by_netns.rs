//! The stored checkpoints by the namespace that they may describe: there may be a thousand, and as many pods.

use std::collections::{BTreeMap, HashMap};

use crate::model::identity::NetnsSign;
use crate::model::{Checkpoint, NetnsIdentity, PodId};
use crate::store;

/// The ids of checkpoints.
#[derive(Debug, Default)]
pub(super) struct ByNetns(HashMap<NetnsSign, Vec<PodId>>);

impl ByNetns {
    pub(super) fn new(stored: &BTreeMap<PodId, Result<Checkpoint, store::Error>>) -> Self {
        let mut ids: HashMap<_, Vec<_>> = HashMap::new();
        for (id, checkpoint) in stored {
            let extension = checkpoint.as_ref().ok().and_then(|one| one.netfix.as_ref());
            for sign in extension.into_iter().flat_map(|one| one.identity.signs()) {
                ids.entry(sign).or_default().push(id.clone());
            }
        }
        Self(ids)
    }

    /// Those that may describe this namespace; some of them twice.
    pub(super) fn candidates(&self, identity: &NetnsIdentity) -> impl Iterator<Item = &PodId> {
        let ids = identity.signs().filter_map(|sign| self.0.get(&sign));
        ids.flatten()
    }
}
