//! Generations: earlier states of the files, each a numbered folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::schema::load_checkpoint;
use super::{Store, StoreError, file, lock};
use crate::model::pod::past::PastFiles;
use crate::model::{Checkpoint, NodeState, PodId, Stamp};
use crate::side_by_side;

/// One generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation {
    /// Its number; a higher one is newer.
    pub number: u64,
    /// Whether it was put aside before a snapshot replaced some of its files, and is not the result of a complete snapshot.
    pub aside: bool,
}

/// The file that marks a generation as put aside.
pub(super) const ASIDE: &str = "aside";

impl Store {
    pub(super) fn generations_folder(&self) -> PathBuf {
        self.folder.join("generations")
    }

    /// Every generation, oldest first.
    pub(crate) fn generations(&self) -> Result<Vec<Generation>, StoreError> {
        let folder = self.generations_folder();
        let mut all = Vec::new();
        for name in file::names(&folder)? {
            let number = name
                .parse::<u64>()
                .ok()
                .filter(|number| number.to_string() == name);
            let path = folder.join(name);
            if let Some(number) = number.filter(|_| path.is_dir()) {
                all.push(Generation {
                    number,
                    aside: path.join(ASIDE).exists(),
                });
            }
        }
        all.sort_by_key(|generation| generation.number);
        Ok(all)
    }

    /// The present state directory, or its content in that generation.
    pub(crate) fn at(&self, generation: Option<u64>) -> Result<Self, StoreError> {
        generation.map_or_else(|| Ok(self.clone()), |number| self.generation(number))
    }

    /// The state folder as of one generation. Fails when it does not exist, or others could have written to it.
    pub(crate) fn generation(&self, number: u64) -> Result<Self, StoreError> {
        let kept: Vec<u64> = self
            .generations()?
            .iter()
            .map(|generation| generation.number)
            .collect();
        if !kept.contains(&number) {
            return Err(StoreError::no_generation(number, kept));
        }
        lock::check_folder(&self.folder)?;
        lock::check_folder(&self.generations_folder())?;
        Ok(Self {
            generation: Some(number),
            ..self.clone()
        })
    }

    /// Whether `of` holds exactly these checkpoints and this node state, apart from times.
    pub(super) fn is_whole_in(&self, of: &Self) -> Result<bool, StoreError> {
        let ids = self.ids()?;
        Ok(ids == of.ids()? && self.is_held_by(of, &ids))
    }

    /// Whether `of` holds these checkpoints and the node's state, apart from times. An unreadable file is compared byte for
    /// byte.
    pub(super) fn is_held_by<'a>(
        &self,
        of: &Self,
        ids: impl IntoIterator<Item = &'a PodId>,
    ) -> bool {
        let held = side_by_side::map(ids.into_iter().collect(), |id: &PodId| {
            let (here, there) = (self.checkpoint_path(id), of.checkpoint_path(id));
            same(&here, &there)
                || matches!(
                    (load_checkpoint(&here), load_checkpoint(&there)),
                    (Ok(here), Ok(there)) if here.is_equal_but_for_times(&there)
                )
        });
        held.into_iter().all(|is_held| is_held)
            && match (self.load_node(), of.load_node()) {
                (Ok(None), _) => true,
                (Ok(Some(mine)), Ok(Some(held))) => mine.is_equal_but_for_times(&held),
                _ => same(&self.node_path(), &of.node_path()),
            }
    }
}

/// Whether two files are the same inode, or have the same bytes.
pub(super) fn same(one: &Path, other: &Path) -> bool {
    let (Ok(a), Ok(b)) = (fs::symlink_metadata(one), fs::symlink_metadata(other)) else {
        return false;
    };
    (a.dev(), a.ino()) == (b.dev(), b.ino())
        || (file::is_ours(&a)
            && file::is_ours(&b)
            && a.len() == b.len()
            && matches!((file::bytes(one), file::bytes(other)), (Some(a), Some(b)) if a == b))
}

/// The checkpoints of the generations that can be read, newest first. A file that several generations share is read once, with
/// the newest of them.
pub(crate) struct PastCheckpoints<'a> {
    store: &'a Store,
    /// The newest is the last.
    unread: Vec<u64>,
    /// Device and inode of each file that was read.
    read: BTreeSet<(u64, u64)>,
}

impl Store {
    /// What the generations have, newest first.
    pub(crate) fn past(&self) -> Vec<PastFiles> {
        let past = PastCheckpoints::new(self).map(|(number, checkpoints)| {
            let node = self.generation(number).and_then(|store| store.load_node());
            PastFiles {
                number,
                checkpoints: checkpoints.into_iter().collect(),
                node: node.ok().flatten().map(|node| node.created),
            }
        });
        past.collect()
    }
}

impl<'a> PastCheckpoints<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        let generations = store.generations().unwrap_or_default();
        Self {
            store,
            unread: generations.iter().map(|one| one.number).collect(),
            read: BTreeSet::new(),
        }
    }

    fn unread_in(&mut self, number: u64) -> Option<Vec<(PodId, Checkpoint)>> {
        let store = self.store.generation(number).ok()?;
        let mut files = Vec::new();
        for id in store.ids().ok()? {
            let path = store.checkpoint_path(&id);
            let meta = fs::symlink_metadata(&path).ok();
            if meta.is_some_and(|meta| self.read.insert((meta.dev(), meta.ino()))) {
                files.push((id, path));
            }
        }
        let load = |(id, path): (PodId, PathBuf)| Some((id, load_checkpoint(&path).ok()?));
        let loaded = side_by_side::map(files, load);
        Some(loaded.into_iter().flatten().collect())
    }
}

impl Iterator for PastCheckpoints<'_> {
    type Item = (u64, Vec<(PodId, Checkpoint)>);

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.unread.pop()?;
        let loaded = self.unread_in(number).unwrap_or_default();
        Some((number, loaded))
    }
}

/// The contents of one generation.
#[derive(Debug)]
pub(crate) struct Contents {
    pub node: Result<Option<NodeState>, StoreError>,
    /// When each checkpoint was written, where it has a time, or why it cannot be read.
    pub checkpoints: BTreeMap<PodId, Result<Option<Stamp>, StoreError>>,
    store: Store,
}

impl Contents {
    /// Whether both generations have the same file for a pod.
    pub(crate) fn has_same(&self, other: &Self, id: &PodId) -> bool {
        same(
            &self.store.checkpoint_path(id),
            &other.store.checkpoint_path(id),
        )
    }

    /// Whether this equals the contents of `now`, apart from times.
    pub(crate) fn is_whole_of(&self, now: &Store) -> Result<bool, StoreError> {
        now.is_whole_in(&self.store)
    }
}

/// Reads generations one after the other, and each shared file once.
#[derive(Debug, Default)]
pub(crate) struct GenerationReader {
    /// By device and inode.
    written: BTreeMap<(u64, u64), Option<Stamp>>,
}

impl GenerationReader {
    /// Reads a generation; `None` when it does not exist or was removed during the read. A damaged file does not stop
    /// the others.
    pub(crate) fn read(
        &mut self,
        store: &Store,
        number: u64,
    ) -> Result<Option<Contents>, StoreError> {
        let contents = store
            .generation(number)
            .and_then(|store| self.contents(store));
        match store.generation(number) {
            Err(error) if error.is_of_no_generation() => Ok(None),
            _ => contents.map(Some),
        }
    }

    fn contents(&mut self, store: Store) -> Result<Contents, StoreError> {
        let mut checkpoints = BTreeMap::new();
        for id in store.ids()? {
            let written = self.written(&store.checkpoint_path(&id));
            checkpoints.insert(id, written);
        }
        Ok(Contents {
            node: store.load_node(),
            checkpoints,
            store,
        })
    }

    fn written(&mut self, path: &Path) -> Result<Option<Stamp>, StoreError> {
        let meta = fs::symlink_metadata(path).map_err(StoreError::io("cannot stat", path))?;
        let key = (meta.dev(), meta.ino());
        if let Some(written) = self.written.get(&key) {
            return Ok(written.clone());
        }
        let written = load_checkpoint(path)?
            .netfix
            .map(|extension| extension.stamp());
        self.written.insert(key, written.clone());
        Ok(written)
    }
}
