//! The answer of `check`.

use super::{CheckView, Document, NodeView, PodView, State};
use crate::check::{CheckState, Checked, CheckedPod};
use crate::refusal::Refusal;

/// Every state that a running pod can have.
const STATES: [State; 7] = [
    State::InSync,
    State::Stale,
    State::Drifted,
    State::Degraded,
    State::NoCheckpoint,
    State::Empty,
    State::Failed,
];

/// The answer and its figures, but for the verdict.
pub(crate) fn check(checked: Result<Checked, Refusal>) -> (Document, CheckView) {
    let mut view = CheckView {
        pods: STATES.into_iter().map(|state| (state, 0)).collect(),
        ..CheckView::default()
    };
    let checked = match checked {
        Ok(checked) => checked,
        Err(refusal) => return (refusal.into(), view),
    };
    let of_pods = checked.pods.iter().map(|one| one.steps.len());
    view.steps = checked.host.len() + of_pods.sum::<usize>();
    view.oldest_age = checked.oldest_age;
    view.last_success = checked.last_success;
    view.pods.insert(State::Empty, checked.empty);
    for one in &checked.pods {
        *view.pods.entry(one.state.into()).or_default() += 1;
    }
    let answer = Document {
        node: NodeView {
            created: checked.recorded,
            steps: checked.host,
            ..NodeView::of(&checked.node)
        },
        pods: checked.pods.into_iter().map(PodView::from).collect(),
        problems: checked.problems,
        ..Document::default()
    };
    (answer, view)
}

impl From<CheckedPod> for PodView {
    fn from(one: CheckedPod) -> Self {
        Self {
            steps: one.steps,
            ..Self::new(one.pod, one.state.into())
        }
    }
}

impl From<CheckState> for State {
    fn from(state: CheckState) -> Self {
        match state {
            CheckState::InSync => Self::InSync,
            CheckState::Stale => Self::Stale,
            CheckState::Drifted => Self::Drifted,
            CheckState::Degraded => Self::Degraded,
            CheckState::NoCheckpoint => Self::NoCheckpoint,
            CheckState::Failed => Self::Failed,
        }
    }
}
