//! Whether a window is needed at all, and whether the driver runs in the version that it was for.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use crate::inventory::nics;
use crate::model::problem::{CommandCause, ConditionCause};
use crate::model::text::module_name;
use crate::model::{Nic, Problem};
use crate::refusal::Refusal;

/// A driver and the version in which it is to run, such as `i40e=2.28.7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverVersion {
    driver: String,
    version: String,
}

impl FromStr for DriverVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |name: &str| {
            let mut bytes = name.bytes();
            !name.is_empty() && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        };
        match text.split_once('=') {
            Some((driver, version)) if is_name(driver) && !version.is_empty() => Ok(Self {
                driver: driver.to_owned(),
                version: version.to_owned(),
            }),
            _ => Err("not DRIVER=VERSION, such as i40e=2.28.7".to_owned()),
        }
    }
}

/// Why no window is needed: all drivers run in these versions, and `unless`, a command for `sh -c`, succeeds. `None` where one
/// is, as without conditions.
///
/// # Errors
/// A version cannot be read, or the command does not run.
pub(crate) fn already_done(
    unless: Option<&str>,
    drivers: &[DriverVersion],
) -> Result<Option<Problem>, Refusal> {
    for wanted in drivers {
        if running(&wanted.driver)?.as_ref() != Some(&wanted.version) {
            return Ok(None);
        }
    }
    if let Some(command) = unless {
        return Ok(succeeds(command)?.then(|| ConditionCause::UnlessSucceeded.info(command)));
    }
    let drivers: Vec<&str> = drivers.iter().map(|one| one.driver.as_str()).collect();
    Ok((!drivers.is_empty()).then(|| ConditionCause::InVersion.info(drivers.join(", "))))
}

/// The drivers that neither a NIC of the host has nor the kernel knows.
pub(crate) fn unknown_drivers(wanted: &[DriverVersion]) -> Vec<Problem> {
    let problems =
        wanted
            .iter()
            .filter_map(|DriverVersion { driver, .. }| match is_known(driver) {
                Ok(true) => None,
                Ok(false) => Some(ConditionCause::NoSuchDriver.error(driver.as_str())),
                Err(problem) => Some(problem),
            });
    problems.collect()
}

fn is_known(driver: &str) -> Result<bool, Problem> {
    Ok(module(driver).exists() || is_installed(driver) || !nics_of(driver)?.is_empty())
}

/// Whether depmod(8) has listed a module of this name for the kernel that runs, built in or not.
fn is_installed(driver: &str) -> bool {
    let Ok(release) = fs::read_to_string("/proc/sys/kernel/osrelease") else {
        return false;
    };
    let folder = Path::new("/lib/modules").join(release.trim_end());
    let is_it = |line: &str| {
        let path = line.split(':').next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = file.split(".ko").next().unwrap_or_default();
        module_name(name) == module_name(driver)
    };
    let lists =
        ["modules.dep", "modules.builtin"].map(|list| fs::read_to_string(folder.join(list)));
    lists.iter().flatten().any(|list| list.lines().any(is_it))
}

/// The folder of a module that is loaded.
fn module(driver: &str) -> PathBuf {
    Path::new("/sys/module").join(module_name(driver))
}

fn nics_of(driver: &str) -> Result<Vec<Nic>, Problem> {
    nics::of_driver(driver).map_err(|error| version_unreadable(driver, error.to_string()))
}

fn version_unreadable(driver: &str, error: String) -> Problem {
    ConditionCause::VersionUnreadable { error }.error(driver)
}

/// The drivers that do not run in the wanted version.
pub(crate) fn other_versions(wanted: &[DriverVersion]) -> Vec<Problem> {
    let problems = wanted.iter().filter_map(|wanted| {
        let version = wanted.version.clone();
        let cause = match running(&wanted.driver) {
            Ok(Some(running)) if running == version => return None,
            Ok(running) => ConditionCause::OtherVersion { running, version },
            Err(problem) => return Some(problem),
        };
        Some(cause.error(wanted.driver.as_str()))
    });
    problems.collect()
}

/// The version of the driver that runs: its module's (`MODULE_VERSION`), else the one that its NICs report (`ethtool -i`);
/// `None` where it is not loaded, reports none, or its NICs differ.
fn running(driver: &str) -> Result<Option<String>, Problem> {
    match fs::read_to_string(module(driver).join("version")) {
        Ok(text) => return Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(version_unreadable(driver, error.to_string())),
    }
    let mut versions = nics_of(driver)?.into_iter().map(|nic| nic.version);
    let first = versions.next().flatten();
    Ok(first.filter(|first| versions.all(|other| other.as_ref() == Some(first))))
}

/// Runs a command without input; its output goes to stderr, because stdout is for the answer.
fn succeeds(command: &str) -> Result<bool, Problem> {
    let failed = |cause| ConditionCause::UnlessFailed { cause }.error(command);
    let run = || {
        let output = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
        Command::new("sh")
            .args(["-c", command])
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            .status()
    };
    let status = run().map_err(|error| {
        let error = error.to_string();
        failed(CommandCause::NotStarted { error })
    })?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(true),
        // A shell's codes for a command that it cannot execute or find (sh(1)).
        (Some(code @ (126 | 127)), _) => Err(failed(CommandCause::Exited { code })),
        (Some(_), _) => Ok(false),
        (None, Some(signal)) => Err(failed(CommandCause::Killed { signal })),
        (None, None) => Err(failed(CommandCause::EndUnknown)),
    }
}

#[cfg(test)]
mod tests {
    use crate::upgrade::condition::*;

    #[test]
    fn a_driver_has_a_name_and_a_version() {
        let parsed: DriverVersion = "i40e=2.28.7-k=x".parse().unwrap();
        assert_eq!((&*parsed.driver, &*parsed.version), ("i40e", "2.28.7-k=x"));
        for text in ["", "i40e", "i40e=", "=1", "../net=1", "a/b=1", "a b=1"] {
            assert!(text.parse::<DriverVersion>().is_err(), "{text}");
        }
    }
}
