//! The answer of `restore`.

use super::{Document, NodeView, PodView, State};
use crate::restore::{RestoreState, Restored, RestoredPod};

/// The answer, but for its exit code.
pub(crate) fn restore(restored: Restored) -> Document {
    let mut node = NodeView {
        created: restored.recorded,
        ..NodeView::of(&restored.node)
    };
    if let Some((done, state)) = restored.host {
        node.steps = done.iter().map(ToString::to_string).collect();
        node.state = Some(state.into());
    }
    Document {
        node,
        pods: restored.pods.into_iter().map(PodView::from).collect(),
        problems: restored.problems,
        ..Document::default()
    }
}

impl From<RestoredPod> for PodView {
    fn from(restored: RestoredPod) -> Self {
        Self {
            before: restored.before,
            after: restored.after,
            steps: restored.done.iter().map(ToString::to_string).collect(),
            ..Self::new(restored.pod, restored.state.into())
        }
    }
}

impl From<RestoreState> for State {
    fn from(state: RestoreState) -> Self {
        match state {
            RestoreState::InSync => Self::InSync,
            RestoreState::Restored => Self::Restored,
            RestoreState::Partial => Self::Partial,
            RestoreState::Failed => Self::Failed,
            RestoreState::NoCheckpoint => Self::NoCheckpoint,
        }
    }
}
