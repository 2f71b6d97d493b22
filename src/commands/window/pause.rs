//! `netfix pause` and `netfix resume`.

use crate::cli::{HoldArgs, Runtimes};
use crate::commands::common::answer;
use crate::context::Context;
use crate::kubelet::pause;
use crate::kubelet::pause::Paused;
use crate::kubelet::resume;
use crate::kubelet::resume::Resumed;
use crate::model::PodSummary;
use crate::model::window::WindowPod;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, HoldView, PodView, State};
use crate::window::status::WindowStatus;

pub(crate) fn pause(hold: &HoldArgs, context: &mut Context) -> Result<Document, Refusal> {
    let Paused {
        status,
        failed,
        problems,
    } = pause::run(hold.unit.as_deref(), hold.deadline, context)?;
    let exit = if failed { Exit::Refused } else { Exit::Done };
    Ok(answer(exit, problems, window(status)))
}

pub(crate) fn resume(runtimes: &Runtimes, context: &mut Context) -> Result<Document, Refusal> {
    let Resumed {
        status,
        has_lost,
        problems,
    } = resume::run(&runtimes.config(), context)?;
    let worst = if has_lost { Exit::Partly } else { Exit::Failed };
    let exit = worst.if_errors(&problems);
    let pods = status.iter().flat_map(|status| &status.window.pods);
    Ok(Document {
        pods: pods.map(pod).collect(),
        ..answer(exit, problems, window(status.clone()))
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
