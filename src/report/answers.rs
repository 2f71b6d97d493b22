//! From the facts of an engine to its document, but for the exit code.

use super::{CheckView, Document, Extra, KeptView, NodeView, PodView, State};
use crate::check::{CheckState, Checked, CheckedPod};
use crate::gateways::{Reachability, Verified, VerifiedPod};
use crate::inventory::matched::Matched;
use crate::inventory::survey::{Lost, Surveyed};
use crate::model::{NodeIdentity, NodeState, PodSummary, Problem};
use crate::refusal::Refusal;
use crate::restore::compare::{Compared, Comparison};
use crate::restore::{RestoreState, Restored, RestoredPod};
use crate::snapshot::{PodSnapshot, Snapshot, SnapshotState};

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

/// The answer, but for its exit code.
pub(crate) fn drift(surveyed: &Surveyed, comparison: Comparison, notes: Vec<Problem>) -> Document {
    let mut node = surveyed.node_view();
    let mut problems = surveyed.all_problems();
    node.steps = comparison.host.lines();
    problems.extend(comparison.host.problems);
    let mut pods = surveyed.lost_views();
    for (matched, compared) in surveyed.matched.iter().zip(comparison.pods) {
        let (view, found) = pod(matched, compared);
        pods.push(view);
        problems.extend(
            found
                .into_iter()
                .map(|problem| problem.of(&matched.info.id)),
        );
    }
    problems.extend(notes);
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    Document {
        node,
        pods,
        problems,
        ..Document::default()
    }
}

fn pod(matched: &Matched, compared: Result<Compared, Problem>) -> (PodView, Vec<Problem>) {
    let summary = matched.summary();
    match compared {
        Ok(compared) => {
            let state = if compared.has_drift() {
                State::Drifted
            } else {
                State::InSync
            };
            let mut view = PodView::new(summary, state);
            view.steps = compared.plan.lines();
            (view, compared.plan.problems)
        }
        Err(problem) => (PodView::new(summary, State::Failed), vec![problem]),
    }
}
