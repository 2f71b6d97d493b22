//! Saves the open window in space that was reserved when it was opened, so that a disk that COMMAND fills refuses no record. A
//! spare file of the same size takes the new text; then both files change places, in one step.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::Store;
use crate::store::{StoreError, disk, file};

/// A record grows by the pods' interfaces, gateways, fingerprints and problems after COMMAND.
const GROWTH: u64 = 4;
/// The space that a record without pods may need, in bytes.
const LEAST: u64 = 64 << 10;

fn path_of(window: &Path) -> PathBuf {
    window.with_file_name(".window.json.spare")
}

/// The space for all later records, by the length of the first.
pub(super) fn space_for(length: u64) -> u64 {
    length * GROWTH + LEAST
}

/// Writes the file of the open window.
pub(super) fn save(path: &Path, text: &str) -> Result<(), StoreError> {
    let (spare, size) = (path_of(path), space_for(text.len() as u64));
    if fs::symlink_metadata(path).is_err() {
        return first(path, &spare, text, size);
    }
    if !spare.exists() {
        // An earlier netfix has opened the window.
        let _ = reserved(&spare, "", size);
    }
    match overwrite(&spare, text).and_then(|()| disk::exchange(&spare, path)) {
        Ok(()) => file::sync_folder(folder(path)),
        // Without the spare file, or on a file system that cannot exchange files, the record needs new space.
        Err(_) => file::write(path, text),
    }
}

/// The first record of a window, before it changes anything: refused where its space cannot be reserved.
fn first(path: &Path, spare: &Path, text: &str, size: u64) -> Result<(), StoreError> {
    let written = reserved(spare, text, size)
        .and_then(|()| disk::rename(spare, path))
        .and_then(|()| reserved(spare, "", size));
    if written.is_err() {
        // The window is not opened.
        for file in [spare, path] {
            let _ = disk::remove(file);
        }
    }
    written.map_err(StoreError::write("cannot write", path))?;
    file::sync_folder(folder(path))
}

/// A new file with this text and space for so many bytes.
fn reserved(path: &Path, text: &str, size: u64) -> io::Result<()> {
    let _ = disk::remove(path);
    let file = file::create(path, text.as_bytes(), 0o600)?;
    disk::reserve(&file, size)?;
    disk::sync(&file)
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Writes a text in the place of what the spare file has. A shorter one is filled up, so that no space is given back.
fn overwrite(spare: &Path, text: &str) -> io::Result<()> {
    let file = open(spare)?;
    let size = usize::try_from(file.metadata()?.len()).unwrap_or_default();
    let filling = "\n".repeat(size.saturating_sub(text.len()));
    let filled = file::with_checksum(&(text.to_owned() + &filling));
    disk::write(&file, filled.as_deref().unwrap_or(text).as_bytes())?;
    disk::sync(&file)
}

/// Gives back what is reserved for the file of a window that is over. A failure costs space, no more.
pub(super) fn give_back(path: &Path) {
    let size = |file: &File| file.metadata().map(|meta| meta.len());
    let _ = open(path).and_then(|file| disk::set_size(&file, size(&file)?));
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(file::FLAGS);
    let file = disk::open(&options, path)?;
    if file::is_safe(&file.metadata()?) {
        return Ok(file);
    }
    Err(io::Error::other(file::NOT_SAFE))
}

impl Store {
    /// Removes the spare file when no window is open. A failure costs space, no more.
    pub(in crate::store) fn remove_unused_spare(&self) {
        let path = self.window_path();
        if !self.has_window_file() && path_of(&path).exists() {
            let _ = disk::remove(&path_of(&path));
        }
    }
}
