//! What is said during a window, and what the user's command prints: one log, in memory while the window is open, that
//! several may follow.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::clock;

/// A folder that a full disk does not touch, for root only.
const FOLDER: &str = "/run/netfix";
/// How often a log is looked at.
const PAUSE: Duration = Duration::from_millis(50);

/// The log of an open window.
#[derive(Debug)]
pub(in crate::commands) struct Talk {
    log: Option<(File, PathBuf)>,
    echo: Option<Echo>,
}

impl Talk {
    /// A new log; `echo` says whether it is to be seen on stderr as well. Where none can be made, stderr is all.
    pub(super) fn open(id: &str, echo: bool) -> Self {
        let path = Path::new(FOLDER).join(std::process::id().to_string()).join(format!("{id}.log"));
        let log = create(&path).ok().map(|file| (file, path));
        let echo =
            log.as_ref().filter(|_| echo).map(|(_, path)| Echo::start(path.clone(), SeekFrom::Start(0)));
        Self { log, echo }
    }

    /// No log: whoever calls hears it.
    pub(super) fn on_stderr() -> Self {
        Self { log: None, echo: None }
    }

    /// The same, shown on stderr from here on.
    pub(super) fn with_echo(mut self) -> Self {
        self.echo = self.path().map(|path| Echo::start(path.to_owned(), SeekFrom::End(0)));
        self
    }

    /// Says again what was said before, by another process.
    pub(super) fn repeat(&self, said: &[u8]) {
        let _ = self.log.as_ref().map(|(log, _)| (&*log).write_all(said));
    }

    /// Where it is.
    pub(super) fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(|(_, path)| path.as_path())
    }

    /// Another hand on the same log.
    pub(in crate::commands) fn clone_hand(&self) -> Self {
        let log = self.log.as_ref().and_then(|(file, path)| Some((file.try_clone().ok()?, path.clone())));
        Self { log, echo: None }
    }

    /// Says a line. Nothing that is said is worth stopping for: a terminal may be gone, a disk full.
    pub(in crate::commands) fn say(&self, text: &str) {
        let line = format!("{} netfix: {text}\n", clock::of_day());
        let _ = match &self.log {
            Some((log, _)) => (&*log).write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }

    /// Where the user's command is to write. It is a file of its own right, so that the command does not notice when
    /// netfix ends.
    pub(in crate::commands) fn output(&self) -> Stdio {
        let file = self.log.as_ref().and_then(|(log, _)| log.try_clone().ok());
        file.map_or_else(Stdio::inherit, Stdio::from)
    }

    /// Ends the echo, once it has shown everything.
    pub(super) fn hush(&mut self) {
        self.echo = None;
    }
}

/// Whether a path is the one of a log in memory: a file may name any.
pub(super) fn is_live(path: &Path) -> bool {
    path.starts_with(FOLDER) && path.extension().is_some_and(|extension| extension == "log")
}

/// What a log holds; `None` when it is there no longer.
pub(super) fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(path).ok()
}

/// Takes a log out of the memory.
pub(super) fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    // Others' logs may lie there.
    let _ = path.parent().map(fs::remove_dir);
    let _ = fs::remove_dir(FOLDER);
}

/// Removes what processes have left that live no longer.
pub(super) fn sweep() {
    for entry in fs::read_dir(FOLDER).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_pid = |name: &str| name.parse::<u32>().is_ok();
        if name.to_str().is_some_and(is_pid) && !Path::new("/proc").join(&name).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let _ = fs::remove_dir(FOLDER);
}

fn create(path: &Path) -> io::Result<File> {
    let folder = path.parent().unwrap_or(Path::new(FOLDER));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut options = OpenOptions::new();
    options.create_new(true).append(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Shows a log on stderr as it grows.
#[derive(Debug)]
struct Echo {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Echo {
    fn start(path: PathBuf, from: SeekFrom) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let follow = move || {
            let _ = follow(&path, from, &mut io::stderr(), || stopped.load(Ordering::SeqCst));
        };
        Self { stop, thread: Some(thread::spawn(follow)) }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Copies a log from there on, as it grows, until `ended` says that nothing more will come; returns where the copy ends.
///
/// # Errors
/// When the log is not there, or whoever reads the copy is gone.
pub(in crate::commands) fn follow(
    path: &Path,
    from: SeekFrom,
    to: &mut dyn Write,
    mut ended: impl FnMut() -> bool,
) -> io::Result<u64> {
    let mut log = File::open(path)?;
    log.seek(from)?;
    let mut bytes = Vec::new();
    loop {
        let is_last = ended();
        bytes.clear();
        log.read_to_end(&mut bytes)?;
        to.write_all(&bytes).and_then(|()| to.flush())?;
        if is_last {
            return log.stream_position();
        }
        if bytes.is_empty() {
            thread::sleep(PAUSE);
        }
    }
}
