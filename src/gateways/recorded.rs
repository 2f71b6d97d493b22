//! The recorded states of the pods, by namespace.

use crate::inventory::observe::Pod;
use crate::model::checkpoint::Extension;
use crate::model::pod::by_netns::ByNetns;
use crate::model::{Checkpoint, NodeIdentity, PodInfo};

/// What netfix recorded of pods.
pub(super) struct Recorded<'a> {
    extensions: Vec<&'a Extension>,
    by_netns: ByNetns<usize>,
}

impl<'a> Recorded<'a> {
    pub(super) fn of(checkpoints: &'a [(PodInfo, Checkpoint)]) -> Self {
        let extensions: Vec<&Extension> = checkpoints
            .iter()
            .filter_map(|(_, checkpoint)| checkpoint.netfix.as_ref())
            .collect();
        let identities = extensions.iter().enumerate();
        Self {
            by_netns: ByNetns::new(identities.map(|(at, one)| (&one.identity, at))),
            extensions,
        }
    }

    /// Whether one may describe this pod.
    pub(super) fn has(&self, pod: &Pod) -> bool {
        let mut candidates = self.candidates(pod);
        candidates.any(|(_, one)| one.identity.may_be(&pod.identity))
    }

    /// The newest that surely describes this pod.
    pub(super) fn about(&self, node: &NodeIdentity, pod: &Pod) -> Option<&'a Extension> {
        let about = self
            .candidates(pod)
            .filter(|(_, one)| one.is_about(node, &pod.identity, &pod.info));
        // Of two from the same second, the later one in the list.
        let newest = about.max_by_key(|(at, one)| (one.stamp().order(), *at));
        newest.map(|(_, one)| one)
    }

    fn candidates(&self, pod: &Pod) -> impl Iterator<Item = (usize, &'a Extension)> {
        let candidates = self.by_netns.candidates(&pod.identity);
        candidates.map(|at| (*at, self.extensions[*at]))
    }
}
