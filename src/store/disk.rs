//! The calls that change the disk, each with its failure point.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, fallocate};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::fault::point;

/// Opens a file, or creates it where the options have it so.
pub(super) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    point("open")?;
    options.open(path)
}

/// Writes all bytes.
pub(super) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    point("write")?;
    file.write_all(bytes)
}

/// fsync(2).
pub(super) fn sync(file: &File) -> io::Result<()> {
    point("fsync")?;
    file.sync_all()
}

/// Renames a file or folder.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    point("rename")?;
    fs::rename(from, to)
}

/// Exchanges two files in one step; fails on a file system that cannot.
pub(super) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    point("exchange")?;
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

/// Has the file system set so many bytes aside for a file, whose size stays; fails where there is no space for them.
pub(super) fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    point("reserve")?;
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    match fallocate(file, FallocateFlags::FALLOC_FL_KEEP_SIZE, 0, bytes) {
        // A file system without it writes as it can.
        Err(Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(()),
        reserved => Ok(reserved?),
    }
}

/// Sets the size of a file; gives back what is reserved beyond it.
pub(super) fn set_size(file: &File, bytes: u64) -> io::Result<()> {
    point("truncate")?;
    file.set_len(bytes)
}

/// Creates a hard link.
pub(super) fn link(file: &Path, name: &Path) -> io::Result<()> {
    point("link")?;
    fs::hard_link(file, name)
}

/// Creates a folder for its owner only, and its parents; an existing folder is no error.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    point("mkdir")?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    point("unlink")?;
    fs::remove_file(path)
}

/// Removes a folder and its contents.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    point("unlink all")?;
    fs::remove_dir_all(path)
}
