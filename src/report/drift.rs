//! `diff` and `plan`: each pod with the steps that would bring back what is missing.

use super::{Document, PodView, State};
use crate::inventory::matched::Matched;
use crate::inventory::survey::Surveyed;
use crate::model::Problem;
use crate::restore::compare::{Compared, Comparison};

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
