//! The answer of `verify`.

use super::{Document, NodeView, PodView, State};
use crate::gateways::{Reachability, Verified, VerifiedPod};

/// The answer, but for its exit code.
pub(crate) fn verify(verified: Verified) -> Document {
    Document {
        node: NodeView::of(&verified.node),
        pods: verified.pods.into_iter().map(PodView::from).collect(),
        problems: verified.problems,
        ..Document::default()
    }
}

impl From<VerifiedPod> for PodView {
    fn from(one: VerifiedPod) -> Self {
        Self {
            gateways: one.gateways,
            ..Self::new(one.pod, one.state.into())
        }
    }
}

impl From<Reachability> for State {
    fn from(state: Reachability) -> Self {
        match state {
            Reachability::NoGateway => Self::NoGateway,
            Reachability::Reachable => Self::Reachable,
            Reachability::Unknown => Self::Unknown,
            Reachability::Unreachable => Self::Unreachable,
            Reachability::NoCheckpoint => Self::NoCheckpoint,
            Reachability::Failed => Self::Failed,
        }
    }
}
