//! `netfix pause` and `netfix resume`.

use crate::cli::HoldArgs;
use crate::context::Context;
use crate::inventory::observe;
use crate::maintenance::pause::{self, Paused};
use crate::maintenance::resume::{self, Resumed};
use crate::maintenance::window_status::WindowStatus;
use crate::model::Problem;
use crate::report::outcome::{Early, Exit, Outcome};
use crate::report::{Extra, HoldView, NodeView};

pub(super) fn pause(hold: &HoldArgs, context: &mut Context) -> Result<Outcome, Early> {
    let Paused {
        status,
        failed,
        problems,
    } = pause::run(hold.unit.as_deref(), hold.deadline, context)?;
    let exit = if failed { Exit::Refused } else { Exit::Done };
    Ok(outcome(exit, status, problems))
}

pub(super) fn resume(context: &mut Context) -> Result<Outcome, Early> {
    let Resumed { status, problems } = resume::run(context)?;
    let exit = if problems.iter().any(Problem::is_error) {
        Exit::Failed
    } else {
        Exit::Done
    };
    Ok(outcome(exit, status, problems))
}

fn outcome(exit: Exit, status: Option<WindowStatus>, problems: Vec<Problem>) -> Outcome {
    Outcome {
        exit,
        node: NodeView::of(&observe::node_identity()),
        problems,
        extra: status.map(|status| Extra::Window(Box::new(HoldView::new(&status)))),
        ..Outcome::default()
    }
}
