//! The answer of `snapshot`.

use super::{Document, Extra, KeptView, NodeView, PodView, State};
use crate::snapshot::{PodSnapshot, Snapshot, SnapshotState};

/// The answer, but for its exit code.
pub(crate) fn snapshot(snapshot: Snapshot) -> Document {
    let kept = KeptView {
        generation: snapshot.generations.made,
        same_as: snapshot.generations.same_as,
        removed: snapshot.generations.removed,
    };
    Document {
        node: NodeView {
            created: snapshot.recorded,
            ..NodeView::of(&snapshot.node)
        },
        pods: snapshot.pods.into_iter().map(PodView::from).collect(),
        problems: snapshot.problems,
        extra: Some(Extra::Kept(kept)),
        ..Document::default()
    }
}

impl From<PodSnapshot> for PodView {
    fn from(one: PodSnapshot) -> Self {
        Self {
            seen: one.seen,
            ..Self::new(one.pod, one.state.into())
        }
    }
}

impl From<SnapshotState> for State {
    fn from(state: SnapshotState) -> Self {
        match state {
            SnapshotState::Saved => Self::Saved,
            SnapshotState::Unchanged => Self::Unchanged,
            SnapshotState::Degraded => Self::Degraded,
            SnapshotState::Empty => Self::Empty,
            SnapshotState::Failed => Self::Failed,
        }
    }
}
