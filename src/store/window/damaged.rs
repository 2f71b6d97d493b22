//! A file of the open window that netfix cannot use: kept beside it, so that it stops no command.

use std::path::PathBuf;

use super::record::encode;
use crate::model::Window;
use crate::store::{Guard, StoreError, disk, file};

impl Guard {
    /// Renames `window.json`; returns its new path.
    pub(crate) fn set_window_aside(&self) -> Result<PathBuf, StoreError> {
        let (path, aside) = (self.store.window_path(), self.free_name());
        disk::rename(&path, &aside).map_err(StoreError::write("cannot move", &path))?;
        file::sync_folder(&self.store.folder)?;
        self.store.remove_unused_spare();
        Ok(aside)
    }

    /// Writes `window.json` again and keeps the damaged file, in one step; returns the path of that.
    pub(crate) fn replace_damaged_window(&self, window: &Window) -> Result<PathBuf, StoreError> {
        let (path, aside) = (self.store.window_path(), self.free_name());
        file::write(&aside, &encode(&path, window)?)?;
        let exchanged = disk::exchange(&aside, &path);
        if exchanged.is_err() {
            let _ = disk::remove(&aside);
        }
        exchanged.map_err(StoreError::write("cannot replace", &path))?;
        file::sync_folder(&self.store.folder)?;
        Ok(aside)
    }

    /// `window.json.damaged-1`, or the next number that is free.
    fn free_name(&self) -> PathBuf {
        let name = |number: u32| format!("window.json.damaged-{number}");
        let mut paths = (1..).map(|number| self.store.folder.join(name(number)));
        let free = paths.find(|path| path.symlink_metadata().is_err());
        free.unwrap_or_else(|| self.store.folder.join(name(0)))
    }
}
