//! The rehearsal of a check.

use std::collections::BTreeMap;

use super::facts::{CheckState, Readiness};
use crate::model::problem::{Cause, CheckCause, RehearsalCause};
use crate::model::{Code, PodId, Problem, Severity};
use crate::progress::{Listener, Progress, Stage};
use crate::records::survey::Surveyed;
use crate::rehearsal;

/// Rehearses the restore of the pods that have what their checkpoints describe. One that has more, or something else, comes back as
/// recorded: that is known, and no error.
pub(super) fn rehearse(
    checked: &mut Readiness,
    surveyed: &mut Surveyed,
    progress: &mut dyn Listener,
) {
    progress.notice(Progress::Phase(Stage::Rehearsing, surveyed.matched.len()));
    let weights: BTreeMap<&PodId, Severity> = checked
        .pods
        .iter()
        .filter_map(|one| {
            let weight = match one.state {
                CheckState::InSync | CheckState::Stale => Severity::Error,
                CheckState::Drifted | CheckState::New => Severity::Warning,
                CheckState::Degraded | CheckState::NoCheckpoint | CheckState::Failed => {
                    return None;
                }
            };
            let id = &one.pod.info.id;
            let is_unrecorded = |problem: &Problem| {
                matches!(*problem.cause, Cause::Check(CheckCause::Unrecorded { .. }))
                    && problem.pod.as_ref() == Some(id)
            };
            // What no restore could bring back is told already.
            let is_unsupported = |problem: &Problem| {
                problem.code() == Code::Unsupported && problem.pod.as_ref() == Some(id)
            };
            let mut problems = checked.problems.iter();
            let weight = if problems.clone().any(is_unsupported) {
                Severity::Info
            } else if problems.any(is_unrecorded) {
                Severity::Warning
            } else {
                weight
            };
            Some((id, weight))
        })
        .collect();
    let rehearsed = rehearsal::rehearse(surveyed, &|id| weights.get(id).copied());
    match rehearsed {
        Ok(mut rehearsed) => {
            checked.problems.append(&mut rehearsed.problems);
            checked.rehearsed = Some(rehearsed);
        }
        Err(error) => {
            let error = error.to_string();
            let cause = RehearsalCause::Failed { error };
            checked.problems.push(cause.error("host"));
        }
    }
}
