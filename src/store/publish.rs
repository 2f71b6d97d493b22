//! Files that a user names: metrics, HTML, manual pages.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::{StoreError, disk};
use crate::store::file::replace;

/// Writes a file that a user names and others can read. A regular file is replaced; a device, a pipe and a descriptor of this
/// process, such as `/dev/stdout`, are written into; anything else stays, and is an error.
pub(crate) fn publish(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let is_new = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => replace(path, bytes, 0o644),
        Err(error) if is_new(&error) => replace(path, bytes, 0o644),
        _ => write_into(path, bytes).map_err(StoreError::write("cannot write", path)),
    }
}

/// Writes into what is there, and waits for no reader of a pipe.
fn write_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let descriptor = descriptor(path);
    match descriptor.as_deref() {
        // Opened again, a regular file would be written from its start, where the answer goes too.
        Some("1") => return io::stdout().write_all(bytes),
        Some("2") => return io::stderr().write_all(bytes),
        _ => {}
    }
    let kind = fs::metadata(path)?.file_type();
    if !(kind.is_char_device() || kind.is_fifo() || descriptor.is_some()) {
        let reason = "it exists and is no regular file, device or pipe";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    let mut options = OpenOptions::new();
    options
        .append(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    let mut file = disk::open(&options, path)?;
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND))?;
    file.write_all(bytes)
}

/// The number of the descriptor of this process that a path or the link there means.
fn descriptor(path: &Path) -> Option<String> {
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    let link = fs::read_link(path).ok();
    let meant = [
        link.and_then(|link| Some(path.parent()?.join(link))),
        Some(path.to_owned()),
    ];
    let found = meant.into_iter().flatten().find(|path| {
        let folder = path
            .parent()
            .and_then(|parent| fs::canonicalize(parent).ok());
        folder.as_ref() == Some(&own)
    })?;
    Some(found.file_name()?.to_string_lossy().into_owned())
}
