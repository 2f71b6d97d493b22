//! What the state directory holds when a snapshot begins.

use std::collections::BTreeMap;

use crate::model::checkpoint::Extension;
use crate::model::pod::by_netns::ByNetns;
use crate::model::{
    Checkpoint, NetnsIdentity, NodeIdentity, NodeState, PodId, PodInfo, Problem, StackLink,
};

/// The present files: not those of the generations.
#[derive(Debug)]
pub(crate) struct Archive {
    /// The checkpoints by the names of their files, or why one cannot be read.
    checkpoints: BTreeMap<PodId, Result<Checkpoint, Problem>>,
    /// The host's state, if it was recorded in this boot of this machine.
    pub node: Option<NodeState>,
    by_netns: ByNetns<PodId>,
}

impl Archive {
    pub(crate) fn new(
        checkpoints: BTreeMap<PodId, Result<Checkpoint, Problem>>,
        node: Option<NodeState>,
    ) -> Self {
        let with_netns = checkpoints.iter().filter_map(|(id, checkpoint)| {
            let extension = checkpoint.as_ref().ok()?.netfix.as_ref()?;
            Some((&extension.identity, id.clone()))
        });
        Self {
            by_netns: ByNetns::new(with_netns),
            checkpoints,
            node,
        }
    }

    /// The file of this name.
    pub(crate) fn get(&self, id: &PodId) -> Option<&Result<Checkpoint, Problem>> {
        self.checkpoints.get(id)
    }

    pub(crate) fn has(&self, id: &PodId) -> bool {
        self.checkpoints.contains_key(id)
    }

    /// Every checkpoint that can be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = (&PodId, &Checkpoint)> {
        let all = self.checkpoints.iter();
        all.filter_map(|(id, checkpoint)| Some((id, checkpoint.as_ref().ok()?)))
    }

    /// All checkpoints of this namespace; one of them may come twice.
    pub(crate) fn about(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        info: &PodInfo,
    ) -> impl Iterator<Item = (&PodId, &Extension)> {
        let candidates = self.by_netns.candidates(identity);
        let own = candidates.filter_map(|id| {
            let checkpoint = self.checkpoints.get(id)?.as_ref().ok()?;
            Some((id, checkpoint.netfix.as_ref()?))
        });
        own.filter(|(_, extension)| extension.is_about(node, identity, info))
    }

    /// The best checkpoint of this namespace: the newest, and of the same second the one with a sandbox.
    pub(crate) fn best_about(
        &self,
        node: &NodeIdentity,
        identity: &NetnsIdentity,
        info: &PodInfo,
    ) -> Option<&Extension> {
        let about = self.about(node, identity, info);
        let (_, best) = about.max_by_key(|(_, own)| (&own.created, own.pod.sandbox.is_some()))?;
        Some(best)
    }

    /// The host's links under every checkpoint of this boot, with the checkpoint's name.
    pub(crate) fn stacks(&self, node: &NodeIdentity) -> impl Iterator<Item = (&PodId, &StackLink)> {
        let own = self
            .readable()
            .filter_map(|(id, checkpoint)| Some((id, checkpoint.netfix.as_ref()?)));
        own.filter(|(_, extension)| extension.node.is_same(node))
            .flat_map(|(id, extension)| extension.stack.iter().map(move |link| (id, link)))
    }
}
