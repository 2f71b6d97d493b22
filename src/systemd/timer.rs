//! The deadline: a transient timer of systemd that starts the unit again, even if netfix is gone.

use std::path::Path;
use std::time::Duration;

use zbus::Variant;

use crate::model::problem::SystemdCause;
use crate::systemd::bus::Bus;

/// The prefix of all deadlines; the pid of the netfix that armed it follows.
const TIMER_PREFIX: &str = "netfix-deadline-";

/// How long systemd may take to start or stop a timer.
const STOP_LIMIT: Duration = Duration::from_secs(20);

/// A property of a transient unit (systemd.unit(5)).
pub(super) type Properties<'a> = Vec<(&'a str, Variant<'a>)>;
/// `ExecStart=`: path, arguments, whether to ignore a failure.
pub(super) type Exec<'a> = (&'a str, Vec<&'a str>, bool);

/// The name of this process's timer.
pub fn timer_name() -> String {
    format!("{TIMER_PREFIX}{}.timer", std::process::id())
}

/// How long netfix may take at the deadline before the unit starts, as timeout(1) takes it.
const NETFIX_LIMIT: &str = "60s";

/// How long what a deadline runs may take: netfix, then the start of the unit.
const WORK_LIMIT: Duration = Duration::from_secs(240);

/// Arms the timer of that name, on the monotonic clock, and disarms every other deadline, also one at work: it would start the
/// unit while the caller works. At the deadline netfix runs with `words` first, for a limited time; then the unit starts,
/// even if that failed. Fails where systemctl(1), rm(1) or timeout(1) is missing.
pub fn arm(
    bus: &Bus,
    timer: &str,
    unit: &str,
    after: Duration,
    words: &[String],
) -> Result<(), SystemdCause> {
    let (systemctl, remove) = (program("systemctl")?, program("rm")?);
    let (timeout, netfix) = (program("timeout")?, own_program()?);
    let control = format!("/run/systemd/system.control/{unit}");
    let words: Vec<String> = words.iter().map(|word| escaped(word)).collect();
    let bounded = ["timeout", "--kill-after=5s", NETFIX_LIMIT, &netfix];
    let bounded = bounded.into_iter().chain(words.iter().map(String::as_str));
    let commands: Vec<Exec<'_>> = vec![
        (&timeout, bounded.collect(), true),
        (&remove, vec!["rm", "-f", &control], true),
        (
            &systemctl,
            vec!["systemctl", "unmask", "--runtime", unit],
            true,
        ),
        (&systemctl, vec!["systemctl", "daemon-reload"], true),
        (&systemctl, vec!["systemctl", "start", unit], false),
    ];
    let microseconds = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
    let description = format!("starts {unit} again if netfix does not");
    let of_timer: Properties<'_> = vec![
        ("Description", description.as_str().into()),
        (
            "TimersMonotonic",
            vec![("OnActiveSec", microseconds)].into(),
        ),
        ("AccuracyUSec", 100_000_u64.into()),
        ("RemainAfterElapse", false.into()),
        ("CollectMode", "inactive-or-failed".into()),
    ];
    let of_service: Properties<'_> = vec![
        ("Description", description.as_str().into()),
        ("Type", "oneshot".into()),
        ("ExecStart", commands.into()),
        ("CollectMode", "inactive-or-failed".into()),
    ];
    let service = format!("{}.service", timer.trim_end_matches(".timer"));
    let body = (timer, "replace", of_timer, vec![(&*service, of_service)]);
    let job = bus.job("StartTransientUnit", &body, STOP_LIMIT);
    if bus.unit(timer)?.active != "active" {
        return Err(SystemdCause::NotArmed {
            timer: timer.to_owned(),
            job: job.map_err(Box::new),
        });
    }
    end(bus, |name| name != timer && name != service)
}

/// Whether the timer of that name has yet to elapse. After that it guards nothing: a unit that is stopped later stays
/// stopped.
pub fn is_pending(bus: &Bus, timer: &str) -> Result<bool, SystemdCause> {
    Ok(bus.unit(timer)?.sub == "waiting")
}

/// Whether a deadline has come, and what it runs has not ended.
pub fn is_deadline_at_work(bus: &Bus) -> Result<bool, SystemdCause> {
    bus.is_busy(&format!("{TIMER_PREFIX}*.service"))
}

/// Does at once what every deadline that is armed was to do: netfix restores the pods, and the unit starts.
pub fn start_deadlines(bus: &Bus) -> Result<(), SystemdCause> {
    for timer in bus.names(&format!("{TIMER_PREFIX}*.timer"))? {
        if is_pending(bus, &timer)? {
            let service = format!("{}.service", timer.trim_end_matches(".timer"));
            let job = bus.job("StartUnit", &(service.as_str(), "replace"), WORK_LIMIT)?;
            if job != "done" {
                return Err(SystemdCause::NotStarted {
                    unit: service.clone(),
                    job: Ok(job),
                    active: bus.unit(&service)?.active,
                    sub: String::new(),
                });
            }
        }
    }
    Ok(())
}

/// Disarms every deadline, also one that has come and is at work.
pub fn disarm(bus: &Bus) -> Result<(), SystemdCause> {
    end(bus, |_| true)
}

fn end(bus: &Bus, which: impl Fn(&str) -> bool) -> Result<(), SystemdCause> {
    // Timers first: they start the services.
    for kind in ["timer", "service"] {
        for name in bus.names(&format!("{TIMER_PREFIX}*.{kind}"))? {
            if which(&name) {
                let ended = bus.job("StopUnit", &(name.as_str(), "replace"), STOP_LIMIT);
                // An error is expected for a unit that has just ended.
                if !bus.unit(&name)?.is_stopped() {
                    ended?;
                }
            }
        }
    }
    Ok(())
}

/// This program's path.
pub(super) fn own_program() -> Result<String, SystemdCause> {
    let program = std::env::current_exe().map_err(|error| SystemdCause::NoOwnPath {
        error: error.to_string(),
    })?;
    Ok(installed(&program.display().to_string(), |path| {
        path.exists()
    }))
}

/// The path at which a running program is installed. The kernel appends a word to the path of a file that was replaced, as by an
/// upgrade of the package during a window: the new file is at the path without it.
fn installed(path: &str, exists: impl Fn(&Path) -> bool) -> String {
    match path.strip_suffix(" (deleted)") {
        Some(replaced) if !exists(Path::new(path)) && exists(Path::new(replaced)) => {
            replaced.to_owned()
        }
        _ => path.to_owned(),
    }
}

/// An argument for systemd, which expands `$NAME`, and turns `$$` into `$` (systemd.service(5)).
pub(super) fn escaped(word: &str) -> String {
    word.replace('$', "$$")
}

/// A program's path, which systemd needs.
fn program(name: &'static str) -> Result<String, SystemdCause> {
    let places = ["/usr/bin", "/bin", "/run/current-system/sw/bin"];
    let mut paths = places.iter().map(|folder| format!("{folder}/{name}"));
    paths
        .find(|path| Path::new(path).exists())
        .ok_or(SystemdCause::ProgramMissing { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_while_it_runs_is_at_its_old_path() {
        let only = |known: &'static str| move |path: &Path| path == Path::new(known);
        let running = "/usr/bin/netfix (deleted)";
        assert_eq!(
            installed(running, only("/usr/bin/netfix")),
            "/usr/bin/netfix"
        );
        assert_eq!(installed(running, only(running)), running);
        assert_eq!(installed(running, |_| false), running);
    }
}
