//! The lock under which the state folder is changed, and every change of it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::{Error, Store, file};
use crate::model::{Checkpoint, NodeState, PodId};

/// The right to change the state folder: one process at a time has it.
#[derive(Debug)]
pub struct Guard {
    pub(super) store: Store,
    _lock: Flock<File>,
}

impl Guard {
    pub(super) fn take(store: Store, command: &str) -> Result<Self, Error> {
        let store = Store::new(store.folder);
        make_folder(&store.folder)?;
        let path = store.folder.join("lock");
        let file = open(&path).map_err(Error::io("cannot open", &path))?;
        let mut lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(mut file, errno)| {
            if errno != Errno::EWOULDBLOCK {
                return Error::io("cannot lock", &path)(errno.into());
            }
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = Some(holder.trim()).filter(|holder| !holder.is_empty());
            Error::Locked { path: path.clone(), holder: holder.unwrap_or("another process").to_owned() }
        })?;
        // For the loser's message only: the lock itself is the flock, and a full disk must not stop a restore.
        let _ = lock.set_len(0).and_then(|()| writeln!(lock, "pid {} ({command})", std::process::id()));
        make_folder(&store.checkpoints())?;
        Ok(Self { store, _lock: lock })
    }

    /// Writes a pod's checkpoint.
    ///
    /// # Errors
    /// When the file system refuses; the old checkpoint is then still whole.
    pub fn save(&self, id: &PodId, checkpoint: &Checkpoint) -> Result<(), Error> {
        let path = self.store.checkpoints().join(id.as_str());
        let place =
            |document: &mut serde_json::Value, sum: String| document["netfix"]["checksum"] = sum.into();
        write(&path, file::render(checkpoint, place))
    }

    pub(super) fn checkpoint_path(&self, id: &PodId) -> std::path::PathBuf {
        self.store.checkpoints().join(id.as_str())
    }

    /// Writes the node's state.
    ///
    /// # Errors
    /// When the file system refuses; the old file is then still whole.
    pub fn save_node(&self, node: &NodeState) -> Result<(), Error> {
        let place = |document: &mut serde_json::Value, sum: String| document["checksum"] = sum.into();
        write(&self.store.node_path(), file::render(node, place))
    }

    /// Removes the checkpoint of a pod that is gone; [`Guard::keep_before`] comes first.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn remove(&self, id: &PodId) -> Result<(), Error> {
        let path = self.store.checkpoints().join(id.as_str());
        fs::remove_file(&path).map_err(Error::io("cannot remove", &path))?;
        file::sync_folder(&self.store.checkpoints())
    }
}

/// Who holds the lock of a state folder: the kernel's list says whether, the file's text who.
pub(super) fn holder(folder: &Path) -> Option<String> {
    let path = folder.join("lock");
    let meta = fs::metadata(&path).ok()?;
    let (major, minor) = (nix::sys::stat::major(meta.dev()), nix::sys::stat::minor(meta.dev()));
    // `1: FLOCK  ADVISORY  WRITE 4711 fe:01:131 0 EOF`, proc_locks(5)
    let name = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let is_held =
        locks.lines().any(|line| line.contains(" FLOCK ") && line.split(' ').any(|word| word == name));
    is_held.then(|| fs::read_to_string(&path).unwrap_or_default().trim().to_owned())
}

/// Opens the lock file; one that is there can be locked on a read-only file system too.
fn open(path: &Path) -> io::Result<File> {
    let options = |write: bool| {
        let mut options = OpenOptions::new();
        options.read(true).write(write).create(write).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        options
    };
    match options(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => options(false).open(path),
        opened => opened,
    }
}

/// Writes a file whose text is rendered, if it could be.
pub(super) fn write(path: &Path, text: Result<String, serde_json::Error>) -> Result<(), Error> {
    let encode = |error: serde_json::Error| Error::io("cannot encode", path)(error.into());
    file::write(path, &text.map_err(encode)?)
}

/// Makes a folder that only its owner can enter; one that exists must be a real folder that nobody else writes to.
pub(super) fn make_folder(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(Error::io("cannot make", path)(error));
        }
        _ => {}
    }
    check_folder(path)
}

/// Refuses a folder into which somebody else could have put files.
pub(super) fn check_folder(path: &Path) -> Result<(), Error> {
    let meta = fs::metadata(path).map_err(Error::io("cannot stat", path))?;
    if !meta.is_dir() {
        return Err(Error::io("cannot use", path)(Errno::ENOTDIR.into()));
    }
    if meta.mode() & 0o022 != 0 || meta.uid() != nix::unistd::geteuid().as_raw() {
        let open = io::Error::new(io::ErrorKind::PermissionDenied, "others own it or can write to it");
        return Err(Error::io("cannot use", path)(open));
    }
    Ok(())
}
