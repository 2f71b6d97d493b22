//! The state folder: checkpoints, node state and the lock. The only place that touches its files.
//!
//! Files are loaded and saved through [`Guard`] or [`Store`]; writing needs the guard, which holds the lock.

mod cni_cache;
mod file;
mod import;
mod lock;
mod room;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::checkpoint::SCHEMA;
use crate::model::{Checkpoint, Code, NodeState, PodId, Problem};

pub use cni_cache::{CacheFile, cni_cache};
pub use file::replace;
pub use import::{Content, Foreign, foreign};
pub use lock::{Guard, Retired};
pub use room::Room;

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
    },
    /// Another netfix is changing things.
    #[error("{path} is held by {holder}", path = .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, as far as it said so.
        holder: String,
    },
}

impl Error {
    fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action, path: path.to_owned(), source }
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
            Self::Io { path, .. } => (Code::Unreadable, path),
            Self::Locked { path, .. } => (Code::LockHeld, path),
        };
        let object = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Problem::error(code, object, self.to_string())
    }
}

/// The state folder, for reading.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// What one file of the checkpoint folder holds.
pub type Loaded = (PodId, Result<Checkpoint, Error>);

impl Store {
    /// The state folder at `folder`, which need not exist yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether anything was ever stored here.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.checkpoints().is_dir()
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Who holds the lock, as far as it said so; `None` when nobody does. Nothing is locked by asking.
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
        self.folder.join("checkpoints")
    }

    fn node_path(&self) -> PathBuf {
        self.folder.join("node.json")
    }

    /// Every checkpoint, in the order of their ids; a damaged one is there with its error.
    ///
    /// # Errors
    /// When the folder cannot be read; a folder that does not exist holds nothing.
    pub fn load_all(&self) -> Result<Vec<Loaded>, Error> {
        let folder = self.checkpoints();
        if folder.exists() {
            lock::check_folder(&self.folder)?;
            lock::check_folder(&folder)?;
        }
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::io("cannot read", &folder))?,
        };
        let mut loaded = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::io("cannot read", &folder))?.file_name();
            let name = name.to_string_lossy().into_owned();
            // Temporary files of an interrupted write, and whatever else is no checkpoint, start with a dot.
            if let Ok(id) = PodId::try_from(name) {
                let path = folder.join(id.as_str());
                loaded.push((id, load_checkpoint(&path)));
            }
        }
        loaded.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(loaded)
    }

    /// The node's state; `None` when none was ever written.
    ///
    /// # Errors
    /// When the file is there but cannot be used.
    pub fn load_node(&self) -> Result<Option<NodeState>, Error> {
        let path = self.node_path();
        let Some(text) = file::read(&path)? else { return Ok(None) };
        let probe: NodeSchema = file::parse(&path, &text)?;
        check_schema(&path, probe.schema)?;
        file::verify(&path, &text)?;
        file::parse(&path, &text).map(Some)
    }

    /// Takes the lock, creating the state folder where it is missing.
    ///
    /// # Errors
    /// When another process holds it, or the folder cannot be made.
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
            check_schema(path, extension.schema)?;
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

fn check_schema(path: &Path, schema: u32) -> Result<(), Error> {
    if schema == SCHEMA {
        return Ok(());
    }
    let reason = format!("schema {schema} is not known to this netfix, which reads up to {SCHEMA}");
    Err(Error::Corrupt { path: path.to_owned(), reason })
}
