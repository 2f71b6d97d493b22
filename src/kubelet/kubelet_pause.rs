//! Pausing and resuming kubelet in an order that never leaves it stopped: record, arm the deadline, stop, mask, verify; then
//! start, stop the deadline.

use std::path;
use std::time::Duration;

use crate::inventory::cannot_observe;
use crate::inventory::kubelets::{self, Kubelet};
use crate::model::Problem;
use crate::model::problem::{KubeletCause, SystemdCause};
use crate::model::window::{KubeletPause, PhaseName, Window};
use crate::refusal::Refusal;
use crate::store::Guard;
use crate::systemd::{self, Bus, KubeletUnit};
use crate::upgrade::Request;
use crate::window::event::Event;
use crate::window::session::WindowSession;

/// Exists where systemd is process 1 (`sd_booted(3)`).
const BOOTED: &str = "/run/systemd/system";

/// systemd; `None` where another init system runs this machine.
pub(crate) fn systemd() -> Result<Option<Bus>, Problem> {
    if !std::path::Path::new(BOOTED).is_dir() {
        return Ok(None);
    }
    let failed = |cause: SystemdCause| not_queried(cause).error("");
    Bus::connect().map(Some).map_err(failed)
}

fn not_queried(cause: SystemdCause) -> KubeletCause {
    KubeletCause::Systemd { cause }
}

fn not_paused(cause: SystemdCause) -> KubeletCause {
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
        .map_err(|error| not_paused(error).error(named.unwrap_or("kubelet")))?;
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
    request: &Request<'_>,
    interrupted: Option<&Window>,
) -> Result<(Option<String>, Option<Problem>), Refusal> {
    let paused = interrupted.filter(|window| window.is_paused());
    if let Some(pause) = paused.and_then(|window| window.pause.as_ref()) {
        return Ok((Some(pause.unit.clone()), None));
    }
    if request.no_pause {
        let note = KubeletCause::NotToBePaused.warning("kubelet");
        return Ok((None, Some(note)));
    }
    let found = find(bus, request.unit)?;
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

/// The kubelets that run on while the unit is paused.
fn others(bus: Option<&Bus>, unit: Option<&str>) -> Result<Vec<Problem>, Problem> {
    let running = kubelets::running().map_err(|error| cannot_observe("/proc", &error))?;
    let is_paused = |kubelet: &Kubelet| unit.is_some_and(|unit| kubelet.is_in(unit));
    let others = running.iter().filter(|kubelet| !is_paused(kubelet));
    let problem = |kubelet: &Kubelet| {
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
    };
    Ok(others.map(problem).collect())
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
    systemd::is_held(bus, &pause.unit).map_err(|error| not_queried(error).error(&pause.unit))
}

/// Stops what starts the unit again at the deadline, for a unit that runs.
pub(crate) fn disarm(bus: &Bus, window: &Window) -> Option<Problem> {
    let cause = systemd::disarm(bus).err()?;
    let unit = window.pause.as_ref().map(|pause| pause.unit.clone());
    Some(KubeletCause::TimerNotStopped { cause }.warning(unit.unwrap_or_default()))
}

fn arm_and_stop(
    session: &mut WindowSession,
    bus: &Bus,
    pause: &KubeletPause,
    deadline: Duration,
) -> Result<(), KubeletCause> {
    let words = session.at_the_deadline();
    systemd::arm(bus, &pause.timer, &pause.unit, deadline, &words)
        .map_err(|error| not_paused(error))?;
    session.note_pause(|pause, now| pause.armed = Some(now));
    systemd::pause(bus, &pause.unit).map_err(|error| not_paused(error))?;
    // A deadline that came while the unit was stopping is used up: nothing would start the unit after that.
    match systemd::is_pending(bus, &pause.timer) {
        Ok(true) => Ok(()),
        Ok(false) => Err(KubeletCause::DeadlineTooShort),
        Err(error) => Err(not_paused(error)),
    }
}

impl WindowSession {
    /// Pauses the unit. Where that fails, the unit runs again and nothing is left.
    pub(crate) fn pause(
        &mut self,
        bus: &Bus,
        unit: &str,
        deadline: Duration,
    ) -> Result<(), Problem> {
        let unit = unit.to_owned();
        self.begin(PhaseName::Pause, &Event::Pausing { unit: unit.clone() });
        let pause = KubeletPause {
            unit: unit.clone(),
            timer: systemd::timer_name(),
            deadline: deadline.as_secs(),
            armed: None,
            paused: None,
            resumed: None,
        };
        self.window.pause = Some(pause.clone());
        // From here on only the file shows the next process which unit is paused.
        if let Err(error) = self.save() {
            self.window.pause = None;
            self.window.phases.pop();
            return Err(error.problem());
        }
        if let Err(cause) = arm_and_stop(self, bus, &pause, deadline) {
            self.end(false);
            let problem = cause.error(unit);
            self.log(&Event::Failed(problem.clone()));
            return Err(self.resume(bus).err().unwrap_or(problem));
        }
        self.note_pause(|pause, now| pause.paused = Some(now));
        self.end(true);
        let timer = pause.timer;
        self.log(&Event::Paused {
            unit,
            timer,
            deadline,
        });
        Ok(())
    }

    /// Arms a deadline of this process for a unit that an earlier one paused.
    pub(crate) fn rearm(&mut self, bus: &Bus, deadline: Duration) -> Result<(), Problem> {
        let Some(pause) = &mut self.window.pause else {
            return Ok(());
        };
        let (unit, timer) = (pause.unit.clone(), systemd::timer_name());
        (pause.timer, pause.deadline) = (timer.clone(), deadline.as_secs());
        self.save().map_err(|error| error.problem())?;
        let words = self.at_the_deadline();
        systemd::arm(bus, &timer, &unit, deadline, &words)
            .map_err(|error| not_paused(error).error(unit))?;
        self.note_pause(|pause, now| pause.armed = Some(now));
        Ok(())
    }

    /// Starts the unit and stops the deadline; `Ok` has what is worth knowing about the deadline. Where the unit does not
    /// start, the deadline stays armed and the window open.
    pub(crate) fn resume(&mut self, bus: &Bus) -> Result<Option<Problem>, Problem> {
        let Some(unit) = self.window.pause.as_ref().map(|pause| pause.unit.clone()) else {
            return Ok(None);
        };
        self.begin(PhaseName::Resume, &Event::Resuming { unit: unit.clone() });
        if let Err(cause) = systemd::resume(bus, &unit) {
            self.end(false);
            let cause = KubeletCause::NotResumed {
                unit: unit.clone(),
                cause,
            };
            return Err(cause.error(unit));
        }
        // The deadline or another program may have started it long before.
        let since = bus.active_since(&unit).ok().flatten();
        let since = since.and_then(|since| since.checked_sub(self.window.started_boottime));
        self.note_pause(|pause, now| {
            let is_in_pause = |since: &u64| (pause.paused.unwrap_or_default()..now).contains(since);
            pause.resumed = Some(since.filter(is_in_pause).unwrap_or(now));
        });
        let left = disarm(bus, &self.window);
        // The unit runs; a deadline that is left is a warning.
        self.end(true);
        self.log(&Event::Resumed { unit });
        Ok(left)
    }

    /// What netfix does at the deadline of a unit that is still paused: a kubelet that starts while pods have no address
    /// may rebuild them. While a window's process runs it has the lock, and this does nothing.
    fn at_the_deadline(&self) -> Vec<String> {
        let folder = self.guard.as_ref().map(Guard::state_dir);
        let folder = folder.and_then(|folder| path::absolute(folder).ok());
        let folder = folder.unwrap_or_default().display().to_string();
        ["--state-dir", &folder, "restore", "--wait", "10s"]
            .map(str::to_owned)
            .to_vec()
    }

    fn note_pause(&mut self, note: impl FnOnce(&mut KubeletPause, u64)) {
        let now = self.now();
        if let Some(pause) = &mut self.window.pause {
            note(pause, now);
        }
        self.save_if_possible();
    }
}
