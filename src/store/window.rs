//! Maintenance windows: the one that is open, and the records of those that are closed.
//!
//! The open one is `window.json`. A closed one is `windows/<id>.json`, with its log beside it.

use std::path::{Path, PathBuf};

use super::{Error, Guard, NodeSchema, Store, check_schema, disk, file, lock};
use crate::model::{Window, window};

/// How many records are kept.
const KEPT: usize = 50;
/// How the name of a record, and of its log, ends.
const RECORD: &str = ".json";
const LOG: &str = ".log";
/// How the name of a record ends that was not completely written, and how it begins.
const UNFINISHED: (&str, &str) = (".", ".json.tmp");

/// What there is to tell when a window is closed.
#[derive(Debug, Default)]
pub struct Closed {
    /// Why the record is what was last saved of the window, and not what was to be kept of it.
    pub incomplete: Option<Error>,
    /// Why files that are of no use any more are still there: the open window's, or records that are too old.
    pub untidy: Option<Error>,
}

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

    /// Where the log of a closed window is kept.
    #[must_use]
    pub fn window_log_path(&self, id: &str) -> PathBuf {
        self.windows_folder().join(format!("{id}{LOG}"))
    }

    /// The ids of all closed windows, the newest last.
    ///
    /// # Errors
    /// When their folder cannot be read; one that does not exist holds none.
    pub fn windows(&self) -> Result<Vec<String>, Error> {
        let mut ids: Vec<String> = self.ids_of_windows(RECORD)?;
        ids.sort();
        Ok(ids)
    }

    fn ids_of_windows(&self, ending: &str) -> Result<Vec<String>, Error> {
        let folder = self.windows_folder();
        if folder.exists() {
            lock::check_folder(&self.folder)?;
            lock::check_folder(&folder)?;
        }
        let names = file::names(&folder)?;
        let ids = names.iter().filter_map(|name| name.strip_suffix(ending)).filter(|id| is_id(id));
        Ok(ids.map(str::to_owned).collect())
    }

    /// An id for a window that is about to be opened: `wanted`, or with a number behind it where a window of the same
    /// second has that already.
    ///
    /// # Errors
    /// When it cannot be read which ids are taken.
    pub fn free_window_id(&self, wanted: &str) -> Result<String, Error> {
        let taken = self.windows()?;
        let numbered = (2..).map(|number: u32| format!("{wanted}-{number:02}"));
        let mut ids = std::iter::once(wanted.to_owned()).chain(numbered);
        Ok(ids.find(|id| !taken.contains(id)).unwrap_or_else(|| wanted.to_owned()))
    }

    /// The record of a closed window; `None` when there is none of this id.
    ///
    /// # Errors
    /// When the file is there but cannot be used.
    pub fn load_window(&self, id: &str) -> Result<Option<Window>, Error> {
        if !is_id(id) || !self.windows_folder().exists() {
            return Ok(None);
        }
        lock::check_folder(&self.folder)?;
        lock::check_folder(&self.windows_folder())?;
        let path = self.record_path(id);
        let Some(window) = load(&path)? else { return Ok(None) };
        if window.id == id {
            return Ok(Some(window));
        }
        let reason = format!("it is the record of window {}, and has not its name", window.id);
        Err(Error::Corrupt { path, reason })
    }

    /// Whether there is the file of a window, be it open or left behind by a run that was killed.
    #[must_use]
    pub fn has_window_file(&self) -> bool {
        let path = self.window_path();
        path.exists() || path.is_symlink()
    }

    /// The window that is open; `None` when none is. One that was closed, and whose file a run that was killed has left
    /// behind, is not open.
    ///
    /// # Errors
    /// When the file is there but cannot be used: whether a window is open is then not known.
    pub fn open_window(&self) -> Result<Option<Window>, Error> {
        if !self.has_window_file() {
            return Ok(None);
        }
        let path = self.window_path();
        lock::check_folder(&self.folder)?;
        let Some(window) = load(&path)? else { return Ok(None) };
        // A damaged record proves nothing.
        let record = self.load_window(&window.id).ok().flatten();
        let is_left_behind =
            record.is_some_and(|record| record.ended.is_some() && is_of_same(&record, &window));
        Ok(Some(window).filter(|_| !is_left_behind))
    }

    /// The last lines of a window's log, oldest first; bytes that are no text are replaced. `None` when no log was kept,
    /// or it is there no longer.
    ///
    /// # Errors
    /// When it is there but cannot be read, or is no plain file of root's.
    pub fn window_log(&self, window: &Window, lines: usize) -> Result<Option<Vec<String>>, Error> {
        let kept = self.window_log_path(&window.id);
        let stated = window.log.as_deref().map(PathBuf::from);
        // Whatever else a record names is not its log.
        let stated = stated.filter(|path| path.file_name() == kept.file_name() && *path != kept);
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
    /// Removes the file of a window that is closed: a run that was killed in between has left it behind.
    pub(super) fn forget_closed_window(&self) {
        if self.store.has_window_file() && matches!(self.store.open_window(), Ok(None)) {
            let _ = remove(&self.store.window_path());
        }
    }

    /// Writes down how the open window stands.
    ///
    /// # Errors
    /// When the file system refuses; what was written of it before is then still whole.
    pub fn save_window(&self, window: &Window) -> Result<(), Error> {
        save(&self.store.window_path(), window)
    }

    /// Adds to the log that is kept beside a window's record; returns where that is.
    ///
    /// # Errors
    /// When the file system refuses; what is there is then still whole.
    pub fn add_to_window_log(&self, id: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.store.window_log_path(id);
        lock::make_folder(&self.store.windows_folder())?;
        let before = if path.exists() { file::read(&path)?.unwrap_or_default() } else { String::new() };
        file::write(&path, &(before + text))?;
        Ok(path)
    }

    /// Keeps the record of the open window and closes it; removes records and logs of windows that are too old. Where
    /// the disk has no room for the record, what was last saved of the window is kept in its place.
    ///
    /// # Errors
    /// When the file system refuses that too: the window is then open, as it was last saved.
    pub fn close_window(&self, window: &Window) -> Result<Closed, Error> {
        let (path, record) = (self.store.window_path(), self.store.record_path(&window.id));
        let folder = self.store.windows_folder();
        check_id(&path, window)?;
        lock::make_folder(&folder)?;
        file::sync_folder(&self.store.folder)?;
        let mut closed = Closed::default();
        match save(&record, window) {
            Ok(()) => {
                let removed = remove(&path).or_else(|_| remove(&path));
                closed.untidy = removed.err().filter(|error| !error.is_missing());
            }
            Err(error) => {
                disk::rename(&path, &record).map_err(Error::io("cannot move", &path))?;
                closed.incomplete = Some(error);
            }
        }
        file::sync_folder(&folder)?;
        file::sync_folder(&self.store.folder)?;
        closed.untidy = self.tidy_windows().err().or(closed.untidy);
        Ok(closed)
    }

    /// Removes all but the newest records, the logs of windows before those, and what a run that was killed has left.
    fn tidy_windows(&self) -> Result<(), Error> {
        let folder = self.store.windows_folder();
        let kept = self.store.windows()?;
        let oldest = kept.iter().rev().take(KEPT).next_back();
        let is_old = |id: &str| is_id(id) && oldest.is_some_and(|oldest| id < oldest.as_str());
        let may_go = |name: &str| {
            let id = name.strip_suffix(RECORD).or_else(|| name.strip_suffix(LOG));
            id.is_some_and(is_old) || (name.starts_with(UNFINISHED.0) && name.ends_with(UNFINISHED.1))
        };
        let mut gone = file::names(&folder)?;
        gone.retain(|name| may_go(name));
        for name in &gone {
            remove(&folder.join(name))?;
        }
        if gone.is_empty() { Ok(()) } else { file::sync_folder(&folder) }
    }
}

/// Whether a text can be a window's id, and so a file's name: `20261121T031500Z`.
fn is_id(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// Whether both tell of one window: no process opens two in the same millisecond.
fn is_of_same(one: &Window, other: &Window) -> bool {
    let key = |window: &Window| (window.owner, window.started_boottime, window.node.boot_id.clone());
    one.id == other.id && key(one) == key(other)
}

fn load(path: &Path) -> Result<Option<Window>, Error> {
    let Some(text) = file::read(path)? else { return Ok(None) };
    let probe: NodeSchema = file::parse(path, &text)?;
    check_schema(path, probe.schema, window::SCHEMA)?;
    file::verify(path, &text)?;
    let window: Window = file::parse(path, &text)?;
    check_id(path, &window)?;
    Ok(Some(window))
}

fn save(path: &Path, window: &Window) -> Result<(), Error> {
    check_id(path, window)?;
    let place = |document: &mut serde_json::Value, sum: String| document["checksum"] = sum.into();
    lock::write(path, file::render(window, place))
}

fn check_id(path: &Path, window: &Window) -> Result<(), Error> {
    if is_id(&window.id) {
        return Ok(());
    }
    let reason = format!("{:?} is no window's id", window.id);
    Err(Error::Corrupt { path: path.to_owned(), reason })
}

fn remove(path: &Path) -> Result<(), Error> {
    disk::remove(path).map_err(Error::io("cannot remove", path))
}

#[cfg(test)]
mod tests;
