//! Running netfix itself as a transient unit, so that it does not depend on anybody's terminal.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use zbus::OwnedObjectPath;

use super::bus::{Bus, Error};
use super::deadline::{Exec, Properties};

/// The unit in which an upgrade runs.
pub const UPGRADE_UNIT: &str = "netfix-upgrade.service";

const SERVICE: &str = "org.freedesktop.systemd1.Service";
/// How long systemd may take to start a program.
const START_LIMIT: Duration = Duration::from_secs(30);

/// A netfix that runs as a unit of its own. systemd keeps what became of it as long as this is held.
#[derive(Debug)]
pub struct Detached {
    bus: Bus,
}

/// Starts this very program with these words as [`UPGRADE_UNIT`]; what it answers and what it says go to the
/// ends of the two files of `output`.
///
/// # Errors
/// When systemd refuses, for one that it already runs, say.
pub fn detach(
    bus: Bus,
    words: &[String],
    environment: &[String],
    output: (&Path, &Path),
) -> Result<Detached, Error> {
    let failed =
        |error: io::Error| Error::State(format!("this program cannot be started as a unit: {error}"));
    let program = std::env::current_exe().map_err(failed)?.display().to_string();
    let folder = std::env::current_dir().map_err(failed)?.display().to_string();
    let all = std::iter::once("netfix").chain(words.iter().map(String::as_str)).collect();
    let (answer, talk) = (output.0.display().to_string(), output.1.display().to_string());
    let start: Vec<Exec<'_>> = vec![(&program, all, false)];
    let properties: Properties<'_> = vec![
        ("Description", "netfix: a maintenance window".into()),
        // Started means that the program could be executed.
        ("Type", "exec".into()),
        ("ExecStart", start.into()),
        ("WorkingDirectory", folder.as_str().into()),
        ("Environment", environment.to_vec().into()),
        ("StandardOutputFileToAppend", answer.as_str().into()),
        ("StandardErrorFileToAppend", talk.as_str().into()),
        // The user's command is not to be cut off in the middle of a driver, whatever becomes of netfix.
        ("KillMode", "process".into()),
        ("AddRef", true.into()),
        ("CollectMode", "inactive-or-failed".into()),
    ];
    let others: Vec<(&str, Properties<'_>)> = Vec::new();
    let unit = (UPGRADE_UNIT, "fail", properties, others);
    match bus.job("StartTransientUnit", &unit, START_LIMIT)?.as_str() {
        "done" => Ok(Detached { bus }),
        word => Err(Error::State(format!("{UPGRADE_UNIT} does not start: {word}"))),
    }
}

impl Detached {
    /// Its exit code once it has ended, `None` while it runs; 128 and the signal's number when one ended it.
    ///
    /// # Errors
    /// When systemd cannot be asked.
    pub fn ended(&self) -> Result<Option<u8>, Error> {
        const SIGNALLED: i32 = 2;
        if !self.bus.unit(UPGRADE_UNIT)?.is_stopped() {
            return Ok(None);
        }
        let path: OwnedObjectPath = self.bus.call("LoadUnit", &(UPGRADE_UNIT,))?;
        let number = |name: &str| {
            let value = self.bus.value(&path, SERVICE, name)?;
            i32::try_from(value).map_err(|error| Error::State(format!("{name}: {error}")))
        };
        let (code, status) = (number("ExecMainCode")?, number("ExecMainStatus")?);
        let status = if code == SIGNALLED { 128 + status } else { status };
        Ok(Some(u8::try_from(status).unwrap_or(1)))
    }

    /// Sends its main process a signal.
    ///
    /// # Errors
    /// When systemd cannot be asked.
    pub fn signal(&self, signal: i32) -> Result<(), Error> {
        self.bus.call("KillUnit", &(UPGRADE_UNIT, "main", signal))
    }
}

/// Whether systemd's units would run in this process's network namespace and see its files.
#[must_use]
pub fn is_at_home() -> bool {
    let same = |kind: &str| {
        let link = |of: &str| fs::read_link(format!("/proc/{of}/ns/{kind}")).ok();
        // Who may not look at process 1 has no reason to think that it lives elsewhere.
        link("1").is_none_or(|theirs| link("self") == Some(theirs))
    };
    same("net") && same("mnt")
}
