//! Files that others may have put there: checked before they are opened. The open of a FIFO may never end, and the
//! open of a device may change its state or start it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens for reading what `path` leads to, once `check` has accepted it. The check gets an `O_PATH` descriptor (open(2)),
/// which has not opened the file itself.
///
/// # Errors
/// That of the check, or of open(2).
pub(crate) fn open(path: &Path, check: impl FnOnce(&File) -> io::Result<()>) -> io::Result<File> {
    let found = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)?;
    check(&found)?;
    reopen(&found)
}

/// Opens for reading what an `O_PATH` descriptor stands for.
pub(crate) fn reopen(found: &File) -> io::Result<File> {
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// Refuses everything but a regular file.
pub(crate) fn is_regular(file: &File) -> io::Result<()> {
    if file.metadata()?.is_file() {
        return Ok(());
    }
    Err(io::Error::other("not a regular file"))
}

/// The text of a regular file, through links.
pub(crate) fn text(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open(path.as_ref(), is_regular)?.read_to_string(&mut text)?;
    Ok(text)
}
