//! The state folder: checkpoints, node state and the lock. The only place that touches its files.
//!
//! Files are loaded and saved through [`Guard`] or [`Store`]; writing needs the guard, which holds the lock.

mod cni_cache;
mod disk;
mod file;
mod generation;
mod import;
mod keep;
mod lock;
mod room;
mod window;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::checkpoint::SCHEMA;
use crate::model::{Checkpoint, Code, NodeState, PodId, Problem};

pub use cni_cache::{CacheFile, cni_cache};
pub use file::{publish, replace};
pub use generation::{Contents, Generation, Survey};
pub use import::{Content, Foreign, foreign};
pub use keep::{Kept, Prune};
pub use lock::Guard;
pub use room::Room;
pub use window::Closed;

/// Why a stored file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there but is damaged, foreign or newer than this program.
    #[error("{path}: {reason}", path = .path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file system refused.
    #[error("{action} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// The errno.
        source: io::Error,
        /// Whether something was to be written, or removed.
        writing: bool,
    },
    /// Another netfix is changing things.
    #[error("{path} is held by {holder}; {}", waited(*.patience), path = .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as far as it said so.
        holder: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// There is no generation of that number.
    #[error("there is no such generation; {}", those(.kept))]
    NoGeneration {
        /// The number that was asked for.
        number: u64,
        /// The numbers that there are.
        kept: Vec<u64>,
    },
}

fn waited(patience: Duration) -> String {
    if patience.is_zero() {
        return "run this again when that one has ended, or let it wait with --lock-wait 60s".to_owned();
    }
    format!("that one did not end within --lock-wait {}", humantime::format_duration(patience))
}

fn those(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match texts.as_slice() {
        [] => "none is kept yet: `netfix snapshot` makes one".to_owned(),
        [one] => format!("only {one} is kept"),
        [all @ .., last] => format!("{} and {last} are kept", all.join(", ")),
    }
}

impl Error {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source, writing: false }
    }

    /// The same for what changes the disk.
    fn write<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source, writing: true }
    }

    /// Whether it only says that something is not there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// The same as a problem to report.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let (code, path) = match self {
            Self::Corrupt { path, .. } => (Code::CheckpointCorrupt, path),
            Self::Io { path, source, writing, .. } => {
                use io::ErrorKind::{QuotaExceeded, StorageFull};
                let code = match source.kind() {
                    StorageFull | QuotaExceeded => Code::NoSpace,
                    _ if *writing => Code::Unwritable,
                    _ => Code::Unreadable,
                };
                (code, path)
            }
            Self::Locked { path, .. } => (Code::LockHeld, path),
            Self::NoGeneration { number, .. } => {
                return Problem::error(Code::NotFound, format!("--generation {number}"), self.to_string());
            }
        };
        let object = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Problem::error(code, object, self.to_string())
    }
}

/// The state folder, for reading: what is stored now, or one generation of it.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
    generation: Option<u64>,
    /// How long the lock is waited for.
    patience: Duration,
    /// Who hears whom it is waited for.
    tell: fn(&str),
}

/// What one file of the checkpoint folder holds.
pub type Loaded = (PodId, Result<Checkpoint, Error>);

impl Store {
    /// The state folder at `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder, generation: None, patience: Duration::ZERO, tell: |_| {} }
    }

    /// The same, with patience: a lock that another process holds is waited for this long. `tell` hears, once, who
    /// holds it.
    #[must_use]
    pub fn patient(self, patience: Duration, tell: fn(&str)) -> Self {
        Self { patience, tell, ..self }
    }

    /// Whether anything was ever stored here.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.folder.join("checkpoints").is_dir()
    }

    /// The folder that holds the checkpoints' folder and the node's state.
    fn files(&self) -> PathBuf {
        let of_generation = |number: u64| self.generations_folder().join(number.to_string());
        self.generation.map_or_else(|| self.folder.clone(), of_generation)
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Who holds the lock, as far as it said so; `None` when nobody does.
    #[must_use]
    pub fn holder(&self) -> Option<String> {
        lock::holder(&self.folder)
    }

    /// Whether `folder` is the one of the checkpoints, by whatever path.
    #[must_use]
    pub fn is_at(&self, folder: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        real(folder).is_some_and(|folder| real(&self.checkpoints()) == Some(folder))
    }

    fn checkpoints(&self) -> PathBuf {
        self.files().join("checkpoints")
    }

    fn node_path(&self) -> PathBuf {
        self.files().join("node.json")
    }

    /// The names of all checkpoints, in their order.
    fn ids(&self) -> Result<Vec<PodId>, Error> {
        let folder = self.checkpoints();
        // A generation always has this folder, and may be removed at any time.
        if folder.exists() || self.generation.is_some() {
            lock::check_folder(&self.files())?;
            lock::check_folder(&folder)?;
        }
        let names = file::names(&folder)?;
        // Temporary files of an interrupted write, and whatever else is no checkpoint, start with a dot.
        let mut ids: Vec<PodId> = names.into_iter().filter_map(|name| PodId::try_from(name).ok()).collect();
        ids.sort();
        Ok(ids)
    }

    /// Every checkpoint, in the order of their ids; a damaged one is there with its error.
    ///
    /// # Errors
    /// When the folder cannot be read; a folder that does not exist holds nothing.
    pub fn load_all(&self) -> Result<Vec<Loaded>, Error> {
        let load = |id: PodId| {
            let checkpoint = load_checkpoint(&self.checkpoints().join(id.as_str()));
            (id, checkpoint)
        };
        Ok(self.ids()?.into_iter().map(load).collect())
    }

    /// The node's state; `None` when none was ever written.
    ///
    /// # Errors
    /// When the file is there but cannot be used.
    pub fn load_node(&self) -> Result<Option<NodeState>, Error> {
        let path = self.node_path();
        let Some(text) = file::read(&path)? else { return Ok(None) };
        let probe: NodeSchema = file::parse(&path, &text)?;
        check_schema(&path, probe.schema, SCHEMA)?;
        file::verify(&path, &text)?;
        file::parse(&path, &text).map(Some)
    }

    /// Takes the lock, creating the state folder where it is missing.
    ///
    /// # Errors
    /// When another process holds it longer than the store has patience, or the folder cannot be made.
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
    let text = file::read(path)?.ok_or_else(|| {
        let reason = "the file went away while it was read".to_owned();
        Error::Corrupt { path: path.to_owned(), reason }
    })?;
    decode(path, &text)
}

/// What a checkpoint's text says.
fn decode(path: &Path, text: &str) -> Result<Checkpoint, Error> {
    let corrupt = |reason: &str| Error::Corrupt { path: path.to_owned(), reason: reason.to_owned() };
    let probe: CheckpointSchema = file::parse(path, text)?;
    match probe.netfix {
        Some(extension) => {
            check_schema(path, extension.schema, SCHEMA)?;
            file::verify(path, text)?;
        }
        // A damaged key of ours must not make the file pass for one of the origin's.
        None if file::has_checksum(text) => return Err(corrupt("a checksum, but no `netfix` key")),
        None => {}
    }
    let checkpoint: Checkpoint = file::parse(path, text)?;
    if checkpoint.result.interfaces.is_empty() {
        return Err(corrupt("it names no interface"));
    }
    Ok(checkpoint)
}

fn check_schema(path: &Path, schema: u32, known: u32) -> Result<(), Error> {
    if schema == known {
        return Ok(());
    }
    let reason = format!("schema {schema} is not known to this netfix, which reads up to {known}");
    Err(Error::Corrupt { path: path.to_owned(), reason })
}
