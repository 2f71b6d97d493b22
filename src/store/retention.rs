//! Creates and removes generations.
//!
//! A generation shares no file with the present checkpoints, so an editor or a bad disk cannot damage both. Generations share
//! unchanged files with each other, as hard links.

use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::model::PodId;
use crate::store::generation::{ASIDE, Generation, same};
use crate::store::{Guard, Store, StoreError, disk, file, lock};

/// A generation that is not complete yet.
const UNFINISHED: &str = ".new";

/// The suffix of a generation that is being removed.
const GONE: &str = ".gone";

/// The generation that holds all present files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewestGeneration {
    /// A new one.
    Made(u64),
    /// The newest one: apart from times, nothing has changed since.
    Already(u64),
}

/// Which generations may be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prune {
    Any,
    /// Only those marked as put aside.
    Aside,
}

impl Guard {
    /// Makes sure that the newest generation holds the node's state and these checkpoints, before they are replaced or
    /// removed; creates a generation of all present files where it does not. Returns its number; `None` when the state
    /// folder is empty. Where that fails, the caller must not replace anything.
    pub(crate) fn keep_before(&self, ids: &[PodId]) -> Result<Option<u64>, StoreError> {
        if let Some(newest) = self.store.generations()?.last() {
            let held = self.store.generation(newest.number)?;
            if self.store.is_held_by(&held, ids) {
                return Ok(Some(newest.number));
            }
        } else if self.store.ids()?.is_empty() && !self.store.node_path().exists() {
            return Ok(None);
        }
        self.make(true).map(Some)
    }

    /// Creates a generation of all present files, unless the newest one holds them and is not marked as put aside.
    pub(crate) fn keep(&self) -> Result<NewestGeneration, StoreError> {
        let newest = self.store.generations()?.pop();
        if let Some(newest) = newest.filter(|newest| !newest.aside) {
            let held = self.store.generation(newest.number);
            let is_whole = held.and_then(|held| self.store.is_whole_in(&held));
            if is_whole.unwrap_or(false) {
                return Ok(NewestGeneration::Already(newest.number));
            }
        }
        self.make(false).map(NewestGeneration::Made)
    }

    fn make(&self, aside: bool) -> Result<u64, StoreError> {
        let folder = self.store.generations_folder();
        if !folder.exists() {
            lock::make_folder(&folder)?;
            file::sync_folder(&self.store.folder)?;
        }
        lock::check_folder(&folder)?;
        sweep(&folder)?;
        let newest = self.store.generations()?.pop();
        let number = newest.map_or(1, |newest| newest.number.saturating_add(1));
        let before = newest
            .map(|newest| self.store.generation(newest.number))
            .transpose()?;
        let unfinished = folder.join(UNFINISHED);
        let made = build(&self.store, before.as_ref(), &unfinished, aside).and_then(|()| {
            let path = folder.join(number.to_string());
            disk::rename(&unfinished, &path).map_err(StoreError::write("cannot make", &path))
        });
        if made.is_err() {
            let _ = disk::remove_all(&unfinished);
        }
        made?;
        file::sync_folder(&folder)?;
        Ok(number)
    }

    /// Removes all generations but the newest `keep` and `spare`. Those marked as put aside do not count. Returns the removed
    /// numbers, even after a failure.
    pub(crate) fn prune(
        &self,
        keep: NonZeroUsize,
        spare: Option<u64>,
        which: Prune,
    ) -> (Vec<u64>, Result<(), StoreError>) {
        let mut removed = Vec::new();
        let folder = self.store.generations_folder();
        let mut remove = || {
            sweep(&folder)?;
            for number in dispensable(&self.store.generations()?, keep, spare, which) {
                let path = folder.join(number.to_string());
                let gone = folder.join(format!(".{number}{GONE}"));
                disk::rename(&path, &gone).map_err(StoreError::write("cannot remove", &path))?;
                removed.push(number);
            }
            sweep(&folder)
        };
        let result = remove();
        (removed, result)
    }
}

/// The numbers of those to remove, oldest first.
fn dispensable(
    all: &[Generation],
    keep: NonZeroUsize,
    spare: Option<u64>,
    which: Prune,
) -> Vec<u64> {
    let mut good = 0;
    let mut gone = Vec::new();
    for (rank, generation) in all.iter().rev().enumerate() {
        good += usize::from(!generation.aside);
        let is_new = rank < keep.get() || (!generation.aside && good <= keep.get());
        let may_go = generation.aside || which == Prune::Any;
        if !is_new && may_go && spare != Some(generation.number) {
            gone.push(generation.number);
        }
    }
    gone.reverse();
    gone
}

/// Removes generations that a killed netfix created or removed only in part.
fn sweep(folder: &Path) -> Result<(), StoreError> {
    let leftovers: Vec<PathBuf> = file::names(folder)?
        .into_iter()
        .filter(|name| name == UNFINISHED || (name.starts_with('.') && name.ends_with(GONE)))
        .map(|name| folder.join(name))
        .collect();
    if leftovers.is_empty() {
        return Ok(());
    }
    for path in leftovers {
        disk::remove_all(&path).map_err(StoreError::write("cannot remove", &path))?;
    }
    file::sync_folder(folder)
}

/// Puts all present files into a folder, as links to unchanged files of the generation `before`.
fn build(
    store: &Store,
    before: Option<&Store>,
    into: &Path,
    aside: bool,
) -> Result<(), StoreError> {
    let checkpoints = into.join("checkpoints");
    disk::make_folder(&checkpoints).map_err(StoreError::write("cannot make", into))?;
    let mut copies = Vec::new();
    for id in store.ids()? {
        let place = |folder: PathBuf| folder.join(id.as_str());
        let held = before.map(|before| place(before.checkpoints()));
        let kept = place(checkpoints.clone());
        copies.extend(keep(&place(store.checkpoints()), held.as_deref(), &kept)?.then_some(kept));
    }
    let node = into.join("node.json");
    copies.extend(keep(&store.node_path(), None, &node)?.then_some(node));
    if aside {
        let mark = into.join(ASIDE);
        file::create(&mark, b"", 0o600).map_err(StoreError::write("cannot write", &mark))?;
    }
    // One sync after all writes lets the disk combine them.
    for path in copies {
        File::open(&path)
            .and_then(|file| disk::sync(&file))
            .map_err(StoreError::write("cannot sync", &path))?;
    }
    file::sync_folder(&checkpoints)?;
    file::sync_folder(into)
}

/// Puts one file into a generation: as a link to the unchanged file of the generation before, or as a copy. A file that
/// netfix cannot have written, or cannot read, is linked as it is. Returns whether it made a copy.
fn keep(path: &Path, held: Option<&Path>, kept: &Path) -> Result<bool, StoreError> {
    let refused = StoreError::write("cannot make", kept);
    let meta = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        meta => meta.map_err(StoreError::io("cannot stat", path))?,
    };
    // A folder cannot be linked, and no checkpoint can replace it.
    if meta.is_dir() {
        return Ok(false);
    }
    if held.is_some_and(|held| same(held, path) && disk::link(held, kept).is_ok()) {
        return Ok(false);
    }
    let Some(bytes) = file::bytes(path) else {
        return disk::link(path, kept).map(|()| false).map_err(refused);
    };
    file::create(kept, &bytes, 0o600)
        .map(|_| true)
        .map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(all: &[(u64, bool)], keep: usize, spare: Option<u64>, which: Prune) -> Vec<u64> {
        let all: Vec<Generation> = all
            .iter()
            .map(|&(number, aside)| Generation { number, aside })
            .collect();
        dispensable(&all, NonZeroUsize::new(keep).unwrap(), spare, which)
    }

    #[test]
    fn the_newest_stay() {
        let all = [(1, false), (2, false), (4, false), (7, false)];
        assert_eq!(gone(&all, 2, None, Prune::Any), [1, 2]);
        assert_eq!(gone(&all, 4, None, Prune::Any), [0; 0]);
        assert_eq!(gone(&all, 1, Some(2), Prune::Any), [1, 4]);
    }

    #[test]
    fn generations_put_aside_do_not_count() {
        let all = [(1, false), (2, false), (3, true), (4, true), (5, true)];
        assert_eq!(gone(&all, 2, None, Prune::Any), [3]);
        assert_eq!(gone(&all, 2, None, Prune::Aside), [3]);
        assert_eq!(gone(&all, 1, None, Prune::Any), [1, 3, 4]);
        assert_eq!(
            gone(&all, 1, None, Prune::Aside),
            [3, 4],
            "putting aside removes no other generation"
        );
        let later = [(2, false), (4, true), (5, true), (6, false), (7, false)];
        assert_eq!(
            gone(&later, 2, None, Prune::Any),
            [2, 4, 5],
            "those put aside go once enough others exist"
        );
    }
}
