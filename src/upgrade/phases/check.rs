//! The check: could netfix restore every pod?

use std::thread;
use std::time::Duration;

use crate::check::{self, Check};
use crate::context::Context;
use crate::inventory::Inventory;
use crate::inventory::look::Look;
use crate::model::problem::WindowCause;
use crate::progress::Listener;
use crate::refusal::Refusal;
use crate::snapshot::{Captured, SECOND_LOOK, capture};
use crate::upgrade::left_out::LeftOut;
use crate::upgrade::phases::blockers::Blockers;
use crate::upgrade::request::UpgradeRequest;

/// What one observation of the machine found before the first change.
pub(crate) struct Preflight {
    /// What a restore could not put back, and what the snapshot does not cure.
    pub blockers: Blockers,
    pub left_out: LeftOut,
    /// The snapshot, not written yet.
    pub captured: Captured,
    /// The pods, which are not read again.
    pub inventory: Inventory,
}

/// Observes the machine, and once more where what a pod has lost may be gone a moment later. What cannot be queried or written
/// is an error: --force does not help there.
pub(crate) fn run(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
) -> Result<Preflight, Refusal> {
    let mut looks = 0;
    loop {
        let found = observe(request, context, &mut looks)?;
        if looks > 1 || !found.captured.has_degraded() {
            return Ok(found);
        }
        thread::sleep(SECOND_LOOK);
    }
}

/// Observes the machine as often as the check needs it; counts the observations.
fn observe(
    request: &UpgradeRequest<'_>,
    context: &mut Context,
    looks: &mut usize,
) -> Result<Preflight, Refusal> {
    let Context {
        store, progress, ..
    } = context;
    let check = Check {
        selection: &request.selection,
        runtimes: &request.runtimes,
        max_age: Duration::MAX,
        devices: &request.devices,
    };
    let mut last = None;
    let look = |progress: &mut dyn Listener| {
        *looks += 1;
        let mut look = Look::take(check.selection, check.runtimes, store, progress)?;
        look.keep();
        let copy = look.inventory.closed_copy();
        last = Some(look);
        copy
    };
    let checked = check::run_with(&check, store, progress.as_mut(), look)?;
    let blockers = Blockers::of_check(checked.problems)?;
    let Some(look) = last else {
        return Err(WindowCause::Panicked.error("netfix").into());
    };
    let (captured, inventory) = capture(look, check.selection, store);
    Ok(Preflight {
        blockers,
        left_out: LeftOut::new(checked.left_out),
        captured,
        inventory,
    })
}
