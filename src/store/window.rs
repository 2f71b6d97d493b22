//! Maintenance windows: the open one is `window.json`, the record of a closed one `windows/<id>.json`, with its log beside it.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Guard, Store, StoreError, disk, file, lock};
use crate::model::text::escape;
use crate::model::{Window, window};

/// How many records to keep.
const KEPT: usize = 50;
/// The suffixes of a record and of its log.
const RECORD: &str = ".json";
const LOG: &str = ".log";
/// The prefix and suffix of a record's temporary file.
const UNFINISHED: (&str, &str) = (".", ".json.tmp");

impl Store {
    fn window_path(&self) -> PathBuf {
        self.folder.join("window.json")
    }

    fn windows_folder(&self) -> PathBuf {
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

    /// The ids of all closed windows, the newest last.
    pub(crate) fn windows(&self) -> Result<Vec<String>, StoreError> {
        let mut ids: Vec<String> = self.ids_of_windows(RECORD)?;
        ids.sort();
        Ok(ids)
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
        if !is_id(id) || !self.windows_folder().exists() {
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

    /// The record of the newest closed window; `None` when there is none.
    pub(crate) fn last_window(&self) -> Result<Option<Window>, StoreError> {
        for id in self.windows()?.iter().rev() {
            // One that is gone was removed meanwhile.
            if let Some(window) = self.load_window(id)? {
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

    /// The window that is open; `None` when none is. Fails when the file exists but cannot be used: then nothing shows
    /// whether a window is open.
    pub(crate) fn open_window(&self) -> Result<Option<Window>, StoreError> {
        if !self.has_window_file() {
            return Ok(None);
        }
        lock::check_folder(&self.folder)?;
        load(&self.window_path())
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
    /// Saves the open window.
    ///
    /// # Errors
    /// When the file system refuses; the old file is unchanged.
    pub fn save_window(&self, window: &Window) -> Result<(), StoreError> {
        save(&self.store.window_path(), window)
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
    /// are too old. Where the disk has no room to complete the file, the record is the window as it was last saved.
    /// Returns what failed without consequence for that.
    ///
    /// # Errors
    /// When the file system refuses the second step: the window is still open.
    pub fn close_window(&self, window: &Window) -> Result<Vec<StoreError>, StoreError> {
        let (path, record) = (self.store.window_path(), self.store.record_path(&window.id));
        let folder = self.store.windows_folder();
        check_id(&path, window)?;
        lock::make_folder(&folder)?;
        let mut failed = Vec::new();
        match save(&path, window) {
            Err(error) if self.store.has_window_file() => failed.push(error),
            saved => saved?,
        }
        disk::rename(&path, &record).map_err(StoreError::write("cannot move", &path))?;
        file::sync_folder(&folder)?;
        file::sync_folder(&self.store.folder)?;
        failed.extend(self.tidy_windows().err());
        Ok(failed)
    }

    /// Removes all but the newest records and their logs, and the temporary files of a killed netfix.
    fn tidy_windows(&self) -> Result<(), StoreError> {
        let folder = self.store.windows_folder();
        let kept = self.store.windows()?;
        let oldest = kept.iter().rev().take(KEPT).next_back();
        let mut gone = file::names(&folder)?;
        gone.retain(|name| {
            let id = name.strip_suffix(RECORD).or_else(|| name.strip_suffix(LOG));
            id.is_some_and(|id| is_id(id) && oldest.is_some_and(|oldest| id < oldest.as_str()))
                || (name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1))
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

/// Whether a text can be a window's id, and so part of a file's name: `20261121T031500Z`.
fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    (1..=64).contains(&text.len()) && bytes.all(|one| one.is_ascii_alphanumeric() || one == b'-')
}

fn load(path: &Path) -> Result<Option<Window>, StoreError> {
    let Some((_, text)) = super::load(path, window::SCHEMA)? else {
        return Ok(None);
    };
    let window = file::parse(path, &text)?;
    check_id(path, &window)?;
    Ok(Some(window))
}

fn save(path: &Path, window: &Window) -> Result<(), StoreError> {
    check_id(path, window)?;
    file::save(path, window, &["checksum"])
}

fn check_id(path: &Path, window: &Window) -> Result<(), StoreError> {
    if is_id(&window.id) {
        return Ok(());
    }
    let reason = format!("\"{}\" is no window id", escape(&window.id));
    Err(StoreError::corrupt(path, reason))
}

#[cfg(test)]
mod tests;
