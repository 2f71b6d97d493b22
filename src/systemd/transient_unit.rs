//! Runs netfix as a transient unit, independent of the user's terminal.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::model::problem::SystemdCause;
use crate::systemd::bus::Bus;
use crate::systemd::timer::{Exec, Properties, escaped, own_program};

/// The unit of an upgrade. While processes of an earlier COMMAND keep this unit, the next one is
/// `netfix-upgrade-<pid>.service`.
pub const UPGRADE_UNIT: &str = "netfix-upgrade.service";

const SERVICE: &str = "org.freedesktop.systemd1.Service";
/// How long systemd may take to start a program.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How long systemd waits for the unit to stop, in microseconds.
const STOP_PATIENCE: u64 = 900_000_000;

/// A netfix that runs as a unit. systemd keeps its result while this value exists.
#[derive(Debug)]
pub struct Detached {
    bus: Bus,
    unit: String,
    /// Its main process.
    pub pid: u32,
}

/// How a netfix that runs as a unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitEnd {
    /// It ended with this exit code.
    Code(u8),
    Signal(u8),
    /// It ended, and systemd lost its result in a restart of the bus.
    Forgotten,
}

impl UnitEnd {
    /// From `ExecMainCode` and `ExecMainStatus`, read in the other order: a unit that systemd has forgotten has 0 in both.
    fn of(code: i32, status: i32) -> Self {
        let status = u8::try_from(status).unwrap_or(u8::MAX);
        match code {
            nix::libc::CLD_EXITED => Self::Code(status),
            nix::libc::CLD_KILLED | nix::libc::CLD_DUMPED => Self::Signal(status),
            _ => Self::Forgotten,
        }
    }
}

/// Starts this program with these arguments as [`UPGRADE_UNIT`]; its stdout and stderr are appended to the files of
/// `output`. Fails when the unit runs already.
pub fn detach(
    bus: Bus,
    words: &[String],
    environment: &[String],
    output: (&Path, &Path),
) -> Result<Detached, SystemdCause> {
    let program = own_program()?;
    let folder = std::env::current_dir()
        .map_err(|error| SystemdCause::NotPrepared {
            error: error.to_string(),
        })?
        .display()
        .to_string();
    let words: Vec<String> = words.iter().map(|word| escaped(word)).collect();
    let all = std::iter::once("netfix")
        .chain(words.iter().map(String::as_str))
        .collect();
    let (stdout, stderr) = (
        output.0.display().to_string(),
        output.1.display().to_string(),
    );
    let start: Vec<Exec<'_>> = vec![(&program, all, false)];
    let properties: Properties<'_> = vec![
        ("Description", "netfix: a maintenance window".into()),
        // The job ends after execve(2) succeeded.
        ("Type", "exec".into()),
        ("ExecStart", start.into()),
        ("WorkingDirectory", folder.as_str().into()),
        ("Environment", environment.to_vec().into()),
        ("StandardOutputFileToAppend", stdout.as_str().into()),
        ("StandardErrorFileToAppend", stderr.as_str().into()),
        // If netfix dies, the user's command finishes its driver upgrade.
        ("KillMode", "process".into()),
        // A stop of the unit waits for the restore of the pods.
        ("TimeoutStopUSec", STOP_PATIENCE.into()),
        ("AddRef", true.into()),
        ("CollectMode", "inactive-or-failed".into()),
    ];
    let others: Vec<(&str, Properties<'_>)> = Vec::new();
    let unit = free_name(&bus)?;
    let body = (unit.as_str(), "fail", properties, others);
    let result = bus.job("StartTransientUnit", &body, START_LIMIT)?;
    if result != "done" {
        return Err(SystemdCause::NotLaunched { unit, result });
    }
    let pid = bus.property(&unit, SERVICE, "ExecMainPID");
    let pid = pid.unwrap_or_default();
    Ok(Detached { bus, unit, pid })
}

/// The name for the unit. While a unit runs under the usual name, systemd refuses a second one.
fn free_name(bus: &Bus) -> Result<String, SystemdCause> {
    let state = bus.unit(UPGRADE_UNIT)?;
    if state.exists() && state.is_stopped() {
        return Ok(format!("netfix-upgrade-{}.service", std::process::id()));
    }
    Ok(UPGRADE_UNIT.to_owned())
}

impl Detached {
    /// How it ended; `None` while it runs.
    pub fn ended(&self) -> Result<Option<UnitEnd>, SystemdCause> {
        let state = self.bus.unit(&self.unit)?;
        if !state.is_stopped() {
            return Ok(None);
        }
        if !state.exists() {
            return Ok(Some(UnitEnd::Forgotten));
        }
        let status = self.bus.property(&self.unit, SERVICE, "ExecMainStatus")?;
        let code = self.bus.property(&self.unit, SERVICE, "ExecMainCode")?;
        Ok(Some(UnitEnd::of(code, status)))
    }

    /// Sends a signal to its main process.
    pub fn signal(&self, signal: i32) -> Result<(), SystemdCause> {
        self.bus
            .call("KillUnit", &(self.unit.as_str(), "main", signal))
    }
}

/// Whether systemd's units would run in this process's network namespace and see its files.
pub fn is_at_home() -> bool {
    is_that_of_systemd("net") && is_that_of_systemd("mnt")
}

/// Whether systemd and its services configure the links of this process's network namespace. A service can have a mount namespace of
/// its own (`PrivateMounts=`), with the machine's `/run` in it.
pub fn configures_links() -> bool {
    let run = |root: &str| fs::metadata(format!("{root}/run")).map(|run| (run.dev(), run.ino()));
    let has_its_run =
        || matches!((run("/proc/1/root"), run("")), (Ok(one), Ok(other)) if one == other);
    is_that_of_systemd("net") && (is_that_of_systemd("mnt") || has_its_run())
}

/// Whether this process has the namespace of process 1. Without permission to read that, assume so.
fn is_that_of_systemd(kind: &str) -> bool {
    let link = |of: &str| fs::read_link(format!("/proc/{of}/ns/{kind}")).ok();
    link("1").is_none_or(|theirs| link("self") == Some(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_systemd_has_forgotten_was_not_killed() {
        assert_eq!(UnitEnd::of(1, 7), UnitEnd::Code(7));
        assert_eq!(UnitEnd::of(2, 9), UnitEnd::Signal(9));
        assert_eq!(UnitEnd::of(0, 0), UnitEnd::Forgotten);
    }
}
