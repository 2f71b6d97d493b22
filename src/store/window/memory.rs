//! The record of the open window in memory, beside its file: the newer one where the disk refuses a record, and the one to use
//! where the file is damaged. Like masks and timers of systemd, it does not survive a reboot.

use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::record::{LOG, is_id, load};
use crate::model::Window;
use crate::store::{Guard, Store, StoreError, disk, file, lock};

impl Store {
    /// The folder in memory that belongs to this state directory, under whatever path that is.
    fn memory_folder(&self) -> Option<PathBuf> {
        let meta = fs::metadata(&self.folder).ok()?;
        let name = format!("state-{:x}-{:x}", meta.dev(), meta.ino());
        Some(self.memory.join(name))
    }

    /// The record in memory, of whatever window.
    pub(super) fn window_in_memory(&self) -> Option<Window> {
        let folder = self.memory_folder()?;
        lock::check_folder(&self.memory).ok()?;
        lock::check_folder(&folder).ok()?;
        load(&folder.join("window.json")).ok()?
    }

    /// Keeps the text of a record. A record that is older than the file must not stay.
    pub(super) fn keep_in_memory(&self, text: &str) {
        let Some(folder) = self.memory_folder() else {
            return;
        };
        let path = folder.join("window.json");
        let kept = lock::make_folder(&folder).and_then(|()| file::write(&path, text));
        if kept.is_err() {
            let _ = disk::remove(&path);
        }
    }

    /// Forgets the record in memory, and the folders that are empty then.
    pub(super) fn forget_memory(&self) {
        let Some(folder) = self.memory_folder() else {
            return;
        };
        if !folder.exists() {
            return;
        }
        let _ = disk::remove(&folder.join("window.json"));
        // Fails while a log is there.
        let _ = fs::remove_dir(folder);
        let _ = fs::remove_dir(&self.memory);
    }
}

impl Guard {
    /// Keeps a log that the disk has refused; returns its path in memory.
    pub(crate) fn keep_log_in_memory(&self, id: &str, log: &[u8]) -> Option<PathBuf> {
        let path = self.store.memory_folder()?.join(format!("{id}{LOG}"));
        lock::make_folder(path.parent()?).ok()?;
        file::replace(&path, log, 0o600).ok()?;
        Some(path)
    }

    /// Moves the logs of closed windows from memory to their records; what the disk still refuses stays. A log whose record was
    /// removed goes, too.
    pub(crate) fn adopt_logs(&self) {
        let Some(folder) = self.store.memory_folder() else {
            return;
        };
        for name in file::names(&folder).unwrap_or_default() {
            let id = name.strip_suffix(LOG).filter(|id| is_id(id));
            if let Some(id) = id {
                let _ = self.adopt_log(id, &folder.join(&name));
            }
        }
        if !self.store.has_window_file() {
            self.store.forget_memory();
        }
    }

    fn adopt_log(&self, id: &str, log: &Path) -> Result<(), StoreError> {
        let record = self.store.record_path(id);
        let gone = || disk::remove(log).map_err(StoreError::io("cannot remove", log));
        let Some(mut window) = load(&record)? else {
            let unclosed = self.store.unclosed_window()?;
            return match unclosed {
                Some(window) if window.id == id => Ok(()),
                _ => gone(),
            };
        };
        // The next netfix may have continued it, and kept it on the disk.
        if window.log.as_deref().map(Path::new) != Some(log) {
            return gone();
        }
        let Some((mut file, _)) = file::open(log, file::is_safe)? else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(StoreError::io("cannot read", log))?;
        let kept = self.add_to_window_log(id, bytes)?;
        window.log = Some(kept.display().to_string());
        file::save(&record, &window, &["checksum"])?;
        gone()
    }
}

/// The newer one of two records, if both are of one window.
pub(super) fn newest(stored: Window, copy: Option<Window>) -> Window {
    let is_newer = |copy: &Window| {
        let window = |one: &Window| (one.id.clone(), one.started_boottime, one.node.clone());
        window(copy) == window(&stored) && copy.revision > stored.revision
    };
    copy.filter(is_newer).unwrap_or(stored)
}
