//! The lock of the state directory, and the writes under it.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::{Store, StoreError, disk, file, light};
use crate::model::checkpoint::Large;
use crate::model::problem::StoreCause;
use crate::model::{Checkpoint, NodeState, PodId};

/// The right to change the state directory: at most one process has it.
#[derive(Debug)]
pub struct Guard {
    pub(super) store: Store,
    lock: Flock<File>,
}

impl Guard {
    /// The state directory, for reading.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// The state directory.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.store.folder
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The next holder must not show up as this process.
        let _ = self.lock.set_len(0);
    }
}

/// The interval between two attempts to take the lock.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// Every command waits this long for the lock: `netfix guard` takes it for a moment to write its record.
pub(super) const MOMENT: Duration = Duration::from_millis(300);
/// How long a command waits for a restore of `netfix guard`.
pub(super) const GUARD: Duration = Duration::from_secs(60);

/// Takes the lock, or waits for it up to the limit. Polling needs no signal handler and no thread to end the wait.
fn lock(store: &Store) -> Result<Flock<File>, StoreError> {
    let path = store.folder.join("lock");
    let mut file = open(&path).map_err(StoreError::write("cannot open", &path))?;
    let begin = Instant::now();
    let mut until = begin + store.patience.max(MOMENT);
    let (mut notified, mut before) = (false, None);
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err((_, errno)) => return Err(StoreError::write("cannot lock", &path)(errno.into())),
        };
        let now = Instant::now();
        if now >= until || !(notified || store.patience.is_zero()) {
            let holder = named(known_holder(&path), &mut before);
            // The next holder may be another guard, or not have written its line yet.
            let most = begin + patience(store, &holder);
            until = until.max(most.min(now + MOMENT));
            if now >= until {
                return Err(held(store, holder));
            }
            if !notified {
                (store.notify)(&holder);
                notified = true;
            }
        }
        thread::sleep(PAUSE);
    }
}

/// The holder for messages and for how long it is waited for. One that has just left counts once more: the next one may be free to take.
fn named(known: Option<String>, before: &mut Option<String>) -> String {
    let holder = known.clone().or(before.take());
    *before = known;
    holder.unwrap_or_else(|| "another process".to_owned())
}

/// How long a command waits for this holder.
pub(super) fn patience(store: &Store, holder: &str) -> Duration {
    let is_guard = holder.contains("(guard)");
    if is_guard {
        store.guard_patience
    } else {
        store.patience
    }
}

/// The error where another process holds the lock.
pub(super) fn held(store: &Store, holder: String) -> StoreError {
    let path = store.folder.join("lock");
    let cause = StoreCause::Locked {
        path: path.display().to_string(),
        waited: patience(store, &holder),
        holder,
    };
    StoreError::new(&path, cause)
}

impl Guard {
    pub(super) fn take(store: Store, command: &str) -> Result<Self, StoreError> {
        let store = Store {
            generation: None,
            ..store
        };
        make_folder(&store.folder)?;
        let lock = lock(&store)?;
        // For messages of other processes only: the flock is the lock, and a full disk must not stop a restore.
        let text = format!(
            "pid {} ({command}) since {:.0}\n",
            std::process::id(),
            Timestamp::now()
        );
        let _ = lock
            .set_len(0)
            .and_then(|()| disk::write(&lock, text.as_bytes()));
        make_folder(&store.checkpoints())?;
        // Under the lock, no other process writes here.
        for folder in [&store.folder, &store.checkpoints(), &store.windows_folder()] {
            file::remove_unfinished(folder);
        }
        store.remove_unused_spare();
        Ok(Self { store, lock })
    }

    /// Writes a pod's checkpoint.
    pub(crate) fn save(&self, id: &PodId, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let path = self.store.checkpoint_path(id);
        file::save(&path, checkpoint, &["netfix", "checksum"])
    }

    /// What of a pod's stored checkpoint concerns other pods, if its file is large.
    pub(crate) fn large(&self, id: &PodId, checkpoint: &Checkpoint) -> Option<Large> {
        light::part(&self.store.checkpoint_path(id), checkpoint)
    }

    /// Writes the node's state.
    pub(crate) fn save_node(&self, node: &NodeState) -> Result<(), StoreError> {
        file::save(&self.store.node_path(), node, &["checksum"])
    }

    /// Removes the checkpoint of a pod that is gone; call [`Guard::keep_before`] first.
    pub(crate) fn remove(&self, id: &PodId) -> Result<(), StoreError> {
        let path = self.store.checkpoint_path(id);
        disk::remove(&path).map_err(StoreError::write("cannot remove", &path))?;
        file::sync_folder(&self.store.checkpoints())
    }
}

/// The holder of a state directory's lock; `None` when it is free.
pub(super) fn holder(folder: &Path) -> Option<String> {
    let path = folder.join("lock");
    (locker(&path).is_some() || is_locked(&path))
        .then(|| known_holder(&path))
        .flatten()
}

/// Whether the lock is held by a process that `/proc/locks` does not show: one in another pid namespace, or on a file system
/// with another device number there. Tries the lock only if its file names a holder.
fn is_locked(path: &Path) -> bool {
    let Ok(Some((file, meta))) = file::open(path, Metadata::is_file) else {
        return false;
    };
    meta.len() > 0
        && matches!(
            Flock::lock(file, FlockArg::LockSharedNonblock),
            Err((_, Errno::EWOULDBLOCK))
        )
}

/// The holder of the lock, from its file. A new holder may not have written its line yet; one that could not write, or was
/// killed, leaves the line of an earlier one. So the line must have the pid of `/proc/locks`.
fn known_holder(path: &Path) -> Option<String> {
    const LOOKS: usize = 10;
    const MOMENT: Duration = Duration::from_millis(5);
    let (mut pid, mut text) = (None, String::new());
    for _ in 0..LOOKS {
        // A process of another pid namespace has no pid there. A long list that changes while it is read lacks entries.
        pid = locker(path).filter(|pid| *pid != 0).or(pid);
        text = line(path).unwrap_or_default();
        if pid.is_some_and(|pid| text.starts_with(&format!("pid {pid} "))) {
            return Some(text);
        }
        thread::sleep(MOMENT);
    }
    pid.map(|pid| format!("pid {pid}"))
        .or(Some(text).filter(|text| !text.is_empty()))
}

/// The line in the lock file; it names a holder for messages only.
fn line(path: &Path) -> Option<String> {
    const MOST: u64 = 256;
    let (file, _) = file::open(path, Metadata::is_file).ok()??;
    let mut line = Vec::new();
    file.take(MOST).read_to_end(&mut line).ok()?;
    Some(String::from_utf8_lossy(&line).trim().to_owned())
}

/// The process that holds a lock, from `/proc/locks`.
fn locker(path: &Path) -> Option<u32> {
    let meta = fs::metadata(path).ok()?;
    let (major, minor) = (
        nix::sys::stat::major(meta.dev()),
        nix::sys::stat::minor(meta.dev()),
    );
    // `1: FLOCK  ADVISORY  WRITE 4711 fe:01:131 0 EOF`, proc_locks(5)
    let name = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(
        |line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [_, "FLOCK", _, _, pid, file, ..] if file == name => pid.parse().ok(),
            _ => None,
        },
    )
}

/// Opens the lock file; an existing one can be locked on a read-only file system too.
fn open(path: &Path) -> io::Result<File> {
    let options = |write: bool| {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(write)
            .create(write)
            .mode(0o600)
            .custom_flags(file::FLAGS);
        options
    };
    let file = match disk::open(&options(true), path) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => options(false)
            .open(path)
            .map_err(|again| match again.kind() {
                io::ErrorKind::NotFound => error,
                _ => again,
            }),
        opened => opened,
    }?;
    // A lock on a FIFO or device works, but it names no holder.
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("not a regular file"))
}

/// Creates a folder for its owner only; an existing one must be a folder that others cannot write to.
pub(super) fn make_folder(path: &Path) -> Result<(), StoreError> {
    match disk::make_folder(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(StoreError::write("cannot make", path)(error));
        }
        _ => {}
    }
    check_folder(path)
}

/// Refuses a folder into which others could have put files.
pub(super) fn check_folder(path: &Path) -> Result<(), StoreError> {
    check_mode(path, |mode| mode & 0o022 == 0)
}

/// Refuses a folder in which others could have replaced a file of root: in one with the sticky bit, such as /tmp, they cannot.
pub(crate) fn check_shared_folder(path: &Path) -> Result<(), StoreError> {
    check_mode(path, |mode| mode & 0o022 == 0 || mode & 0o1000 != 0)
}

fn check_mode(path: &Path, is_good: impl Fn(u32) -> bool) -> Result<(), StoreError> {
    let meta = fs::metadata(path).map_err(StoreError::io("cannot stat", path))?;
    if !meta.is_dir() {
        return Err(StoreError::io("cannot use", path)(Errno::ENOTDIR.into()));
    }
    if !is_good(meta.mode()) || meta.uid() != nix::unistd::geteuid().as_raw() {
        let open = io::Error::new(
            io::ErrorKind::PermissionDenied,
            "others own it or can write to it",
        );
        return Err(StoreError::io("cannot use", path)(open));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_has_just_left_is_waited_for_once_more() {
        let guard = || Some("pid 7 (guard) since 03:15".to_owned());
        let mut before = None;
        assert_eq!(named(guard(), &mut before), guard().unwrap());
        assert_eq!(named(None, &mut before), guard().unwrap());
        assert_eq!(named(None, &mut before), "another process");
    }
}
