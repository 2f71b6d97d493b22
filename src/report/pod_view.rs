//! From facts to the views that every document has.

use super::{NodeView, PodView, State};
use crate::inventory::survey::{Lost, Surveyed};
use crate::model::{NodeIdentity, NodeState, PodSummary};

impl NodeView {
    /// The host, of which only the name is known.
    pub(crate) fn of(node: &NodeIdentity) -> Self {
        Self {
            hostname: node.hostname.clone(),
            ..Self::default()
        }
    }
}

impl PodView {
    /// A pod and what a command found or did.
    pub(crate) fn new(pod: PodSummary, state: State) -> Self {
        let PodSummary {
            info,
            netns,
            created,
            interfaces,
        } = pod;
        Self {
            info,
            netns,
            state,
            created,
            seen: None,
            interfaces,
            before: None,
            after: None,
            steps: Vec::new(),
            gateways: Vec::new(),
            checkpoint: None,
        }
    }

    /// The same, with the time at which a snapshot last verified its checkpoint.
    pub(crate) fn verified_in(mut self, node: Option<&NodeState>) -> Self {
        self.seen = node
            .and_then(|node| node.seen(&self.info.id))
            .map(str::to_owned);
        self
    }
}

impl Surveyed {
    /// The host, with the time at which its state was recorded.
    pub(crate) fn node_view(&self) -> NodeView {
        let recorded = self.node_state.as_ref();
        NodeView {
            created: recorded.map(|recorded| recorded.created.clone()),
            ..NodeView::of(&self.node)
        }
    }

    /// The pods of which nothing can be restored.
    pub(crate) fn lost_views(&self) -> Vec<PodView> {
        let view = |(pod, lost)| match lost {
            Lost::Unusable => PodView::new(pod, State::Failed),
            Lost::NoCheckpoint => PodView::new(pod, State::NoCheckpoint),
        };
        self.lost_pods().into_iter().map(view).collect()
    }
}
