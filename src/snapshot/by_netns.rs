//! The stored checkpoints by the namespace that they may describe: there may be a thousand, and as many pods.

use std::collections::{BTreeMap, HashMap};

use crate::model::{Checkpoint, NetnsIdentity, PodId};
use crate::store;

/// Two identities that may be of one namespace have one of these in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Cookie(u64),
    Inode(u64),
}

fn keys(identity: &NetnsIdentity) -> impl Iterator<Item = Key> {
    let cookie = identity.cookie.map(Key::Cookie);
    cookie.into_iter().chain([Key::Inode(identity.inode)])
}

/// The ids of checkpoints.
#[derive(Debug, Default)]
pub(super) struct ByNetns(HashMap<Key, Vec<PodId>>);

impl ByNetns {
    pub(super) fn new(stored: &BTreeMap<PodId, Result<Checkpoint, store::Error>>) -> Self {
        let mut ids: HashMap<_, Vec<_>> = HashMap::new();
        for (id, checkpoint) in stored {
            let extension = checkpoint.as_ref().ok().and_then(|one| one.netfix.as_ref());
            for key in extension.into_iter().flat_map(|one| keys(&one.identity)) {
                ids.entry(key).or_default().push(id.clone());
            }
        }
        Self(ids)
    }

    /// Those that may describe this namespace; some of them twice.
    pub(super) fn candidates(&self, identity: &NetnsIdentity) -> impl Iterator<Item = &PodId> {
        let ids = keys(identity).filter_map(|key| self.0.get(&key));
        ids.flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(cookie: Option<u64>, inode: u64) -> NetnsIdentity {
        NetnsIdentity {
            cookie,
            device: 4,
            inode,
            made: None,
            holder: None,
        }
    }

    #[test]
    fn identities_that_may_be_of_one_namespace_have_a_key_in_common() {
        let all = [
            (None, 1),
            (Some(5), 1),
            (Some(5), 2),
            (Some(6), 2),
            (None, 2),
        ];
        let all = all.map(|(cookie, inode)| identity(cookie, inode));
        for one in &all {
            for other in &all {
                let is_found = keys(one).any(|key| keys(other).any(|other| key == other));
                assert!(is_found || !one.may_be(other), "{one:?} {other:?}");
            }
        }
    }
}
