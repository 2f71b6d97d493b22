//! Facts of windows as documents show them.

use super::text::duration;
use super::view::{HoldView, NodeView, PodView};
use crate::maintenance::Request;
use crate::maintenance::preview::Preview;
use crate::maintenance::window_status::WindowStatus;
use crate::model::window::command_line;
use crate::model::{PodSummary, State};
use crate::report::outcome::Outcome;
use crate::systemd::UnitState;

impl HoldView {
    /// How a window stands.
    pub(crate) fn new(status: &WindowStatus) -> Self {
        let WindowStatus {
            window,
            now,
            is_at_work,
            unit,
        } = status;
        let pause = window.pause.as_ref();
        let paused_for = pause.and_then(|pause| {
            let until = pause.resumed.unwrap_or(*now);
            Some(until.saturating_sub(pause.paused?) / 1000)
        });
        let running = pause.filter(|pause| pause.resumed.is_none());
        let deadline_in = running.and_then(|pause| {
            let at = pause.armed? / 1000 + pause.deadline;
            Some(at.saturating_sub(now / 1000))
        });
        Self {
            id: window.id.clone(),
            command: window.command.clone(),
            started: window.started.clone(),
            kept: *is_at_work,
            pid: window.owner.pid,
            phase: window.phase(),
            unit: pause.map(|pause| pause.unit.clone()),
            unit_state: unit
                .as_ref()
                .map(|unit| format!("{} ({})", unit.active, unit.sub)),
            held: unit.as_ref().map(UnitState::is_held),
            paused_for,
            deadline_in,
            run: window.run.clone(),
            exit: window.exit,
            log: window.log.clone(),
        }
    }
}

/// What `upgrade --dry-run` answers.
pub(crate) fn preview(request: &Request<'_>, preview: Preview) -> Outcome {
    let steps = phases(request, preview.unit.as_deref(), preview.pods.len());
    let pod = |pod: PodSummary| PodView::new(pod, State::Unknown);
    Outcome {
        node: NodeView {
            hostname: preview.node.hostname,
            steps,
            ..NodeView::default()
        },
        pods: preview.pods.into_iter().map(pod).collect(),
        problems: preview.problems,
        ..Outcome::default()
    }
}

/// The phases, one line each.
fn phases(request: &Request<'_>, unit: Option<&str>, pods: usize) -> Vec<String> {
    let (pause, resume) = match unit {
        Some(unit) => (
            format!(
                "stop and mask {unit}; systemd starts it again after {} in any case",
                duration(request.deadline)
            ),
            format!("unmask and start {unit}"),
        ),
        None => (
            "nothing: no kubelet runs here".to_owned(),
            "nothing".to_owned(),
        ),
    };
    let hold = if request.keep_paused {
        "; keep kubelet paused while a pod is not restored"
    } else {
        ""
    };
    let restore = format!(
        "wait up to {} for the NIC, then restore up to {pods} pods{hold}",
        duration(request.wait)
    );
    let lines = [
        (
            "check",
            "check that every pod can be restored; otherwise stop here".to_owned(),
        ),
        (
            "snapshot",
            "save the host and every pod, on disk and in memory".to_owned(),
        ),
        ("pause", pause),
        ("command", command_line(request.command)),
        ("restore", restore),
        (
            "verify",
            format!(
                "probe every gateway, for up to {}",
                duration(request.timeout)
            ),
        ),
        ("resume", resume),
        (
            "proof",
            format!(
                "watch for {} that no pod is rebuilt",
                duration(request.settle)
            ),
        ),
    ];
    let numbered = lines.iter().zip(1..);
    numbered
        .map(|((name, what), number)| format!("{number}. {name:<9} {what}"))
        .collect()
}
