//! The state directory: checkpoints, node state, generations, windows and the lock. No other module opens its files.
//!
//! [`Store`] reads; [`Guard`], which holds the lock, writes.

mod cni_cache;
mod disk;
mod disk_space;
mod file;
mod generation;
mod import;
mod lock;
mod retention;
mod window;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::checkpoint::SCHEMA;
use crate::model::problem::{StoreCause, StoreEffect};
use crate::model::{Checkpoint, NodeState, PodId, Problem};

pub(crate) use crate::store::retention::{Kept, Prune};
pub(crate) use cni_cache::cni_cache;
pub(crate) use file::{publish, replace};
pub(crate) use generation::{Contents, Generation, Survey};
pub(crate) use import::{Content, Foreign, foreign};
pub use lock::Guard;

/// Why a stored file cannot be used.
#[derive(Debug)]
pub enum Error {
    /// The file is damaged, foreign or newer than this program.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file system refused.
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The errno.
        source: io::Error,
        /// Whether it was to change the disk.
        writing: bool,
    },
    /// Another netfix holds the lock.
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as the file says.
        holder: String,
        /// How long this process waited.
        patience: Duration,
    },
    /// There is no generation of that number.
    NoGeneration {
        /// The number.
        number: u64,
        /// The existing numbers.
        kept: Vec<u64>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause(None).fmt(f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Corrupt { .. } | Self::Locked { .. } | Self::NoGeneration { .. } => None,
        }
    }
}

impl Error {
    fn corrupt(path: &Path, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }

    fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
            writing: false,
        }
    }

    /// The same for a write or removal.
    fn write<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
            writing: true,
        }
    }

    /// Whether it is `ENOENT`.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The problem to report.
    pub(crate) fn problem(&self) -> Problem {
        self.cause(None).error(self.object())
    }

    /// The same, with what the command cannot do because of it.
    pub(crate) fn problem_with(&self, effect: StoreEffect) -> Problem {
        self.cause(Some(effect)).error(self.object())
    }

    /// The file's name, or the option that named the generation.
    fn object(&self) -> String {
        match self {
            Self::Corrupt { path, .. } | Self::Io { path, .. } | Self::Locked { path, .. } => {
                let name = path.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            Self::NoGeneration { number, .. } => format!("--generation {number}"),
        }
    }

    fn cause(&self, effect: Option<StoreEffect>) -> StoreCause {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let text = |path: &Path| path.display().to_string();
        match self {
            Self::Corrupt { path, reason } => StoreCause::Corrupt {
                path: text(path),
                reason: reason.clone(),
                effect,
            },
            Self::Io {
                action,
                path,
                source,
                writing,
            } => {
                let (action, path) = ((*action).to_owned(), text(path));
                let error = source.to_string();
                match source.kind() {
                    StorageFull | QuotaExceeded => StoreCause::NoSpace {
                        action,
                        path,
                        error,
                        effect,
                    },
                    _ if *writing => StoreCause::CannotWrite {
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
                }
            }
            Self::Locked {
                path,
                holder,
                patience,
            } => StoreCause::Locked {
                path: text(path),
                holder: holder.clone(),
                waited: *patience,
            },
            Self::NoGeneration { number: _, kept } => {
                StoreCause::NoGeneration { kept: kept.clone() }
            }
        }
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
    tell: fn(&str),
}

/// One checkpoint file.
pub(crate) type Loaded = (PodId, Result<Checkpoint, Error>);

impl Store {
    /// The state directory at `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            generation: None,
            patience: Duration::ZERO,
            tell: |_| {},
        }
    }

    /// The same, with a wait for a lock that another process holds. `tell` receives the holder's name before the wait.
    #[must_use]
    pub fn patient(self, patience: Duration, tell: fn(&str)) -> Self {
        Self {
            patience,
            tell,
            ..self
        }
    }

    /// Whether a snapshot was ever stored here.
    pub(crate) fn exists(&self) -> bool {
        self.folder.join("checkpoints").is_dir()
    }

    /// The folder that holds the checkpoints' folder and the node's state.
    fn files(&self) -> PathBuf {
        let of_generation = |number: u64| self.generations_folder().join(number.to_string());
        self.generation
            .map_or_else(|| self.folder.clone(), of_generation)
    }

    /// Its path.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The holder of the lock; `None` when it is free.
    pub(crate) fn holder(&self) -> Option<String> {
        lock::holder(&self.folder)
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
    fn ids(&self) -> Result<Vec<PodId>, Error> {
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
    pub(crate) fn load_all(&self) -> Result<Vec<Loaded>, Error> {
        let load = |id: PodId| {
            let checkpoint = load_checkpoint(&self.checkpoint_path(&id));
            (id, checkpoint)
        };
        Ok(self.ids()?.into_iter().map(load).collect())
    }

    /// The node's state; `None` when the file is missing.
    pub(crate) fn load_node(&self) -> Result<Option<NodeState>, Error> {
        let path = self.node_path();
        let Some(text) = file::read(&path)? else {
            return Ok(None);
        };
        let probe: NodeSchema = file::parse(&path, &text)?;
        check_schema(&path, probe.schema, SCHEMA)?;
        file::verify(&path, &text)?;
        file::parse(&path, &text).map(Some)
    }

    /// Takes the lock, and creates a missing state directory.
    ///
    /// # Errors
    /// When another process holds the lock longer than the limit, or the folder cannot be created.
    pub fn lock(&self, command: &str) -> Result<Guard, Error> {
        Guard::take(self.clone(), command)
    }
}

#[derive(serde::Deserialize)]
struct NodeSchema {
    schema: u32,
}

#[derive(serde::Deserialize)]
struct CheckpointSchema {
    netfix: Option<NodeSchema>,
}

fn load_checkpoint(path: &Path) -> Result<Checkpoint, Error> {
    let text = file::read(path)?
        .ok_or_else(|| Error::corrupt(path, "the file was removed while it was read"))?;
    decode(path, &text)
}

/// Decodes the text of a checkpoint.
fn decode(path: &Path, text: &str) -> Result<Checkpoint, Error> {
    let probe: CheckpointSchema = file::parse(path, text)?;
    match probe.netfix {
        Some(extension) => {
            check_schema(path, extension.schema, SCHEMA)?;
            file::verify(path, text)?;
        }
        // A netfix file with a damaged key must not pass for one of i40e_net_fix.
        None if file::has_checksum(text) => {
            return Err(Error::corrupt(path, "a checksum, but no `netfix` key"));
        }
        None => {}
    }
    let checkpoint: Checkpoint = file::parse(path, text)?;
    if checkpoint.result.interfaces.is_empty() {
        return Err(Error::corrupt(path, "it has no interface"));
    }
    Ok(checkpoint)
}

fn check_schema(path: &Path, schema: u32, known: u32) -> Result<(), Error> {
    if schema == known {
        return Ok(());
    }
    let reason = format!("unknown schema {schema}: this netfix reads up to {known}");
    Err(Error::corrupt(path, reason))
}
