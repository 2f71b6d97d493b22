//! What is to be said of each running pod.

use std::time::Duration;

use super::super::check_in::{Matched, Strays};
use super::super::diff::{Compared, Depth, plan_pods};
use super::super::session::{age, bare_view, stored_view};
use crate::model::{Code, NodeState, Problem, Severity};
use crate::observe::{Host, Pod};
use crate::plan::{HostLinks, Plan, Step};
use crate::report::{PodView, State};

/// Gathers findings, one view for each running pod that has or needs a checkpoint.
#[derive(Default)]
pub(super) struct Findings<'a> {
    /// Knows when each checkpoint was last found true.
    pub seen: Option<&'a NodeState>,
    pub max_age: Duration,
    pub views: Vec<PodView>,
    pub problems: Vec<Problem>,
    pub oldest_age: Option<u64>,
}

impl Findings<'_> {
    /// Checkpoints without a pod: between two snapshots that is everyday life. Two claims are not.
    pub(super) fn rejected(&mut self, problems: &[Problem], views: &[PodView]) {
        let is_contested =
            |problem: &Problem| matches!(problem.code, Code::MacConflict | Code::AddressConflict);
        let info = |problem: &Problem| match problem {
            contested if is_contested(contested) => contested.clone(),
            other => Problem { severity: Severity::Info, ..other.clone() },
        };
        self.problems.extend(problems.iter().map(info));
        let of_contested = |view: &&PodView| {
            problems
                .iter()
                .any(|problem| is_contested(problem) && problem.pod.as_ref() == Some(&view.info.id))
        };
        self.views.extend(views.iter().filter(of_contested).cloned());
    }

    /// Running pods without a checkpoint.
    pub(super) fn strays(&mut self, pods: &[Pod], strays: Strays) {
        let known =
            |pod: &&Pod| strays.problems.iter().any(|problem| problem.pod.as_ref() == Some(&pod.info.id));
        let view = |pod: &Pod| bare_view(&pod.info, &pod.netns.path, State::NoCheckpoint);
        self.views.extend(pods.iter().filter(known).map(view));
        let message =
            "runs and has no checkpoint: if the NIC went now, it would stay dead; run `netfix snapshot`";
        let explained = |problem: Problem| {
            if problem.is_error() {
                return problem;
            }
            Problem { message: message.to_owned(), ..problem }
        };
        self.problems.extend(strays.problems.into_iter().map(explained));
    }

    /// Running pods whose checkpoint cannot be read; why is told where it was read.
    pub(super) fn damaged(&mut self, damaged: Vec<PodView>, strays: &[Pod]) {
        let lives = |view: &PodView| strays.iter().any(|pod| pod.info.id == view.info.id);
        let known = |view: &PodView, views: &[PodView]| views.iter().any(|v| v.info.id == view.info.id);
        for view in damaged {
            if lives(&view) && !known(&view, &self.views) {
                self.views.push(view);
            }
        }
    }

    /// Running pods with a checkpoint: is it fresh, and does the kernel have what it says?
    pub(super) fn matched(&mut self, mut matched: Vec<Matched>, host: &Host, links: &HostLinks) {
        let compared = plan_pods(&mut matched, host, links, Depth::Creation);
        for (matched, compared) in matched.iter().zip(compared) {
            let view = self.one(matched, compared);
            self.views.push(view);
        }
    }

    fn one(&mut self, matched: &Matched, compared: Result<Compared, Problem>) -> PodView {
        let mut view = stored_view(&matched.info, &matched.checkpoint, State::InSync);
        let mut problems = Vec::new();
        let age = self.age(matched);
        self.oldest_age = self.oldest_age.max(age);
        if let Some(stale) = age.filter(|age| Duration::from_secs(*age) > self.max_age) {
            view.state = State::Stale;
            let age = humantime::format_duration(Duration::from_secs(stale));
            let message = format!("was last found true {age} ago; run `netfix snapshot`");
            problems.push(Problem::warning(Code::CheckpointStale, "checkpoint", message));
        }
        if matched.partial.is_some() {
            let message = "is one of the origin's, which does not say what the pod stands on; run `netfix snapshot`, \
                           which writes down all of it";
            problems.push(Problem::warning(Code::PartialSource, "checkpoint", message));
        }
        match compared {
            Err(problem) => {
                view.state = State::Failed;
                problems.push(problem);
            }
            Ok(Compared { plan, lost }) => {
                view.steps = plan.lines();
                if let Some(lost) = lost {
                    view.state = State::Degraded;
                    let message = "is lost, and nothing but `netfix restore` brings it back";
                    problems.push(Problem::error(Code::Degraded, lost, message));
                } else {
                    let Plan { steps, later, problems: found } = plan;
                    let hint = format!("netfix diff {}", matched.info.id);
                    let drift = drifted(steps.iter().chain(&later), &hint);
                    let is_finding = |problem: &Problem| problem.severity > Severity::Info;
                    if drift.is_some() || found.iter().any(is_finding) {
                        view.state = State::Drifted;
                    }
                    problems.extend(found.into_iter().chain(drift));
                }
            }
        }
        self.problems.extend(problems.into_iter().map(|problem| problem.of(&matched.info.id)));
        view
    }

    /// Seconds since a snapshot found the checkpoint true; `None` for a file that does not say when it was written.
    fn age(&self, matched: &Matched) -> Option<u64> {
        let written = &matched.checkpoint.netfix.as_ref()?.created;
        let seen = self.seen.and_then(|node| node.seen(&matched.info.id)).unwrap_or(written);
        Some(age(seen.max(written.as_str())).into())
    }
}

/// One finding for all steps that a restore would take in one namespace.
pub(super) fn drifted<'a>(mut steps: impl Iterator<Item = &'a Step>, hint: &str) -> Option<Problem> {
    let first = steps.next()?;
    let more = match steps.count() {
        0 => String::new(),
        more => format!("and {more} more "),
    };
    let message = format!(
        "{more}would be done by a restore; `{hint}` shows it. If it is right as it is now, run `netfix snapshot`"
    );
    Some(Problem::warning(Code::Drift, first.to_string(), message))
}
