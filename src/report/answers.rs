//! From the facts of an engine to its document, but for the exit code.

use super::{CheckView, Document, Extra, NodeView, PodView, ReportView, Standing, State};
use crate::check::{CheckState, CheckedPod, Readiness};
use crate::gateways::{Reachability, Verified, VerifiedPod};
use crate::model::{Code, NodeIdentity, NodeState, PodSummary, Problem};
use crate::plan::{PodVerdict, Step};
use crate::records::matched::Matched;
use crate::records::survey::{Lost, Surveyed};
use crate::refusal::Refusal;
use crate::restore::compare::{Compared, Comparison};
use crate::restore::{RestoreState, Restored, RestoredPod};
use crate::snapshot::{PodSnapshot, Snapshot, SnapshotState};
use crate::upgrade::run::Upgraded;

impl NodeView {
    /// The host, of which only the name is known.
    pub(crate) fn of(node: &NodeIdentity) -> Self {
        Self {
            hostname: node.hostname.clone(),
            ..Self::default()
        }
    }

    /// The same, with the time at which the host's state was recorded.
    pub(crate) fn recorded(node: &NodeIdentity, created: Option<String>) -> Self {
        Self {
            created,
            ..Self::of(node)
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
            targets: Vec::new(),
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

impl Document {
    /// A node, its pods and the problems.
    pub(crate) fn of(
        node: NodeView,
        pods: impl IntoIterator<Item = PodView>,
        problems: Vec<Problem>,
    ) -> Self {
        Self {
            node,
            pods: pods.into_iter().collect(),
            problems,
            ..Self::default()
        }
    }
}

/// The states of the engines have the names of the words in the document.
macro_rules! states {
    ($($engine:ident { $($state:ident)* })*) => {
        $(impl From<$engine> for State {
            fn from(state: $engine) -> Self {
                match state {
                    $($engine::$state => Self::$state,)*
                }
            }
        })*
    };
}

states! {
    SnapshotState { Saved Unchanged Degraded Empty Failed }
    RestoreState { InSync Restored Partial Failed NoCheckpoint }
    Reachability { NoGateway Reachable Unknown Unreachable NoCheckpoint Failed }
    CheckState { InSync Stale Drifted Degraded NoCheckpoint Failed }
}

/// The answer, but for its exit code.
pub(crate) fn snapshot(snapshot: Snapshot) -> Document {
    let pod = |one: PodSnapshot| PodView {
        seen: one.seen,
        ..PodView::new(one.pod, one.state.into())
    };
    let node = NodeView::recorded(&snapshot.node, snapshot.recorded);
    Document {
        extra: Some(Extra::Kept(snapshot.generations)),
        ..Document::of(node, snapshot.pods.into_iter().map(pod), snapshot.problems)
    }
}

/// The answer, but for its exit code.
pub(crate) fn restore(restored: Restored) -> Document {
    let steps = |done: &[Step]| done.iter().map(ToString::to_string).collect();
    let pod = |one: RestoredPod| PodView {
        before: one.before,
        after: one.after,
        steps: steps(&one.done),
        ..PodView::new(one.pod, one.state.into())
    };
    let mut node = NodeView::recorded(&restored.node, restored.recorded);
    if let Some((done, state)) = restored.host {
        node.steps = steps(&done);
        node.state = Some(state.into());
    }
    Document::of(node, restored.pods.into_iter().map(pod), restored.problems)
}

/// The answer, with its exit code.
pub(crate) fn upgrade(upgraded: Upgraded) -> Document {
    let standing = if upgraded.is_open {
        Standing::Left
    } else {
        Standing::Closed
    };
    let report = upgraded
        .window
        .map(|window| Extra::Report(Box::new(ReportView::new(window, standing))));
    Document {
        exit: upgraded.end as u8,
        problems: upgraded.problems,
        extra: report,
        ..restore(upgraded.restored)
    }
}

/// The answer, but for its exit code.
pub(crate) fn verify(verified: Verified) -> Document {
    let pod = |one: VerifiedPod| PodView {
        gateways: one.answers.gateways,
        targets: one.targets,
        ..PodView::new(one.pod, one.answers.state.into())
    };
    let node = NodeView {
        state: Some(verified.host.state.into()),
        gateways: verified.host.gateways,
        ..NodeView::of(&verified.node)
    };
    Document::of(node, verified.pods.into_iter().map(pod), verified.problems)
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

/// The answer and its figures, without the verdict.
pub(crate) fn check(checked: Result<Readiness, Refusal>) -> (Document, CheckView) {
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
    let is_unsupported = |problem: &&Problem| {
        problem.is_error() && problem.code() == Code::Unsupported && problem.pod.is_some()
    };
    view.unsupported = Some(checked.problems.iter().filter(is_unsupported).count());
    view.oldest_age = checked.oldest_age;
    view.last_success = checked.last_success;
    view.pods.insert(State::Empty, checked.empty);
    view.left_out = checked.left_out.len();
    for one in &checked.pods {
        *view.pods.entry(one.state.into()).or_default() += 1;
    }
    let pod = |one: CheckedPod| PodView {
        steps: one.steps,
        ..PodView::new(one.pod, one.state.into())
    };
    let node = NodeView {
        steps: checked.host,
        ..NodeView::recorded(&checked.node, checked.recorded)
    };
    let pods = checked.pods.into_iter().map(pod);
    (Document::of(node, pods, checked.problems), view)
}

/// The answer, but for its exit code.
pub(crate) fn drift(surveyed: &Surveyed, comparison: Comparison, notes: Vec<Problem>) -> Document {
    let recorded = surveyed.node_state.as_ref();
    let recorded = recorded.map(|recorded| recorded.created.clone());
    let node = NodeView {
        steps: comparison.host.lines(),
        ..NodeView::recorded(&surveyed.node, recorded)
    };
    let mut problems = surveyed.all_problems();
    problems.extend(comparison.host.problems);
    problems.extend(comparison.unsupported);
    let lost = |(pod, lost)| match lost {
        Lost::Unusable => PodView::new(pod, State::Failed),
        Lost::NoCheckpoint => PodView::new(pod, State::NoCheckpoint),
    };
    let mut pods: Vec<PodView> = surveyed.lost_pods().into_iter().map(lost).collect();
    for (matched, compared) in surveyed.matched.iter().zip(comparison.pods) {
        let (view, found) = pod(matched, compared);
        pods.push(view);
        let found = found.into_iter();
        problems.extend(found.map(|problem| problem.of(&matched.info.id)));
    }
    problems.extend(notes);
    pods.sort_by(|a, b| a.info.id.cmp(&b.info.id));
    Document::of(node, pods, problems)
}

fn pod(matched: &Matched, compared: Compared) -> (PodView, Vec<Problem>) {
    let mut view = PodView::new(matched.summary(), State::from(&compared.verdict));
    if let PodVerdict::Unknown(problem) = compared.verdict {
        return (view, vec![problem]);
    }
    view.steps = compared.plan.lines();
    let mut problems = compared.plan.problems;
    // A restore of what is missing now does not need these, so it would not fail.
    problems.extend(compared.unsupported.into_iter().map(Problem::demoted));
    (view, problems)
}
