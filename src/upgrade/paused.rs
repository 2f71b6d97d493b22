//! kubelet in a window of `upgrade`: paused, held for a repair, resumed.

use std::thread;
use std::time::{Duration, Instant};

use crate::kubelet::kubelet_pause;
use crate::model::problem::{CommandCause, KubeletCause};
use crate::model::window::PhaseName;
use crate::model::{Problem, Window};
use crate::refusal::Refusal;
use crate::upgrade::driver::Driver;
use crate::window::event::Event;
use crate::window::findings::Area;
use crate::window::watch;

impl Driver<'_> {
    /// Pauses kubelet, and verifies that nothing has started it: with kubelet at work COMMAND would cost pods.
    pub(crate) fn pause(&mut self) -> Result<(), Refusal> {
        if !self.is_still_paused()? {
            let unit = self.unit()?;
            let (Some(bus), Some(unit)) = (&self.bus, unit) else {
                self.session.log(&Event::NothingToPause);
                return Ok(self.session.save()?);
            };
            self.session.pause(bus, &unit, self.request.deadline)?;
        }
        let Window {
            pause,
            started_boottime,
            ..
        } = &self.session.window;
        if let Some((pause, paused)) = pause
            .as_ref()
            .and_then(|pause| Some((pause, pause.paused?)))
        {
            let log = self.session.log_file.for_thread();
            self.budget = Some(watch::budget(
                log,
                started_boottime + paused,
                pause.deadline,
            ));
        }
        if kubelet_pause::is_paused(&self.session.window, self.bus.as_ref())? {
            return Ok(());
        }
        Err(self.unpaused(KubeletCause::StartedBeforeCommand).into())
    }

    /// Whether the unit is paused since an interrupted window; arms a deadline of this process then. What the killed process
    /// requested from systemd may happen only now.
    fn is_still_paused(&mut self) -> Result<bool, Problem> {
        let window = &self.session.window;
        if !window.is_paused() || !kubelet_pause::is_paused(window, self.bus.as_ref())? {
            return Ok(false);
        }
        self.session.begin(PhaseName::Pause, &Event::StillPaused);
        let bus = self.bus.as_ref();
        let armed = bus.map_or(Ok(()), |bus| self.session.rearm(bus, self.request.deadline));
        self.session.end(armed.is_ok());
        armed?;
        kubelet_pause::is_paused(&self.session.window, bus)
    }

    /// The unit to pause: of an interrupted window that may have died while it stopped or started it, or the kubelet that
    /// runs.
    fn unit(&mut self) -> Result<Option<String>, Refusal> {
        let window = Some(&self.session.window);
        let (unit, note) =
            kubelet_pause::find_for_upgrade(self.bus.as_ref(), self.request, window)?;
        self.findings.add(Area::Preflight, note);
        Ok(unit)
    }

    /// The pods' network comes first, then what has started kubelet in the meantime.
    pub(crate) fn check_pause(&mut self) {
        // After a rollback it is checked again.
        if self.findings.of(Area::Kubelet).next().is_some() {
            return;
        }
        let problem = match kubelet_pause::is_paused(&self.session.window, self.bus.as_ref()) {
            Ok(true) => return,
            Ok(false) => self.unpaused(KubeletCause::StartedBeforeRestore),
            Err(problem) => problem,
        };
        self.findings.add(Area::Kubelet, [problem]);
    }

    pub(crate) fn hold_for_repair(&mut self) {
        self.session.begin(PhaseName::Repair, &Event::HeldForRepair);
        let waited = self.wait_for_resume();
        self.session.end(waited.is_ok());
        match waited {
            Ok(Some(resumed)) => self.session.take_resume_of(resumed),
            Ok(None) => {}
            Err(problem) => self.findings.add(Area::Kubelet, [problem]),
        }
        self.acknowledge(CommandCause::InterruptedRepair);
    }

    /// Without the lock, until `netfix resume`, the deadline or a signal; returns what `netfix resume` recorded.
    fn wait_for_resume(&mut self) -> Result<Option<Window>, Problem> {
        const INTERVAL: Duration = Duration::from_millis(250);
        const LOCK_LIMIT: Duration = Duration::from_secs(60);
        self.session.guard = None;
        let until = Instant::now() + self.session.until_deadline();
        let mut resumed = None;
        while resumed.is_none() && Instant::now() < until && !self.signals.interrupted() {
            thread::sleep(INTERVAL);
            let stored = self.context.store.open_window().ok().flatten();
            resumed = stored.filter(|stored| !stored.is_paused());
        }
        // A restore by a person may hold the lock.
        let store = self.context.store.clone().patient(LOCK_LIMIT, |_| {});
        let guard = store.lock("upgrade").map_err(|error| error.problem())?;
        self.session.guard = Some(guard);
        Ok(resumed)
    }

    pub(crate) fn resume(&mut self) {
        if let (Some(bus), true) = (&self.bus, self.session.window.is_paused()) {
            let left = self.session.resume(bus).unwrap_or_else(Some);
            self.findings.add(Area::Kubelet, left);
        }
        self.budget = None;
    }

    fn unpaused(&self, cause: KubeletCause) -> Problem {
        let pause = self.session.window.pause.as_ref();
        cause.error(pause.map(|pause| pause.unit.clone()).unwrap_or_default())
    }
}
