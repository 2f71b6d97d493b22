//! The terminal's side of a window that runs as a unit: starts it and shows its log. The unit does not need it.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::maintenance::log_file;
use crate::maintenance::window_log::{self, FOLDER};
use crate::model::problem::DetachedCause;
use crate::model::{Bytes, Problem};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::systemd::{self, Bus, Detached, Ended};

/// How often netfix shows what is new in the unit's log.
const INTERVAL: Duration = Duration::from_millis(50);
/// The variables of this shell's environment that the unit gets: every user can read them from systemd.
const PASSED_ON: [&str; 9] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TERM",
    "NO_COLOR",
    "COLUMNS",
    "DBUS_SYSTEM_BUS_ADDRESS",
];

/// Runs this very command as a unit, which prints the answer; returns its exit code.
pub(crate) fn run(bus: Bus, store: &Store) -> Result<u8, Refusal> {
    let failed = |error: io::Error| {
        let error = error.to_string();
        Refusal::failed(DetachedCause::SharedFile { error }.error(FOLDER))
    };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (answer_path, mut answer) = shared_file("answer").map_err(failed)?;
    let (log_path, mut log) = shared_file("talk").map_err(failed)?;
    let started = systemd::detach(bus, &words(), &environment(), (&answer_path, &log_path));
    // The unit has them open: nothing is left when this process dies.
    for path in [&answer_path, &log_path] {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_dir(FOLDER);
    let unit = started.map_err(|error| {
        let error = error.to_string();
        DetachedCause::NotDetached { error }.error(systemd::UPGRADE_UNIT)
    })?;
    let ended = watch(&unit, &mut log, &mut signals)?;
    let _ = io::copy(&mut answer, &mut io::stdout());
    let cause = match ended {
        Ended::Code(code) => return Ok(code),
        Ended::Forgotten => match exit_of(&unit, store) {
            Some(code) => return Ok(code),
            None => DetachedCause::EndUnknown,
        },
        Ended::Signal(signal) => killed(signal.into(), store),
    };
    Err(Refusal::failed(cause.error(systemd::UPGRADE_UNIT)))
}

/// Without a record, the window's first change was still to come.
fn killed(signal: u32, store: &Store) -> DetachedCause {
    match store.open_window() {
        Ok(None) => {
            window_log::sweep();
            DetachedCause::KilledBefore { signal }
        }
        Ok(Some(_)) | Err(_) => DetachedCause::Killed { signal },
    }
}

/// The exit code as the window's record has it.
fn exit_of(unit: &Detached, store: &Store) -> Option<u8> {
    let newest = store.windows().ok()?.pop()?;
    let record = store.load_window(&newest).ok()??;
    record.exit.filter(|_| record.owner.pid == unit.pid)
}

/// Shows the unit's log until it has ended, and passes signals on to it.
fn watch(unit: &Detached, log: &mut File, signals: &mut Signals) -> Result<Ended, Problem> {
    loop {
        let ended = unit.ended().map_err(|error| {
            let error = error.to_string();
            DetachedCause::NotQueried { error }.error(systemd::UPGRADE_UNIT)
        })?;
        if window_log::copy(log, &mut io::stderr()).is_ok() {
            let shown = log.stream_position().unwrap_or_default();
            log_file::give_back(log, shown);
        }
        if let Some(ended) = ended {
            return Ok(ended);
        }
        for signal in signals.pending() {
            // Fails where the unit has just ended.
            let _ = unit.signal(signal);
        }
        thread::sleep(INTERVAL);
    }
}

/// A file that the unit writes and this process reads.
fn shared_file(name: &str) -> io::Result<(PathBuf, File)> {
    let path = Path::new(FOLDER).join(format!("{name}-{}", std::process::id()));
    let file = window_log::create(&path)?;
    Ok((path, file))
}

/// This process's arguments, and options that keep it in this process without a confirmation.
fn words() -> Vec<String> {
    // D-Bus carries UTF-8 only. Of all arguments, the selectors alone may have other bytes, and are patterns.
    let words = env::args_os().skip(1);
    let mut words: Vec<String> = words
        .map(|word| Bytes::from(word.as_os_str()).as_pattern())
        .collect();
    let end = words
        .iter()
        .position(|word| word == "--")
        .unwrap_or(words.len());
    let has = |word: &str| words[..end].iter().any(|own| own == word);
    let added = ["--yes", "--foreground"]
        .into_iter()
        .filter(|word| !(has(word) || *word == "--yes" && has("-y")));
    let added: Vec<String> = added.map(str::to_owned).collect();
    words.splice(end..end, added);
    words
}

fn environment() -> Vec<String> {
    let is_passed_on = |name: &str| PASSED_ON.contains(&name) || name.starts_with("NETFIX_");
    env::vars_os()
        .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
        .filter(|(name, _)| is_passed_on(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}
