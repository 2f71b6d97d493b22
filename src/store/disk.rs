//! The calls that change the disk, each with its failure point.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::fault::{point, retry_interrupted};

/// Opens a file, which may make it.
pub(super) fn open(options: &OpenOptions, path: &Path) -> io::Result<File> {
    retry_interrupted(|| point("open").and_then(|()| options.open(path)))
}

/// Writes all of it.
pub(super) fn write(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    retry_interrupted(|| point("write").and_then(|()| file.write_all(bytes)))
}

/// Waits until the disk has it.
pub(super) fn sync(file: &File) -> io::Result<()> {
    retry_interrupted(|| point("fsync").and_then(|()| file.sync_all()))
}

/// Gives a file or folder another name.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    point("rename")?;
    fs::rename(from, to)
}

/// Gives a file one more name.
pub(super) fn link(file: &Path, name: &Path) -> io::Result<()> {
    point("link")?;
    fs::hard_link(file, name)
}

/// Makes a folder that only its owner can enter, and those above it; it is no failure that it is there.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    point("mkdir")?;
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a file.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    point("unlink")?;
    fs::remove_file(path)
}

/// Removes a folder with all that is in it.
pub(super) fn remove_all(path: &Path) -> io::Result<()> {
    point("unlink all")?;
    fs::remove_dir_all(path)
}
