//! Stops a unit and masks it; unmasks and starts it.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::fault;
use crate::model::problem::SystemdCause;
use crate::systemd::bus::{Bus, UnitState};

/// How long systemd may take to stop a unit: `TimeoutStopSec=` is 90 s by default, and then it kills.
const STOP_LIMIT: Duration = Duration::from_secs(180);
/// How long systemd may take to start a unit; k3s reports its start only when it is ready.
const START_LIMIT: Duration = Duration::from_secs(120);
/// How often to stop a unit that something else starts again.
const ATTEMPTS: usize = 3;
/// The wait before the next attempt to start.
const PAUSE: Duration = Duration::from_secs(1);

/// A mask here has precedence over a unit file in `/etc/systemd/system`, which has precedence over a runtime mask
/// (systemd.unit(5), "Unit File Load Path"). Both masks end with the next boot.
const CONTROL: &str = "/run/systemd/system.control";
/// Where systemd masks a unit at runtime.
const RUNTIME: &str = "/run/systemd/system";
const NOWHERE: &str = "/dev/null";

/// The answer of the mask methods: type, link and target of each change.
type Links = Vec<(String, String, String)>;

/// Stops the unit and masks it until the next boot; returns when systemd reports both. Fails when something keeps
/// starting the unit; the unit is then stopped, and not masked.
pub fn pause(bus: &Bus, unit: &str) -> Result<(), SystemdCause> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        // `failed` is stopped too: k3s exits with an error.
        bus.job("StopUnit", &(unit, "replace"), STOP_LIMIT)?;
        let stopped = bus.unit(unit)?;
        if !stopped.is_stopped() {
            last = stopped.sub;
            continue;
        }
        match mask(bus, unit) {
            Ok(state) if state.is_held() => return Ok(()),
            // Something started it before the mask existed. Without the mask it has its settings back, with which to stop it.
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
    Err(SystemdCause::StartsAgain {
        unit: unit.to_owned(),
        sub: last,
    })
}

/// Whether the unit is still stopped and masked.
pub fn is_held(bus: &Bus, unit: &str) -> Result<bool, SystemdCause> {
    Ok(bus.unit(unit)?.is_held())
}

/// Whether the unit has a mask that ends with the next boot.
pub(super) fn is_masked_here(unit: &str) -> bool {
    let is_mask = |folder: &str| {
        let link = fs::read_link(Path::new(folder).join(unit));
        link.is_ok_and(|target| target == Path::new(NOWHERE))
    };
    [RUNTIME, CONTROL].into_iter().any(is_mask)
}

/// Unmasks the unit and starts it; returns when it is running. A running unit is left unchanged.
pub fn resume(bus: &Bus, unit: &str) -> Result<(), SystemdCause> {
    let mut result = start(bus, unit);
    for _ in 1..ATTEMPTS {
        if result.is_ok() {
            break;
        }
        thread::sleep(PAUSE);
        result = start(bus, unit);
    }
    result
}

fn start(bus: &Bus, unit: &str) -> Result<(), SystemdCause> {
    unmask(bus, unit)?;
    let is_up = |state: &UnitState| matches!(state.active.as_str(), "active" | "reloading");
    if is_up(&bus.unit(unit)?) {
        return Ok(());
    }
    let job = bus.job("StartUnit", &(unit, "replace"), START_LIMIT);
    let state = bus.unit(unit)?;
    // Its own `Restart=` is starting it again, as before the pause.
    if is_up(&state) || state.active == "activating" {
        return Ok(());
    }
    Err(SystemdCause::NotStarted {
        unit: unit.to_owned(),
        job: job.map_err(Box::new),
        active: state.active,
        sub: state.sub,
    })
}

/// Masks a stopped unit, wherever its unit file is.
fn mask(bus: &Bus, unit: &str) -> Result<UnitState, SystemdCause> {
    // systemd refuses this for a unit file in /run/systemd/system.
    let masked: Result<Links, _> = bus.call("MaskUnitFiles", &(vec![unit], true, false));
    reload(bus)?;
    let state = bus.unit(unit)?;
    if state.is_masked() {
        return Ok(state);
    }
    link(unit).map_err(|error| SystemdCause::NotMasked {
        unit: unit.to_owned(),
        folder: CONTROL,
        error: error.to_string(),
        refused: masked.err().map(Box::new),
    })?;
    reload(bus)?;
    bus.unit(unit)
}

fn reload(bus: &Bus) -> Result<(), SystemdCause> {
    bus.call("Reload", &())
}

fn link(unit: &str) -> io::Result<()> {
    fault::point("mask")?;
    fs::create_dir_all(CONTROL)?;
    symlink(NOWHERE, control_link(unit))
}

fn control_link(unit: &str) -> PathBuf {
    Path::new(CONTROL).join(unit)
}

fn unmask(bus: &Bus, unit: &str) -> Result<(), SystemdCause> {
    let link = control_link(unit);
    if fs::read_link(&link).is_ok_and(|target| target == Path::new(NOWHERE)) {
        fault::point("unmask")
            .and_then(|()| fs::remove_file(&link))
            .map_err(|error| SystemdCause::NotUnmasked {
                link: link.display().to_string(),
                error: error.to_string(),
            })?;
    }
    let _: Links = bus.call("UnmaskUnitFiles", &(vec![unit], true))?;
    reload(bus)
}
