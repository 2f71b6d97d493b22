//! The terminal's end of a window that runs as a unit of its own: starts it, shows what it says, and may go away.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, thread};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::commands::Outcome;
use crate::kubelet::{self, Bus, Detached, Ended};
use crate::model::{Code, Problem};
use crate::store::Store;

const FOLDER: &str = "/run/netfix";
/// How often it is looked whether there is something new to show.
const PAUSE: Duration = Duration::from_millis(50);
/// What of this shell's environment the unit gets: others could read all of it from systemd.
const PASSED_ON: [&str; 9] =
    ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TERM", "NO_COLOR", "COLUMNS", "DBUS_SYSTEM_BUS_ADDRESS"];

/// Runs this very command as a unit; the answer is that unit's, which has been printed when this returns.
pub(super) fn run(bus: Bus, store: &Store) -> Outcome {
    match follow(bus, store) {
        Ok(code) => Outcome::printed(code),
        Err(problem) if problem.code == Code::Failed => Outcome::failed(problem),
        Err(problem) => Outcome::refused(problem),
    }
}

fn follow(bus: Bus, store: &Store) -> Result<u8, Problem> {
    let failed = |error: io::Error| Problem::error(Code::Failed, FOLDER, error.to_string());
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failed)?;
    let (answer_path, mut answer) = shared_file("answer").map_err(failed)?;
    let (talk_path, mut talk) = shared_file("talk").map_err(failed)?;
    let started = kubelet::detach(bus, &words(), &environment(), (&answer_path, &talk_path));
    // It has them open; nothing is left when this process dies.
    for path in [&answer_path, &talk_path] {
        let _ = fs::remove_file(path);
    }
    let _ = fs::remove_dir(FOLDER);
    let unit = started.map_err(|error| {
        let message = format!("{error}; `netfix upgrade --foreground` goes without a unit");
        Problem::error(Code::SystemdUnreachable, kubelet::UPGRADE_UNIT, message)
    })?;
    let ended = watch(&unit, &mut talk, &mut signals)?;
    copy(&mut answer, &mut io::stdout());
    match ended {
        Ended::Code(code) => Ok(code),
        Ended::Forgotten => exit_of(&unit, store).ok_or_else(|| {
            let message = "has ended, and nobody knows how: `netfix status`, `netfix report`";
            Problem::error(Code::Failed, kubelet::UPGRADE_UNIT, message)
        }),
        Ended::Signal(signal) => {
            let message = format!(
                "was ended by signal {signal}, and left the window open: `netfix status`. The deadline starts kubelet \
                 again; `netfix restore`, then `netfix resume`"
            );
            Err(Problem::error(Code::Failed, kubelet::UPGRADE_UNIT, message))
        }
    }
}

/// The exit code as the window's record has it.
fn exit_of(unit: &Detached, store: &Store) -> Option<u8> {
    let newest = store.windows().ok()?.pop()?;
    let record = store.load_window(&newest).ok()??;
    record.exit.filter(|_| record.owner.pid == unit.pid)
}

/// Shows what is said until the unit has ended; a wish to end is passed on to it.
fn watch(unit: &Detached, talk: &mut File, signals: &mut Signals) -> Result<Ended, Problem> {
    loop {
        let ended = unit.ended().map_err(|error| {
            let message = format!("{error}; the window goes on by itself: `netfix status --follow`");
            Problem::error(Code::SystemdUnreachable, kubelet::UPGRADE_UNIT, message)
        })?;
        copy(talk, &mut io::stderr());
        if let Some(ended) = ended {
            return Ok(ended);
        }
        for signal in signals.pending() {
            // One that has just ended needs none.
            let _ = unit.signal(signal);
        }
        thread::sleep(PAUSE);
    }
}

fn copy(from: &mut File, to: &mut dyn Write) {
    let mut bytes = Vec::new();
    if from.read_to_end(&mut bytes).is_ok() {
        let _ = to.write_all(&bytes).and_then(|()| to.flush());
    }
}

/// A file that the unit writes and this process reads.
fn shared_file(name: &str) -> io::Result<(PathBuf, File)> {
    DirBuilder::new().recursive(true).mode(0o700).create(FOLDER)?;
    let path = Path::new(FOLDER).join(format!("{name}-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.read(true).append(true).create_new(true).mode(0o600).open(&path)?;
    Ok((path, file))
}

/// This process's words, and those that make it stay where it is and ask nobody.
fn words() -> Vec<String> {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let has = |word: &str| words[..end].iter().any(|own| own == word);
    let added =
        ["--yes", "--foreground"].into_iter().filter(|word| !(has(word) || *word == "--yes" && has("-y")));
    let added: Vec<String> = added.map(str::to_owned).collect();
    words.splice(end..end, added);
    words
}

fn environment() -> Vec<String> {
    let is_passed_on = |name: &str| PASSED_ON.contains(&name) || name.starts_with("NETFIX_");
    env::vars()
        .filter(|(name, _)| is_passed_on(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}
