//! The state directory: checkpoints, node state, generations, windows and the lock. No other module opens its files.
//!
//! [`Store`] reads; [`Guard`], which holds the lock, writes.

mod cni_cache;
mod disk;
mod disk_space;
mod file;
mod generation;
mod import;
mod light;
mod lock;
mod retention;
mod schema;
mod window;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::checkpoint::{Large, SCHEMA};
use crate::model::problem::{StoreCause, StoreEffect};
use crate::model::{Checkpoint, NodeState, PodId, Problem};
use crate::side_by_side;

pub(crate) use crate::store::retention::{NewestGeneration, Prune};
pub(crate) use cni_cache::cni_cache;
#[cfg(feature = "fuzzing")]
pub(crate) use file::with_checksum;
pub(crate) use file::{publish, replace};
pub(crate) use generation::{Contents, Generation, GenerationReader};
pub(crate) use import::{Content, Foreign, foreign};
pub(crate) use light::{Light, Whole};
pub use lock::Guard;
use schema::{OfCheckpoint, Schema};

/// Why something stored could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub struct StoreError {
    cause: StoreCause,
    /// The file's name, or the option that requested it.
    object: String,
    source: Option<io::Error>,
}

impl StoreError {
    fn new(path: &Path, cause: StoreCause) -> Self {
        let name = path.file_name().unwrap_or_default();
        Self {
            cause,
            object: name.to_string_lossy().into_owned(),
            source: None,
        }
    }

    pub(crate) fn corrupt(file: &Path, reason: impl Into<String>) -> Self {
        let (path, reason, effect) = (file.display().to_string(), reason.into(), None);
        let cause = StoreCause::Corrupt {
            path,
            reason,
            effect,
        };
        Self::new(file, cause)
    }

    fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::failed(action, path, source, false)
    }

    fn write<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::failed(action, path, source, true)
    }

    fn failed(action: &str, file: &Path, source: io::Error, writing: bool) -> Self {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let (action, path) = (action.to_owned(), file.display().to_string());
        let (error, effect) = (source.to_string(), None);
        let cause = match source.kind() {
            StorageFull | QuotaExceeded => StoreCause::NoSpace {
                action,
                path,
                error,
                effect,
            },
            _ if writing => StoreCause::CannotWrite {
                action,
                path,
                error,
                effect,
            },
            _ => StoreCause::CannotRead {
                action,
                path,
                error,
                effect,
            },
        };
        Self {
            source: Some(source),
            ..Self::new(file, cause)
        }
    }

    /// Whether the file or folder does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        let kind = self.source.as_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::NotFound)
    }

    /// Whether the file would be larger than netfix reads.
    pub(crate) fn is_too_large(&self) -> bool {
        let kind = self.source.as_ref().map(io::Error::kind);
        kind == Some(io::ErrorKind::FileTooLarge)
    }

    fn is_of_no_generation(&self) -> bool {
        matches!(self.cause, StoreCause::NoGeneration { .. })
    }

    /// The file's name, or the option that requested it.
    pub(crate) fn object(&self) -> &str {
        &self.object
    }

    /// The error as a problem.
    pub(crate) fn problem(&self) -> Problem {
        self.cause.clone().error(self.object.clone())
    }

    /// The error as a problem, with its effect on the command.
    pub(crate) fn problem_with(&self, effect: StoreEffect) -> Problem {
        let mut cause = self.cause.clone();
        match &mut cause {
            StoreCause::Corrupt { effect: place, .. }
            | StoreCause::NoSpace { effect: place, .. }
            | StoreCause::CannotWrite { effect: place, .. }
            | StoreCause::CannotRead { effect: place, .. } => *place = Some(effect),
            StoreCause::Locked { .. } | StoreCause::NoGeneration { .. } => {}
        }
        cause.error(self.object.clone())
    }
}

/// The state directory, for reading: its present files, or one generation of them.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    generation: Option<u64>,
    /// How long to wait for the lock.
    patience: Duration,
    /// Receives the holder's name before a wait.
    notify: fn(&str),
}

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
            notify: |_| {},
        }
    }

    /// Waits for a lock that another process holds. `notify` receives the holder's name before the wait.
    #[must_use]
    pub fn patient(self, patience: Duration, notify: fn(&str)) -> Self {
        Self {
            patience,
            notify,
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
        match self.holder().filter(|_| self.patience.is_zero()) {
            Some(holder) => Err(lock::held(self, holder)),
            None => Ok(()),
        }
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
        Guard::take(self.clone(), command)
    }
}

/// The schema and the text of a file with schema and checksum at its top level; `None` when it does not exist.
fn load(path: &Path, known: u32) -> Result<Option<(u32, String)>, StoreError> {
    let Some(text) = file::read(path)? else {
        return Ok(None);
    };
    let Schema { schema } = file::parse(path, &text)?;
    schema::check(path, schema, known)?;
    file::verify(path, &text)?;
    Ok(Some((schema, text)))
}

fn load_checkpoint(path: &Path) -> Result<Checkpoint, StoreError> {
    let Some(text) = file::read(path)? else {
        return Err(StoreError::corrupt(
            path,
            "the file was removed while it was read",
        ));
    };
    decode(path, &text)
}

/// Checks the schema and the checksum of a checkpoint.
fn check(path: &Path, text: &str, schema: Option<u32>) -> Result<(), StoreError> {
    match schema {
        Some(schema) => {
            schema::check(path, schema, SCHEMA)?;
            file::verify(path, text)
        }
        // A netfix file with a damaged key must not pass for one of i40e_net_fix.
        None if file::has_checksum(text) => {
            Err(StoreError::corrupt(path, "a checksum, but no `netfix` key"))
        }
        None => Ok(()),
    }
}

/// Decodes the text of a checkpoint.
fn decode(path: &Path, text: &str) -> Result<Checkpoint, StoreError> {
    // A large one is parsed once, unless only its schema defines what a text is.
    let parsed = (!schema::is_ambiguous(text))
        .then(|| file::parse::<Checkpoint>(path, text).ok())
        .flatten();
    let schema = match &parsed {
        Some(checkpoint) => checkpoint.netfix.as_ref().map(|own| own.schema),
        None => file::parse::<OfCheckpoint>(path, text)?
            .netfix
            .map(|own| own.schema),
    };
    // A newer schema, or damage, is a better reason than what cannot be parsed.
    check(path, text, schema)?;
    let checkpoint = match parsed {
        Some(checkpoint) => checkpoint,
        None => schema::parse(path, text, schema.unwrap_or(1))?,
    };
    if checkpoint.result.interfaces.is_empty() {
        return Err(StoreError::corrupt(path, "it has no interface"));
    }
    Ok(checkpoint)
}
