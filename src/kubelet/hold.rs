//! Stopping a unit so that it stays stopped, and starting it again.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::bus::{Bus, Error, UnitState};
use crate::fault;

/// How long systemd may take to stop a unit: `TimeoutStopSec=` is 90 s by default, and then it kills.
const STOP_LIMIT: Duration = Duration::from_secs(180);
/// How long it may take to start one; k3s says that it is up only when it is.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How often a unit that something else starts in between is stopped again.
const ATTEMPTS: usize = 3;
/// The pause before a start is tried once more.
const PAUSE: Duration = Duration::from_secs(1);

/// Where a mask is stronger than a unit file in `/etc/systemd/system`, which hides one in `/run/systemd/system`
/// (systemd.unit(5), "Unit File Load Path"). Like that one it does not survive a reboot.
const CONTROL: &str = "/run/systemd/system.control";
const NOWHERE: &str = "/dev/null";

/// What a mask consists of: a link, and its target.
type Links = Vec<(String, String, String)>;

/// Stops the unit and masks it until the next boot; returns when both can be seen.
///
/// # Errors
/// When systemd does not do it, or something starts the unit again and again; it is then as it was, but for being stopped.
pub fn pause(bus: &Bus, unit: &str) -> Result<(), Error> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        // `failed` is stopped too: k3s does not like to be stopped.
        bus.job("StopUnit", &(unit, "replace"), STOP_LIMIT)?;
        let stopped = bus.unit(unit)?;
        if !stopped.is_stopped() {
            last = stopped.sub;
            continue;
        }
        match mask(bus, unit) {
            Ok(state) if state.is_stopped() && state.is_masked() => return Ok(()),
            // It was started before the mask was there: without the mask it has its settings back, and is stopped by them.
            Ok(state) => {
                last = state.sub;
                unmask(bus, unit)?;
            }
            Err(error) => {
                unmask(bus, unit)?;
                return Err(error);
            }
        }
    }
    Err(Error::State(format!("{unit} does not stay stopped: it is {last}; something starts it again")))
}

/// Whether the unit is still stopped and masked.
///
/// # Errors
/// When systemd cannot be asked.
pub fn is_held(bus: &Bus, unit: &str) -> Result<bool, Error> {
    let state = bus.unit(unit)?;
    Ok(state.is_stopped() && state.is_masked())
}

/// Takes the mask away and starts the unit; returns when it runs. One that runs already is left alone.
///
/// # Errors
/// When it does not come up.
pub fn resume(bus: &Bus, unit: &str) -> Result<(), Error> {
    let mut last = None;
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        match start(bus, unit) {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| Error::State(format!("{unit} was not started"))))
}

fn start(bus: &Bus, unit: &str) -> Result<(), Error> {
    unmask(bus, unit)?;
    let is_up = |state: &UnitState| matches!(state.active.as_str(), "active" | "reloading");
    if is_up(&bus.unit(unit)?) {
        return Ok(());
    }
    let result = bus.job("StartUnit", &(unit, "replace"), START_LIMIT);
    let state = bus.unit(unit)?;
    // One that is being started again by its own `Restart=` is as well off as before the pause.
    if is_up(&state) || state.active == "activating" {
        return Ok(());
    }
    let word = match result {
        Ok(word) => word,
        Err(error) => error.to_string(),
    };
    Err(Error::State(format!("{unit} does not start ({word}): it is {} ({})", state.active, state.sub)))
}

/// Masks a stopped unit, by the means that works for its kind of unit file.
fn mask(bus: &Bus, unit: &str) -> Result<UnitState, Error> {
    // Refused where a unit file lies in /run/systemd/system itself.
    let masked: Result<Links, Error> = bus.call("MaskUnitFiles", &(vec![unit], true, false));
    bus.call::<_, ()>("Reload", &())?;
    let state = bus.unit(unit)?;
    if state.is_masked() {
        return Ok(state);
    }
    let stronger = link(unit).map_err(|error| {
        let other = masked.err().map(|error| format!("; {error}")).unwrap_or_default();
        Error::State(format!("{unit} cannot be masked: {CONTROL}: {error}{other}"))
    });
    stronger?;
    bus.call::<_, ()>("Reload", &())?;
    bus.unit(unit)
}

fn link(unit: &str) -> io::Result<()> {
    fault::point("mask")?;
    fs::create_dir_all(CONTROL)?;
    symlink(NOWHERE, control_link(unit))
}

fn control_link(unit: &str) -> PathBuf {
    Path::new(CONTROL).join(unit)
}

fn unmask(bus: &Bus, unit: &str) -> Result<(), Error> {
    let link = control_link(unit);
    if fs::read_link(&link).is_ok_and(|target| target == Path::new(NOWHERE)) {
        let failed = |error| Error::State(format!("{}: {error}", link.display()));
        fault::point("unmask").and_then(|()| fs::remove_file(&link)).map_err(failed)?;
    }
    let _: Links = bus.call("UnmaskUnitFiles", &(vec![unit], true))?;
    bus.call("Reload", &())
}
