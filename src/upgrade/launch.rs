//! The terminal's side of a window that runs as a unit: starts it and shows its log. The unit does not need it.

use std::fs::{self, File};
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock;
use crate::model::problem::DetachedCause;
use crate::model::{Bytes, Problem, Window};
use crate::refusal::Refusal;
use crate::store::Store;
use crate::systemd::{self, Bus, Detached, UnitEnd};
use crate::window::log_file;
use crate::window::observed::observe;
use crate::window::records::is_owner_alive;
use crate::window::window_log;
use crate::window::window_log::FOLDER;

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

/// What came of the unit.
pub(crate) enum Launched {
    /// It has ended with this exit code, and its answer is printed.
    Ended(u8),
    /// Its window is open, or already closed.
    Opened(Box<Window>),
}

/// Runs this very command as a unit, which prints the answer, and waits for its end, or only until its window is open.
pub(crate) fn run(bus: Bus, store: &Store, detach: bool) -> Result<Launched, Refusal> {
    let failed = |error: io::Error| {
        let error = error.to_string();
        Refusal::failed(DetachedCause::SharedFile { error }.error(FOLDER))
    };
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (answer_path, mut answer) = shared_file("answer").map_err(failed)?;
    let (log_path, mut log) = shared_file("talk").map_err(failed)?;
    let since = clock::boottime();
    let started = systemd::detach(
        bus,
        &words(detach),
        &environment(),
        (&answer_path, &log_path),
    );
    // The unit has them open: nothing is left when this process dies.
    for path in [&answer_path, &log_path] {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_dir(FOLDER);
    let unit = started
        .map_err(|cause| DetachedCause::NotDetached { cause }.error(systemd::UPGRADE_UNIT))?;
    let watched = watch(&unit, &mut log, &mut signals, || {
        let window = detach.then(|| window_of(&unit, since, store));
        window.flatten().map(Box::new)
    });
    let ended = match watched? {
        Watched::Opened(window) => return Ok(Launched::Opened(window)),
        Watched::Ended(ended) => ended,
    };
    let _ = io::copy(&mut answer, &mut io::stdout());
    let cause = match ended {
        UnitEnd::Code(code) => return Ok(Launched::Ended(code)),
        UnitEnd::Forgotten => match window_of(&unit, since, store).and_then(|window| window.exit) {
            Some(code) => return Ok(Launched::Ended(code)),
            None => DetachedCause::EndUnknown,
        },
        UnitEnd::Signal(signal) => killed(signal.into(), store),
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
        open => DetachedCause::Killed {
            signal,
            now: open.ok().flatten().map(|window| observe(&window, store)),
        },
    }
}

/// The window that the unit has opened since then, as its record has it. A pid is used again.
fn window_of(unit: &Detached, since: u64, store: &Store) -> Option<Window> {
    let is_own = |window: &Window| window.owner.pid == unit.pid;
    let open = store.open_window().ok()?;
    if let Some(open) = open.filter(|open| is_own(open) && is_owner_alive(open)) {
        return Some(open);
    }
    let newest = store.windows().ok()?.pop()?;
    let record = store.load_window(&newest).ok()?;
    record.filter(|record| is_own(record) && record.started_boottime >= since)
}

/// What the terminal's side has seen of the unit.
enum Watched {
    Ended(UnitEnd),
    Opened(Box<Window>),
}

/// Shows the unit's log until it has ended or `opened` returns its window, and passes signals on to it.
fn watch(
    unit: &Detached,
    log: &mut File,
    signals: &mut Signals,
    opened: impl Fn() -> Option<Box<Window>>,
) -> Result<Watched, Problem> {
    loop {
        let ended = unit
            .ended()
            .map_err(|cause| DetachedCause::NotQueried { cause }.error(systemd::UPGRADE_UNIT))?;
        if window_log::copy(log, &mut io::stderr()).is_ok() {
            let shown = log.stream_position().unwrap_or_default();
            log_file::give_back(log, shown);
        }
        if let Some(window) = opened() {
            return Ok(Watched::Opened(window));
        }
        if let Some(ended) = ended {
            return Ok(Watched::Ended(ended));
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

/// This process's arguments, and options that keep it in this process without a confirmation. The conditions were met here. When
/// this process leaves, its stderr has no reader.
fn words(detach: bool) -> Vec<String> {
    // D-Bus carries UTF-8 only. Of all arguments, the selectors alone may have other bytes, and are patterns.
    let words = env::args_os().skip(1);
    let mut words: Vec<String> = words
        .map(|word| Bytes::from(word.as_os_str()).as_pattern())
        .collect();
    let end = words.iter().position(|word| word == "--");
    let command = words.split_off(end.unwrap_or(words.len()));
    if let Some(at) = words.iter().position(|word| word == "--detach") {
        words.remove(at);
    }
    let has = |word: &str| words.iter().any(|own| own == word);
    let added = ["--yes", "--foreground", "--needed"]
        .into_iter()
        .filter(|word| !(has(word) || *word == "--yes" && has("-y")));
    let added = added.chain(detach.then_some("--no-echo"));
    let added: Vec<String> = added.map(str::to_owned).collect();
    [words, added, command].concat()
}

fn environment() -> Vec<String> {
    env::vars_os()
        .filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()))
        .filter(|(name, _)| PASSED_ON.contains(&name.as_str()) || name.starts_with("NETFIX_"))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}
