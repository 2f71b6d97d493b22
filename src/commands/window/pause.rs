//! `netfix pause` and `netfix resume`.

use crate::cli::{HoldArgs, RateArgs, Runtimes};
use crate::commands::common::answer;
use crate::context::Context;
use crate::kubelet::{pause, resume};
use crate::model::PodSummary;
use crate::model::window::WindowPod;
use crate::refusal::Refusal;
use crate::report::{Document, Extra, HoldView, PodView, State};
use crate::window::status::WindowStatus;

pub(crate) fn pause(
    hold: &HoldArgs,
    rate: RateArgs,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let unit = hold.unit.as_deref();
    let paused = pause::run(unit, hold.deadline, rate.probe_rate, context)?;
    Ok(answer(paused.exit, paused.problems, window(paused.status)))
}

pub(crate) fn resume(
    runtimes: &Runtimes,
    force: bool,
    context: &mut Context,
) -> Result<Document, Refusal> {
    let paused = resume::run(&runtimes.config(), force, context)?;
    let pods = paused.status.iter().flat_map(|status| &status.window.pods);
    Ok(Document {
        pods: pods.map(pod).collect(),
        ..answer(paused.exit, paused.problems, window(paused.status))
    })
}

/// A pod of the window, as it was last observed.
fn pod(pod: &WindowPod) -> PodView {
    let summary = PodSummary {
        interfaces: pod.after.clone().unwrap_or_default(),
        ..PodSummary::bare(&pod.info, None)
    };
    PodView::new(summary, pod.state.unwrap_or(State::Unknown))
}

/// The window in short.
pub(crate) fn window(status: Option<WindowStatus>) -> Option<Extra> {
    status.map(|status| Extra::Window(Box::new(HoldView::new(&status))))
}
