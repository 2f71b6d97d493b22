//! A dry run of what precedes the pause in a window, with the snapshot in memory.

use crate::context::Context;
use crate::kubelet::unit;
use crate::model::Problem;
use crate::refusal::Refusal;
use crate::upgrade::baseline;
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::phases::check::Preflight;
use crate::upgrade::phases::rollback::already_rolled_back;
use crate::upgrade::phases::{check, snapshot};
use crate::upgrade::preview::Preview;
use crate::upgrade::request::UpgradeRequest;
use crate::window::bus;
use crate::window::rebuild_check::query;
use crate::window::records::{EarlierWindow, find_earlier};

/// A window would begin.
pub(crate) struct Rehearsed {
    /// The problems that do not prevent it.
    accepted: Vec<Problem>,
    left_out: LeftOut,
}

/// Carries out the steps of a window up to the pause.
pub(crate) fn rehearse(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Rehearsed, Refusal> {
    context.store.refuse_if_locked()?;
    let bus = bus::connect()?;
    let interrupted = match find_earlier(&context.store)? {
        EarlierWindow::Interrupted(window) => Some(window),
        EarlierWindow::Nothing | EarlierWindow::Finished(_) => None,
    };
    let rehearsed = if let Some(window) = interrupted.as_ref().filter(|one| one.has_begun()) {
        let baseline = baseline::recover(window, &request.selection, &context.store)?;
        let is_rolled_back = window.rollback.is_some();
        let accepted = is_rolled_back.then(|| already_rolled_back().demoted());
        Rehearsed {
            accepted: accepted.into_iter().collect(),
            left_out: LeftOut::of_window(window, &baseline.stored),
        }
    } else {
        let Preflight {
            mut blockers,
            left_out,
            captured,
            inventory: _,
        } = check::run(request, context)?;
        let progress = context.progress.as_mut();
        let written = snapshot::write(captured, None, request, &left_out, progress);
        blockers.add_of_snapshot(written.problems);
        query::before(&request.runtimes)?;
        Rehearsed {
            accepted: blockers.gate(request.force)?,
            left_out,
        }
    };
    unit::find_for_upgrade(bus.as_ref(), request.pause, interrupted.as_ref())?;
    Ok(rehearsed)
}

/// The preview with the problems that the window would report.
pub(crate) fn complete(
    rehearsed: Result<Rehearsed, Refusal>,
    preview: Result<Preview, Refusal>,
) -> Result<Preview, Refusal> {
    match (rehearsed, preview) {
        (Err(refusal), Err(_)) => Err(refusal),
        (Err(refusal), Ok(preview)) => Ok(Preview {
            problems: refusal.problems,
            is_refused: true,
            ..preview
        }),
        (Ok(rehearsed), preview) => {
            let Rehearsed { accepted, left_out } = rehearsed;
            let mut preview = preview?;
            preview
                .problems
                .retain(|problem| !left_out.is_about(problem) && !accepted.contains(problem));
            preview.problems.extend(accepted);
            Ok(preview)
        }
    }
}
