//! The state directory: checkpoints, node state, generations, windows and the lock. No other module opens its files.
//!
//! [`Store`] reads; [`Guard`], which holds the lock, writes.

mod cni_cache;
mod disk;
mod disk_space;
mod error;
mod file;
mod generation;
mod import;
mod light;
mod lock;
mod publish;
mod retention;
mod schema;
mod unplanned;
mod window;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::model::checkpoint::{Large, SCHEMA};
use crate::model::{Checkpoint, NodeIdentity, NodeState, PodId};
use crate::side_by_side;
use crate::store::schema::{load, load_checkpoint};

pub(crate) use crate::store::retention::{NewestGeneration, Prune};
pub(crate) use cni_cache::cni_cache;
pub use error::StoreError;
pub(crate) use file::read as read_file;
#[cfg(feature = "fuzzing")]
pub(crate) use file::with_checksum;
pub(crate) use generation::{Contents, Generation, GenerationReader, PastCheckpoints};
pub(crate) use import::{Content, Foreign, foreign};
pub(crate) use light::{Light, Whole};
pub use lock::Guard;
pub(crate) use lock::check_shared_folder;
pub(crate) use publish::publish;
pub(crate) use unplanned::HOLD;

/// The state directory, for reading: its present files, or one generation of them.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    generation: Option<u64>,
    /// How long to wait for the lock.
    patience: Duration,
    /// How long, where `netfix guard` has it.
    guard_patience: Duration,
    /// Receives the holder's name before a wait.
    notify: fn(&str),
    /// The present boot; `None`: windows are as they were recorded.
    boot: Option<fn() -> NodeIdentity>,
    /// What is done first with the lock.
    settle: fn(&Guard),
    /// The folder in memory for what the disk refuses.
    memory: PathBuf,
}

/// In memory, so that a full disk does not matter; for root only.
pub(crate) const MEMORY: &str = "/run/netfix";

/// One checkpoint file.
pub(crate) type Loaded<T = Checkpoint> = (PodId, Result<T, StoreError>);

impl Store {
    /// The state directory at `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            generation: None,
            patience: Duration::ZERO,
            guard_patience: Duration::ZERO,
            notify: |_| {},
            boot: None,
            settle: |_| {},
            memory: MEMORY.into(),
        }
    }

    /// Takes a window that another boot left open as ended, and does `settle` first with each lock.
    #[must_use]
    pub(crate) fn settled(self, boot: fn() -> NodeIdentity, settle: fn(&Guard)) -> Self {
        Self {
            boot: Some(boot),
            settle,
            ..self
        }
    }

    /// Waits for a lock that another process holds. `notify` receives the holder's name before the wait.
    #[must_use]
    pub fn patient(self, patience: Duration, notify: fn(&str)) -> Self {
        Self {
            patience,
            guard_patience: patience,
            notify,
            ..self
        }
    }

    /// Waits until `netfix guard` has restored what it is restoring.
    #[must_use]
    pub fn after_guard(self) -> Self {
        Self {
            guard_patience: lock::GUARD,
            ..self
        }
    }

    /// Whether a snapshot was ever stored here.
    pub(crate) fn exists(&self) -> bool {
        self.folder.join("checkpoints").is_dir()
    }

    /// The folder that holds the checkpoints' folder and the node's state.
    fn files(&self) -> PathBuf {
        match self.generation {
            Some(number) => self.generations_folder().join(number.to_string()),
            None => self.folder.clone(),
        }
    }

    /// Its path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The holder of the lock; `None` when it is free.
    pub(crate) fn holder(&self) -> Option<String> {
        lock::holder(&self.folder)
    }

    /// Refuses where [`Store::lock`] would, without taking the lock.
    pub(crate) fn refuse_if_locked(&self) -> Result<(), StoreError> {
        let until = Instant::now() + lock::MOMENT;
        while let Some(holder) = self.holder() {
            if !lock::patience(self, &holder).is_zero() {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(lock::held(self, holder));
            }
            thread::sleep(lock::PAUSE);
        }
        Ok(())
    }

    /// Whether `folder` is the checkpoint folder, under any path.
    pub(crate) fn is_at(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| real(&self.checkpoints()) == Some(folder))
    }

    fn checkpoints(&self) -> PathBuf {
        self.files().join("checkpoints")
    }

    fn checkpoint_path(&self, id: &PodId) -> PathBuf {
        self.checkpoints().join(id.as_str())
    }

    fn node_path(&self) -> PathBuf {
        self.files().join("node.json")
    }

    /// The ids of all checkpoints, sorted.
    fn ids(&self) -> Result<Vec<PodId>, StoreError> {
        let folder = self.checkpoints();
        // A generation always has this folder, unless another netfix is removing it.
        if folder.exists() || self.generation.is_some() {
            lock::check_folder(&self.files())?;
            lock::check_folder(&folder)?;
        }
        let names = file::names(&folder)?;
        // Temporary files and other files that are no checkpoint start with a dot.
        let mut ids: Vec<PodId> = names
            .into_iter()
            .filter_map(|name| PodId::try_from(name).ok())
            .collect();
        ids.sort();
        Ok(ids)
    }

    /// Every checkpoint, sorted by id; a damaged one is an error in the list. A missing folder is empty.
    pub(crate) fn load_all(&self) -> Result<Vec<Loaded>, StoreError> {
        self.each(|path, _| load_checkpoint(path))
    }

    /// Every checkpoint, but of `large` ones only what concerns other pods too.
    pub(crate) fn load_light(
        &self,
        large: &BTreeMap<PodId, Large>,
    ) -> Result<Vec<Loaded<Light>>, StoreError> {
        self.each(|path, id| light::load(path, id, large))
    }

    /// On all processors: most of the time goes into parsing.
    fn each<T: Send>(
        &self,
        load: impl Fn(&Path, &PodId) -> T + Sync,
    ) -> Result<Vec<(PodId, T)>, StoreError> {
        let load = |id: PodId| {
            let loaded = load(&self.checkpoint_path(&id), &id);
            (id, loaded)
        };
        Ok(side_by_side::map(self.ids()?, load))
    }

    /// The node's state; `None` when the file is missing.
    pub(crate) fn load_node(&self) -> Result<Option<NodeState>, StoreError> {
        let path = self.node_path();
        let loaded = load(&path, SCHEMA)?;
        loaded
            .map(|(schema, text)| schema::parse(&path, &text, schema))
            .transpose()
    }

    /// Takes the lock, and creates a missing state directory.
    ///
    /// # Errors
    /// When another process holds the lock longer than the limit, or the folder cannot be created.
    pub fn lock(&self, command: &str) -> Result<Guard, StoreError> {
        let guard = Guard::take(self.clone(), command)?;
        (self.settle)(&guard);
        Ok(guard)
    }
}
