//! The unit to pause, and whether it is paused.

use crate::inventory::cannot_observe;
use crate::inventory::kubelets::{self, Kubelet};
use crate::model::Problem;
use crate::model::problem::{KubeletCause, SystemdCause};
use crate::model::window::Window;
use crate::refusal::Refusal;
use crate::systemd::{self, Bus, KubeletUnit};
use crate::window::bus::not_queried;

/// What a window is to pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitToPause<'a> {
    Nothing,
    /// kubelet's, as found.
    Kubelet,
    Named(&'a str),
}

/// The unit could not be paused.
pub(crate) fn not_paused(cause: SystemdCause) -> KubeletCause {
    KubeletCause::NotPaused { cause }
}

/// The unit to pause. Where no kubelet runs, a note has the reason.
pub(crate) fn find(
    bus: Option<&Bus>,
    named: Option<&str>,
) -> Result<(Option<String>, Option<Problem>), Problem> {
    let Some(bus) = bus else {
        let note = KubeletCause::NothingWithoutSystemd.info("kubelet");
        return match named {
            Some(name) => Err(KubeletCause::NoSystemd.error(name)),
            None => Ok((None, Some(note))),
        };
    };
    let found = systemd::find(bus, named)
        .map_err(|cause| not_paused(cause).error(named.unwrap_or("kubelet")))?;
    Ok(match found {
        KubeletUnit::Running(name) => (Some(name), None),
        KubeletUnit::Stopped(name) => (None, Some(KubeletCause::NotRunning.info(name))),
        KubeletUnit::Masked(name) => (None, Some(KubeletCause::Masked.info(name))),
        KubeletUnit::Nothing => (None, Some(KubeletCause::NoUnit.info("kubelet"))),
    })
}

/// The unit to pause for `upgrade`, whose `interrupted` window may have paused one. Refuses where a kubelet would run on,
/// except after COMMAND: from then on the pods' network comes first.
pub(crate) fn find_for_upgrade(
    bus: Option<&Bus>,
    wanted: UnitToPause<'_>,
    interrupted: Option<&Window>,
) -> Result<(Option<String>, Option<Problem>), Refusal> {
    let paused = interrupted.filter(|window| window.is_paused());
    if let Some(pause) = paused.and_then(|window| window.pause.as_ref()) {
        return Ok((Some(pause.unit.clone()), None));
    }
    let named = match wanted {
        UnitToPause::Nothing => {
            let note = KubeletCause::NotToBePaused.warning("kubelet");
            return Ok((None, may_run(bus).then_some(note)));
        }
        UnitToPause::Kubelet => None,
        UnitToPause::Named(unit) => Some(unit),
    };
    let found = find(bus, named)?;
    if interrupted.is_some_and(Window::has_begun) {
        return Ok(found);
    }
    let others = others(bus, found.0.as_deref())?;
    if others.is_empty() {
        Ok(found)
    } else {
        Err(others.into())
    }
}

/// Whether a kubelet runs, or netfix cannot tell.
fn may_run(bus: Option<&Bus>) -> bool {
    let is_unit = bus.is_some_and(|bus| match systemd::find(bus, None) {
        Ok(KubeletUnit::Running(_)) | Err(_) => true,
        Ok(KubeletUnit::Stopped(_) | KubeletUnit::Masked(_) | KubeletUnit::Nothing) => false,
    });
    is_unit || kubelets::running().map_or(true, |running| !running.is_empty())
}

/// The kubelets that run on while the unit is paused.
fn others(bus: Option<&Bus>, unit: Option<&str>) -> Result<Vec<Problem>, Problem> {
    let running = kubelets::running().map_err(|error| cannot_observe("/proc", &error))?;
    let is_paused = |kubelet: &Kubelet| unit.is_some_and(|unit| kubelet.is_in(unit));
    let others = running.iter().filter(|kubelet| !is_paused(kubelet));
    let problems = others.map(|kubelet| {
        let pid = kubelet.pid;
        let service = kubelet.service().filter(|name| runs(bus, name));
        let cause = match service.map(str::to_owned) {
            Some(unit) => KubeletCause::RunsInOtherUnit { pid, unit },
            None => KubeletCause::RunsInNoUnit {
                pid,
                unit: kubelet.unit().map(str::to_owned),
            },
        };
        cause.error(kubelet.name)
    });
    Ok(problems.collect())
}

fn runs(bus: Option<&Bus>, unit: &str) -> bool {
    let state = bus.and_then(|bus| bus.unit(unit).ok());
    state.is_some_and(|state| state.exists() && !state.is_stopped())
}

/// Whether the unit that this window paused is still stopped and masked. True for a window that paused none.
pub(crate) fn is_paused(window: &Window, bus: Option<&Bus>) -> Result<bool, Problem> {
    let (Some(pause), Some(bus)) = (&window.pause, bus) else {
        return Ok(true);
    };
    systemd::is_held(bus, &pause.unit).map_err(|cause| not_queried(cause).error(&pause.unit))
}
