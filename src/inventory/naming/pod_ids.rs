//! The ids of pods: each is used once.

use std::collections::BTreeSet;

use crate::model::{Bytes, PodId};

/// A pod's id is this many characters of its sandbox id.
const SHORT: usize = 12;

/// The ids in use.
#[derive(Debug, Default)]
pub(crate) struct Ids(BTreeSet<PodId>);

impl Ids {
    /// The beginning of a sandbox id, or the whole id where another pod's begins like that.
    pub fn of_sandbox(&mut self, sandbox: &str) -> PodId {
        let short: String = sandbox.chars().take(SHORT).collect();
        self.first_free(&[PodId::from_text(&short), PodId::from_text(sandbox)])
    }

    /// The id of a namespace without a sandbox: its mount's name, or its inode where it has none.
    pub fn of_namespace(&mut self, mount: Option<&Bytes>, inode: u64) -> PodId {
        match mount {
            Some(name) => self.keep(&PodId::from_bytes(name), inode),
            None => self.first_free(&[PodId::from_text(&format!("netns-{inode}"))]),
        }
    }

    /// The id that a namespace has, unless a sandbox has the same.
    pub fn keep(&mut self, id: &PodId, inode: u64) -> PodId {
        self.first_free(&[id.clone(), PodId::from_text(&format!("{inode}-{id}"))])
    }

    fn first_free(&mut self, wanted: &[PodId]) -> PodId {
        let numbered = (2..=u32::MAX).flat_map(|number| {
            wanted
                .iter()
                .map(move |id| PodId::from_text(&format!("{number}-{id}")))
        });
        let id = wanted
            .iter()
            .cloned()
            .chain(numbered)
            .find(|id| !self.0.contains(id))
            .unwrap_or_else(|| PodId::from_text(""));
        self.0.insert(id.clone());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sandboxes_that_begin_alike_get_two_ids() {
        let mut ids = Ids::default();
        assert_eq!(ids.of_sandbox("06c9b8d0a800ffff").as_str(), "06c9b8d0a800");
        assert_eq!(
            ids.of_sandbox("06c9b8d0a800eeee").as_str(),
            "06c9b8d0a800eeee"
        );
        assert_eq!(
            ids.of_sandbox("06c9b8d0a800eeee").as_str(),
            "2-06c9b8d0a800"
        );
    }

    #[test]
    fn a_mount_cannot_take_the_id_of_a_sandbox() {
        let mut ids = Ids::default();
        ids.of_sandbox("06c9b8d0a800ffff");
        assert_eq!(
            ids.of_namespace(Some(&"06c9b8d0a800".into()), 7).as_str(),
            "7-06c9b8d0a800"
        );
        let mut of = |name: &[u8]| ids.of_namespace(Some(&name.to_vec().into()), 8).to_string();
        assert_eq!(of(b"../x"), "_.._x");
        assert_eq!([of(b"b\xfcro"), of(b"b\xf6ro")], ["b_xfcro", "b_xf6ro"]);
        assert_eq!(ids.of_namespace(None, 9).as_str(), "netns-9");
    }
}
