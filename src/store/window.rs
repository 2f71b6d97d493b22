//! Maintenance windows: the open one is `window.json`, the record of a closed one `windows/<id>.json`, with its log beside it.

mod damaged;
mod memory;
mod order;
mod record;
mod spare;

use std::io::Read;
use std::path::{Path, PathBuf};

use self::record::{LOG, RECORD, check_id, encode, is_id, load};
use super::{Guard, Store, StoreError, disk, file, lock};
use crate::model::Window;
use crate::model::problem::StoreEffect;

/// How many records to keep, of windows that a person opened and of other restores.
const KEPT: usize = 50;
/// The prefix and suffix of a record's temporary file.
const UNFINISHED: (&str, &str) = (".", ".json.tmp");

impl Store {
    fn window_path(&self) -> PathBuf {
        self.folder.join("window.json")
    }

    pub(super) fn windows_folder(&self) -> PathBuf {
        self.folder.join("windows")
    }

    fn record_path(&self, id: &str) -> PathBuf {
        self.windows_folder().join(format!("{id}{RECORD}"))
    }

    /// The path of a closed window's log.
    #[must_use]
    pub fn window_log_path(&self, id: &str) -> PathBuf {
        self.windows_folder().join(format!("{id}{LOG}"))
    }

    /// The ids of all closed windows, the newest last; also of one whose record is still `window.json`.
    pub(crate) fn windows(&self) -> Result<Vec<String>, StoreError> {
        // First what is not closed: a window that is closed meanwhile is in both.
        let over = self.over().map(|window| window.id);
        let mut ids = self.stored_windows()?;
        ids.extend(over.filter(|over| !ids.contains(over)));
        Ok(ids)
    }

    fn stored_windows(&self) -> Result<Vec<String>, StoreError> {
        let ids = self.ids_of_windows(RECORD)?.into_iter();
        let placed = ids.map(|id| (order::head(&self.record_path(&id)).place, id));
        Ok(order::sorted(placed.collect()))
    }

    fn ids_of_windows(&self, ending: &str) -> Result<Vec<String>, StoreError> {
        let folder = self.windows_folder();
        if folder.exists() {
            lock::check_folder(&self.folder)?;
            lock::check_folder(&folder)?;
        }
        let names = file::names(&folder)?;
        let ids = names
            .iter()
            .filter_map(|name| name.strip_suffix(ending))
            .filter(|id| is_id(id));
        Ok(ids.map(str::to_owned).collect())
    }

    /// An id for a new window: `wanted`, with a number appended if a window of the same second has it.
    pub(crate) fn free_window_id(&self, wanted: &str) -> Result<String, StoreError> {
        let taken = self.windows()?;
        let numbered = (2..).map(|number: u32| format!("{wanted}-{number:02}"));
        let mut ids = std::iter::once(wanted.to_owned()).chain(numbered);
        Ok(ids
            .find(|id| !taken.contains(id))
            .unwrap_or_else(|| wanted.to_owned()))
    }

    /// The record of a closed window; `None` when there is none of this id.
    pub(crate) fn load_window(&self, id: &str) -> Result<Option<Window>, StoreError> {
        if !is_id(id) {
            return Ok(None);
        }
        if let Some(window) = self.load_record(id)? {
            return Ok(Some(window));
        }
        match self.over().filter(|window| window.id == id) {
            // It may have been closed meanwhile.
            None => self.load_record(id),
            over => Ok(over),
        }
    }

    fn load_record(&self, id: &str) -> Result<Option<Window>, StoreError> {
        if !self.windows_folder().exists() {
            return Ok(None);
        }
        lock::check_folder(&self.folder)?;
        lock::check_folder(&self.windows_folder())?;
        let path = self.record_path(id);
        let Some(window) = load(&path)? else {
            return Ok(None);
        };
        if window.id == id {
            return Ok(Some(window));
        }
        let reason = format!(
            "it is the record of window {}, which does not match its name",
            window.id
        );
        Err(StoreError::corrupt(&path, reason))
    }

    /// The record of the newest closed window; `None` without one. The record of what was done outside of a window does not count.
    pub(crate) fn last_window(&self) -> Result<Option<Window>, StoreError> {
        for id in self.windows()?.iter().rev() {
            // One that is gone was removed meanwhile.
            let window = self.load_window(id)?;
            if let Some(window) = window.filter(|window| !window.is_outside()) {
                return Ok(Some(window));
            }
        }
        Ok(None)
    }

    /// Whether the file of an open window exists, readable or not.
    pub(crate) fn has_window_file(&self) -> bool {
        let path = self.window_path();
        path.exists() || path.is_symlink()
    }

    /// The window that is open in this boot; `None` when none is. Fails when its file exists and no record of it can be used:
    /// then nothing shows whether a window is open.
    pub(crate) fn open_window(&self) -> Result<Option<Window>, StoreError> {
        let unclosed = self.unclosed_window()?;
        Ok(unclosed.filter(|window| window.ended.is_none()))
    }

    /// The window whose record is not closed, by the newest of its copies; it may be over.
    pub(crate) fn unclosed_window(&self) -> Result<Option<Window>, StoreError> {
        if !self.has_window_file() {
            return Ok(None);
        }
        lock::check_folder(&self.folder)?;
        // The file comes second: a window that is closed meanwhile has none.
        let copy = self.window_in_memory();
        let window = match load(&self.window_path()) {
            Ok(stored) => stored.map(|stored| memory::newest(stored, copy)),
            Err(error) if error.is_newer() => return Err(error),
            Err(error) => Some(copy.ok_or(error.affecting(StoreEffect::WindowUnknown))?),
        };
        let boot = self.boot.map(|boot| boot()).unwrap_or_default();
        Ok(window.map(|window| window.seen_in(&boot)))
    }

    /// The window that is over, and whose record is not closed.
    fn over(&self) -> Option<Window> {
        let unclosed = self.unclosed_window().ok().flatten();
        unclosed.filter(|window| window.ended.is_some())
    }

    /// What is damaged in `window.json`.
    pub(crate) fn window_damage(&self) -> Option<StoreError> {
        let error = load(&self.window_path()).err();
        error.filter(|error| !error.is_newer())
    }

    /// The last lines of a window's log, oldest first, with invalid UTF-8 replaced; `None` when there is no log.
    pub(crate) fn window_log(
        &self,
        window: &Window,
        lines: usize,
    ) -> Result<Option<Vec<String>>, StoreError> {
        let kept = self.window_log_path(&window.id);
        // A record may name only its own log.
        let stated = window
            .log
            .as_deref()
            .map(PathBuf::from)
            .filter(|path| path.file_name() == kept.file_name() && *path != kept);
        for path in std::iter::once(kept).chain(stated) {
            if let Some(text) = file::tail(&path)? {
                let all: Vec<&str> = text.lines().collect();
                let last = all.iter().skip(all.len().saturating_sub(lines));
                return Ok(Some(last.map(|line| (*line).to_owned()).collect()));
            }
        }
        Ok(None)
    }
}

impl Guard {
    /// Saves the open window, on the disk and in memory.
    ///
    /// # Errors
    /// When the file system refuses; the old file is unchanged, and the record in memory is the newer one.
    pub fn save_window(&self, window: &Window) -> Result<(), StoreError> {
        let path = self.store.window_path();
        check_id(&path, window)?;
        let text = encode(&path, window)?;
        let is_first = !self.store.has_window_file();
        if is_first {
            // When it is closed, no folder needs space.
            lock::make_folder(&self.store.windows_folder())?;
        }
        let saved = spare::save(&path, &text);
        if saved.is_ok() || !is_first {
            self.store.keep_in_memory(&text);
        }
        saved
    }

    /// Appends to the log beside a window's record; returns its path.
    pub(crate) fn add_to_window_log(&self, id: &str, more: Vec<u8>) -> Result<PathBuf, StoreError> {
        let path = self.store.window_log_path(id);
        lock::make_folder(&self.store.windows_folder())?;
        let all = match file::open(&path, file::is_safe)? {
            Some((mut file, _)) => {
                let mut all = Vec::new();
                file.read_to_end(&mut all)
                    .map_err(StoreError::io("cannot read", &path))?;
                all.extend(more);
                all
            }
            None => more,
        };
        file::replace(&path, &all, 0o600)?;
        Ok(path)
    }

    /// Closes the window: its file is completed and becomes a record, each in one step. Removes records and logs that
    /// are too old. Where the disk refuses that, the end of the window is in memory, and the next netfix with the lock closes
    /// it. Returns what failed.
    ///
    /// # Errors
    /// When the end of the window could be kept nowhere: the window is still open.
    pub fn close_window(&self, window: &Window) -> Result<Vec<StoreError>, StoreError> {
        let (path, record) = (self.store.window_path(), self.store.record_path(&window.id));
        if let Err(error) = self.save_window(window) {
            let kept = self.store.window_in_memory();
            let is_this = |kept: Window| kept.id == window.id && kept.revision == window.revision;
            return if kept.is_some_and(is_this) {
                Ok(vec![error])
            } else {
                Err(error)
            };
        }
        if let Err(error) = self.publish(&path, &record) {
            return Ok(vec![error]);
        }
        self.store.remove_unused_spare();
        self.store.forget_memory();
        Ok(self.tidy_windows().err().into_iter().collect())
    }

    /// Writes or replaces the record of a closed window.
    pub(crate) fn save_record(&self, window: &Window) -> Result<(), StoreError> {
        let path = self.store.record_path(&window.id);
        check_id(&path, window)?;
        lock::make_folder(&self.store.windows_folder())?;
        file::replace(&path, encode(&path, window)?.as_bytes(), 0o600)?;
        self.tidy_windows()
    }

    /// Removes the record of a window that changed nothing, and its log.
    pub(crate) fn forget_window(&self, id: &str) -> Result<(), StoreError> {
        let files = [self.store.record_path(id), self.store.window_log_path(id)];
        for path in files.into_iter().filter(|path| path.exists()) {
            disk::remove(&path).map_err(StoreError::io("cannot remove", &path))?;
        }
        file::sync_folder(&self.store.windows_folder())
    }

    /// Makes the file of a window that is over its record.
    fn publish(&self, path: &Path, record: &Path) -> Result<(), StoreError> {
        let folder = self.store.windows_folder();
        lock::make_folder(&folder)?;
        spare::give_back(path);
        disk::rename(path, record).map_err(StoreError::write("cannot move", path))?;
        file::sync_folder(&folder)?;
        file::sync_folder(&self.store.folder)
    }

    /// Removes all but the newest records and their logs, and the temporary files of a killed netfix.
    fn tidy_windows(&self) -> Result<(), StoreError> {
        let folder = self.store.windows_folder();
        let stored = self.store.stored_windows()?;
        let is_planned = |id: &String| order::head(&self.store.record_path(id)).is_planned;
        let (planned, others): (Vec<String>, Vec<_>) = stored.into_iter().partition(is_planned);
        let (mut dropped, mut kept) = (Vec::new(), Vec::new());
        for mut all in [planned, others] {
            kept.extend(all.split_off(all.len().saturating_sub(KEPT)));
            dropped.extend(all);
        }
        let oldest = kept.iter().min().cloned();
        let is_dropped = |id: &str| dropped.iter().any(|one| one == id);
        let is_orphan = |id: &str| {
            let is_kept = kept.iter().any(|one| one == id);
            !is_kept && oldest.as_ref().is_some_and(|oldest| id < oldest.as_str())
        };
        let mut gone = file::names(&folder)?;
        gone.retain(|name| {
            let id = name.strip_suffix(RECORD).or_else(|| name.strip_suffix(LOG));
            id.is_some_and(|id| {
                is_id(id) && (is_dropped(id) || name.ends_with(LOG) && is_orphan(id))
            }) || (name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1))
        });
        for name in &gone {
            let path = folder.join(name);
            disk::remove(&path).map_err(StoreError::io("cannot remove", &path))?;
        }
        if gone.is_empty() {
            Ok(())
        } else {
            file::sync_folder(&folder)
        }
    }
}

#[cfg(test)]
mod tests;
