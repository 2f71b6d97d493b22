//! `netfix pause` and `netfix resume`.

use super::answer;
use crate::cli::{HoldArgs, Runtimes};
use crate::context::Context;
use crate::maintenance::pause::{self, Paused};
use crate::maintenance::resume::{self, Resumed};
use crate::maintenance::window_status::WindowStatus;
use crate::model::PodSummary;
use crate::model::window::WindowPod;
use crate::refusal::Refusal;
use crate::report::{Document, Exit, Extra, HoldView, PodView, State};

pub(super) fn pause(hold: &HoldArgs, context: &mut Context) -> Result<Document, Refusal> {
    let Paused {
        status,
        failed,
        problems,
    } = pause::run(hold.unit.as_deref(), hold.deadline, context)?;
    let exit = if failed { Exit::Refused } else { Exit::Done };
    Ok(answer(exit, problems, window(status)))
}

pub(super) fn resume(runtimes: &Runtimes, context: &mut Context) -> Result<Document, Refusal> {
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
pub(super) fn window(status: Option<WindowStatus>) -> Option<Extra> {
    status.map(|status| Extra::Window(Box::new(HoldView::new(&status))))
}
