//! A window of which no record can be used: what it left in systemd is undone without one.

use crate::context::Context;
use crate::kubelet::resume::Held;
use crate::model::problem::{KubeletCause, WindowCause};
use crate::model::{Exit, Problem};
use crate::refusal::Refusal;
use crate::store::StoreError;
use crate::systemd::{self, Bus};
use crate::window::bus;

/// Starts kubelet, and keeps the damaged file under another name. The lock is free meanwhile: the deadline restores the pods.
pub(crate) fn resume(damage: &StoreError, context: &Context) -> Result<Held, Refusal> {
    let mut problems = match bus::connect()? {
        Some(bus) => start_paused(&bus),
        None => Vec::new(),
    };
    if problems.iter().any(Problem::is_error) {
        problems.push(damage.problem());
        return Ok(held(Exit::Failed, problems));
    }
    let guard = context.store.lock("resume")?;
    let aside = guard.set_window_aside()?;
    let (error, aside) = (damage.to_string(), aside.display().to_string());
    problems.push(WindowCause::RecordLost { error, aside }.error(damage.object()));
    Ok(held(Exit::Partly, problems))
}

fn held(exit: Exit, problems: Vec<Problem>) -> Held {
    Held {
        status: None,
        exit,
        problems,
    }
}

/// Has systemd do at once what each deadline was to do, and starts a unit of kubelet that is still paused.
fn start_paused(bus: &Bus) -> Vec<Problem> {
    let not_resumed = |unit: &str, cause| {
        let unit = unit.to_owned();
        KubeletCause::NotResumed {
            unit: unit.clone(),
            cause,
        }
        .error(unit)
    };
    let started = systemd::start_deadlines(bus).map_err(|cause| not_resumed("kubelet", cause));
    let paused = systemd::paused_units(bus).map_err(|cause| not_resumed("kubelet", cause));
    let units = match paused {
        Ok(units) => units,
        Err(problem) => return vec![problem],
    };
    let mut problems: Vec<Problem> = started.err().into_iter().collect();
    for unit in units {
        let resumed = systemd::resume(bus, &unit);
        problems.extend(resumed.err().map(|cause| not_resumed(&unit, cause)));
    }
    if problems.is_empty() {
        let left = systemd::disarm(bus).err();
        problems.extend(left.map(|cause| KubeletCause::TimerNotStopped { cause }.warning("")));
    }
    problems
}
