//! Pausing and resuming within a window, in the order that keeps kubelet from staying behind: written down, deadline
//! armed, stopped and masked; started again, deadline ended.

use std::time::Duration;

use super::Keeper;
use crate::kubelet::{self, Bus, Found};
use crate::model::window::{Hold, PhaseName};
use crate::model::{Code, Problem};

/// What tells that systemd is process 1 (`sd_booted(3)`).
const BOOTED: &str = "/run/systemd/system";

/// systemd; `None` where another init system runs this machine.
pub(in crate::commands) fn systemd() -> Result<Option<Bus>, Problem> {
    if !std::path::Path::new(BOOTED).is_dir() {
        return Ok(None);
    }
    Bus::connect().map(Some).map_err(|error| Problem::error(Code::SystemdUnreachable, "", error.to_string()))
}

/// Which unit is kubelet here, where one is to be paused; and what is worth knowing when none is.
pub(in crate::commands) fn find(
    bus: Option<&Bus>,
    named: Option<&str>,
) -> Result<(Option<String>, Option<Problem>), Problem> {
    let refused = |error: kubelet::Error| {
        Problem::error(Code::KubeletNotPaused, named.unwrap_or("kubelet"), error.to_string())
    };
    let note = |object: &str, message: &str| Some(Problem::info(Code::NotFound, object, message));
    let Some(bus) = bus else {
        let message = "this machine is not run by systemd, so no kubelet can be paused";
        return match named {
            Some(name) => Err(Problem::error(Code::SystemdUnreachable, name, message)),
            None => Ok((None, note("kubelet", message))),
        };
    };
    Ok(match kubelet::find(bus, named).map_err(refused)? {
        Found::Running(name) => (Some(name), None),
        Found::Stopped(name) => (None, note(&name, "does not run; it is left as it is")),
        Found::Masked(name) => (None, note(&name, "does not run and is masked; it is left as it is")),
        Found::Nothing => (None, note("kubelet", "no unit of a kubelet is found on this machine")),
    })
}

/// Whether the unit that this window holds is still kept from running; a window without one holds nothing.
pub(in crate::commands) fn is_held(keeper: &Keeper, bus: Option<&Bus>) -> Result<bool, Problem> {
    let (Some(hold), Some(bus)) = (&keeper.window.hold, bus) else { return Ok(true) };
    kubelet::is_held(bus, &hold.unit)
        .map_err(|error| Problem::error(Code::SystemdUnreachable, hold.unit.clone(), error.to_string()))
}

/// A deadline that comes while the unit is still being stopped is used up: nothing would start the unit after that.
fn in_time(bus: &Bus, timer: &str, unit: &str) -> Result<(), kubelet::Error> {
    if kubelet::is_pending(bus, timer)? {
        return Ok(());
    }
    let message = format!("the deadline came before {unit} was stopped; give it a longer --deadline");
    Err(kubelet::Error::State(message))
}

impl Keeper {
    /// Pauses the unit. Where that fails it runs again, and nothing is left.
    pub(in crate::commands) fn pause(
        &mut self,
        bus: &Bus,
        unit: &str,
        deadline: Duration,
    ) -> Result<(), Problem> {
        self.begin(PhaseName::Pause, &format!("pausing {unit}"));
        let timer = kubelet::timer_name();
        let deadline_s = deadline.as_secs();
        let hold = Hold {
            unit: unit.to_owned(),
            timer: timer.clone(),
            deadline: deadline_s,
            armed: None,
            paused: None,
            resumed: None,
        };
        self.window.hold = Some(hold);
        // From here on only the file tells the next process who has paused what.
        if let Err(error) = self.save() {
            self.window.hold = None;
            self.window.phases.pop();
            return Err(error.problem());
        }
        let failed = |error: kubelet::Error| Problem::error(Code::KubeletNotPaused, unit, error.to_string());
        let paused = kubelet::arm(bus, &timer, unit, deadline).and_then(|()| {
            self.note(|hold, now| hold.armed = Some(now));
            kubelet::pause(bus, unit)?;
            in_time(bus, &timer, unit)
        });
        if let Err(error) = paused {
            self.end(false);
            let problem = failed(error);
            self.talk.say(&problem.to_string());
            let undone = self.resume(bus);
            return Err(undone.err().unwrap_or(problem));
        }
        self.note(|hold, now| hold.paused = Some(now));
        self.end(true);
        let deadline = humantime::format_duration(Duration::from_secs(deadline_s));
        self.talk.say(&format!(
            "{unit} is stopped and masked; {timer} starts it again in {deadline} at the latest"
        ));
        Ok(())
    }

    /// Gives what an earlier process has paused a deadline of its own.
    pub(in crate::commands) fn rearm(&mut self, bus: &Bus, deadline: Duration) -> Result<(), Problem> {
        let Some(hold) = &mut self.window.hold else { return Ok(()) };
        let (unit, timer) = (hold.unit.clone(), kubelet::timer_name());
        (hold.timer, hold.deadline) = (timer.clone(), deadline.as_secs());
        self.save().map_err(|error| error.problem())?;
        kubelet::arm(bus, &timer, &unit, deadline)
            .map_err(|error| Problem::error(Code::KubeletNotPaused, unit, error.to_string()))?;
        self.note(|hold, now| hold.armed = Some(now));
        Ok(())
    }

    /// Starts the unit again and ends the deadline. Where that fails the deadline stays, and the window is still open.
    pub(in crate::commands) fn resume(&mut self, bus: &Bus) -> Result<(), Problem> {
        let Some(unit) = self.window.hold.as_ref().map(|hold| hold.unit.clone()) else { return Ok(()) };
        self.begin(PhaseName::Resume, &format!("resuming {unit}"));
        let result = kubelet::resume(bus, &unit);
        if let Err(error) = result {
            self.end(false);
            let message =
                format!("{error}; the deadline stays armed. `systemctl status {unit}`, then `netfix resume`");
            return Err(Problem::error(Code::KubeletNotResumed, unit, message));
        }
        // The deadline, or somebody, may have started it long before.
        let since = bus.active_since(&unit).ok().flatten();
        let since = since.and_then(|since| since.checked_sub(self.window.started_boottime));
        self.note(|hold, now| {
            let is_in_window = |since: &u64| (hold.paused.unwrap_or_default()..now).contains(since);
            hold.resumed = Some(since.filter(is_in_window).unwrap_or(now));
        });
        let disarmed = self.disarm(bus);
        self.end(disarmed.is_ok());
        self.talk.say(&format!("{unit} runs again"));
        disarmed
    }

    /// Ends the deadline of a unit that runs again.
    pub(super) fn disarm(&self, bus: &Bus) -> Result<(), Problem> {
        kubelet::disarm(bus).map_err(|error| {
            let unit = self.window.hold.as_ref().map(|hold| hold.unit.clone()).unwrap_or_default();
            let message = format!("the deadline's timer could not be ended, and does no harm: {error}");
            Problem::warning(Code::Failed, unit, message)
        })
    }

    fn note(&mut self, what: impl FnOnce(&mut Hold, u64)) {
        let now = self.now();
        if let Some(hold) = &mut self.window.hold {
            what(hold, now);
        }
        self.save_as_possible();
    }
}
