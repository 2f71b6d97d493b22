//! The log of a window: what netfix does, and the output of COMMAND. It is in memory while the window is open, and several
//! processes may follow it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::checked;
use crate::clock;
use crate::model::window::PhaseName;
use crate::model::{Problem, Window};
use crate::progress::Wait;
use crate::store::Guard;
pub(crate) use crate::store::MEMORY as FOLDER;
use crate::window::background::Background;
use crate::window::event::{Event, WindowMoment};
use crate::window::log_file;
use crate::window::log_file::KeptLog;

/// How often a follower reads the log.
const INTERVAL: Duration = Duration::from_millis(50);

/// The log of an open window. Without a file, lines go to stderr.
#[derive(Debug, Default)]
pub(crate) struct WindowLog {
    file: Option<(File, PathBuf)>,
    /// How much of it is kept, in bytes.
    limit: u64,
    /// Copies the file to stderr as it grows.
    echo: Option<Background>,
    /// What the window does, for the thread that logs what a signal does.
    moment: Arc<Mutex<WindowMoment>>,
}

impl WindowLog {
    /// A new log.
    pub(crate) fn open(id: &str, limit: u64) -> Self {
        let path = Path::new(FOLDER)
            .join(std::process::id().to_string())
            .join(format!("{id}.log"));
        let file = create(&path).ok().map(|file| (file, path));
        Self {
            file,
            limit,
            ..Self::default()
        }
    }

    /// The log of a window that another process has opened: with what that has logged.
    pub(crate) fn taken_over(window: &Window, limit: u64) -> Self {
        let log = Self::open(&window.id, limit);
        let earlier = window.log.as_deref().map(Path::new);
        if let Some(earlier) = earlier.filter(|log| is_live(log)) {
            log.continue_from(earlier);
        }
        log
    }

    /// Copies the log to stderr from there on.
    pub(crate) fn start_echo(&mut self, from: SeekFrom) {
        let Some(path) = self.path().map(Path::to_owned) else {
            return;
        };
        self.echo = Some(Background::start(move |stop| {
            let _ = follow(&path, from, &mut io::stderr(), || {
                stop.load(Ordering::SeqCst)
            });
        }));
    }

    /// Adds what another process has logged before, at the same offsets.
    fn continue_from(&self, earlier: &Path) {
        let Some((mut file, kept)) = self.file.as_ref().map(|(file, _)| file).zip(
            open(earlier)
                .and_then(|earlier| log_file::read(&earlier, self.limit))
                .ok(),
        ) else {
            return;
        };
        let begin = kept.head.len() as u64 + kept.left_out;
        let _ = file
            .write_all(&kept.head)
            .and_then(|()| file.set_len(begin))
            .and_then(|()| file.write_all(&kept.tail));
    }

    /// Keeps the file from growing.
    pub(crate) fn trim(&self) {
        if let Some((file, _)) = &self.file {
            log_file::trim(file, self.limit);
        }
    }

    /// What is kept of it, with a line where something is left out.
    fn kept(&self) -> Vec<u8> {
        let kept = self
            .file
            .as_ref()
            .map(|(file, _)| log_file::read(file, self.limit));
        let Some(Ok(KeptLog {
            mut head,
            left_out: bytes,
            tail,
        })) = kept
        else {
            return Vec::new();
        };
        if bytes > 0 {
            head.extend(left_out(bytes).into_bytes());
        }
        head.extend(tail);
        head
    }

    /// Moves it from memory to the records; returns its path there, if there is a log, and why it could not be moved. Where the
    /// disk refuses it, it stays in memory until a netfix can move it.
    pub(crate) fn keep(&self, id: &str, guard: &Guard) -> (Option<String>, Option<Problem>) {
        let Some(log) = self.path() else {
            return (None, None);
        };
        let (kept, problem) = match guard.add_to_window_log(id, self.kept()) {
            Ok(path) => (Some(path), None),
            Err(error) => {
                let kept = guard.keep_log_in_memory(id, &self.kept());
                (kept, Some(error.problem().demoted()))
            }
        };
        if kept.is_some() {
            remove(log);
        }
        sweep();
        (kept.map(|path| path.display().to_string()), problem)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(_, path)| path.as_path())
    }

    /// The log for a thread: a second handle of the file.
    pub(crate) fn for_thread(&self) -> Self {
        let file = self
            .file
            .as_ref()
            .and_then(|(file, path)| Some((file.try_clone().ok()?, path.clone())));
        Self {
            file,
            limit: self.limit,
            echo: None,
            moment: self.moment.clone(),
        }
    }

    /// A phase begins.
    pub(crate) fn begin(&self, phase: PhaseName, event: &Event) {
        self.line(event);
        let phase = Some(phase);
        *self.moment_now() = WindowMoment { phase, waits: None };
    }

    /// What the phase waits for from here on.
    pub(crate) fn waits_for(&self, waits: Option<Wait>) {
        self.moment_now().waits = waits;
    }

    /// What the window does.
    pub(crate) fn moment(&self) -> WindowMoment {
        *self.moment_now()
    }

    fn moment_now(&self) -> MutexGuard<'_, WindowMoment> {
        self.moment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a line. A failure stops nothing: the terminal may be gone, the memory full.
    pub(crate) fn line(&self, event: &Event) {
        let line = line(event);
        self.trim();
        let _ = match &self.file {
            Some((file, _)) => (&*file).write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }

    /// Where COMMAND writes: a file, so that COMMAND does not notice when netfix ends.
    pub(crate) fn output(&self) -> Stdio {
        let file = self
            .file
            .as_ref()
            .and_then(|(file, _)| file.try_clone().ok());
        file.map_or_else(Stdio::inherit, Stdio::from)
    }

    /// Ends the copy on stderr, once it is complete.
    pub(crate) fn end_echo(&mut self) {
        self.echo = None;
    }
}

fn line(event: &Event) -> String {
    format!("{} netfix: {event}\n", clock::of_day())
}

/// What stands for so many bytes, which may begin within a line.
fn left_out(bytes: u64) -> String {
    format!("\n{}", line(&Event::LeftOut { bytes }))
}

/// Whether this is the path of a log in memory: a record may name any path.
fn is_live(path: &Path) -> bool {
    path.starts_with(FOLDER) && path.extension().is_some_and(|extension| extension == "log")
}

fn open(path: &Path) -> io::Result<File> {
    checked::open(path, checked::is_regular)
}

/// Removes a log from memory.
pub(crate) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    // Fails while other logs are there.
    let _ = path.parent().map(fs::remove_dir);
    let _ = fs::remove_dir(FOLDER);
}

/// Removes the logs of processes that are gone.
pub(crate) fn sweep() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_pid = name.to_str().is_some_and(|pid| pid.parse::<u32>().is_ok());
        if is_pid && !Path::new("/proc").join(&name).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let _ = fs::remove_dir(FOLDER);
}

/// Creates a file in memory that others append to and this process may read.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new(FOLDER));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut options = OpenOptions::new();
    options
        .create_new(true)
        .read(true)
        .append(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// Copies what is new in a log; returns how many bytes there were.
pub(crate) fn copy(log: &mut File, to: &mut dyn Write) -> io::Result<u64> {
    log_file::copy(log, to, &mut |bytes, to| {
        to.write_all(left_out(bytes).as_bytes())
    })
}

/// Copies a log from there on, as it grows, until `ended` is true; returns where the copy ends. Fails when the log is
/// gone, or the reader of the copy.
pub(crate) fn follow(
    path: &Path,
    from: SeekFrom,
    to: &mut dyn Write,
    mut ended: impl FnMut() -> bool,
) -> io::Result<u64> {
    let mut log = open(path)?;
    log.seek(from)?;
    loop {
        let is_last = ended();
        let copied = copy(&mut log, to)?;
        if is_last {
            return log.stream_position();
        }
        if copied == 0 {
            thread::sleep(INTERVAL);
        }
    }
}
