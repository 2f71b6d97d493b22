//! Checkpoints that are not in the state folder: the origin's, read from its own folder and never written there.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Error, Guard, decode, file};
use crate::model::{Checkpoint, PodId};

/// One file of such a folder.
#[derive(Debug)]
pub struct Foreign {
    /// Its name.
    pub name: String,
    /// What it holds, or why it cannot be used.
    pub content: Result<Content, Error>,
}

/// What a good file holds.
#[derive(Debug)]
pub struct Content {
    /// The name that it has here too.
    pub id: PodId,
    /// What it says.
    pub checkpoint: Checkpoint,
    /// How it says it.
    text: String,
}

/// Every file of a folder with checkpoints in the origin's format, in the order of their names.
///
/// # Errors
/// When the folder cannot be read.
pub fn foreign(folder: &Path) -> Result<Vec<Foreign>, Error> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::io("cannot read", folder))? {
        paths.push(entry.map_err(Error::io("cannot read", folder))?.path());
    }
    paths.sort();
    Ok(paths.iter().map(|path| read(path)).collect())
}

/// The least that the origin names a file by: that many characters of the sandbox id.
const SHORT: usize = 12;

fn read(path: &Path) -> Foreign {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Foreign { content: content(path, &name), name }
}

fn content(path: &Path, name: &str) -> Result<Content, Error> {
    let corrupt = |reason: String| Error::Corrupt { path: path.to_owned(), reason };
    let id = PodId::try_from(name.to_owned()).map_err(|error| corrupt(error.to_string()))?;
    let text = file::read(path)?.ok_or_else(|| corrupt("it went away while it was read".to_owned()))?;
    let checkpoint = decode(path, &text)?;
    if checkpoint.netfix.is_some() {
        let reason = "netfix has written it: it belongs into a state folder, see --state-dir";
        return Err(corrupt(reason.to_owned()));
    }
    let sandbox = &checkpoint.sandbox;
    if !sandbox.is_empty() && (!sandbox.starts_with(name) || name.len() < SHORT.min(sandbox.len())) {
        return Err(corrupt(format!("it is about sandbox {}, and has not its name", sandbox.escape_debug())));
    }
    Ok(Content { id, checkpoint, text })
}

impl Guard {
    /// Writes a foreign checkpoint as it is, under its own name.
    ///
    /// # Errors
    /// When the file system refuses; what was there is then still whole.
    pub fn adopt(&self, content: &Content) -> Result<(), Error> {
        file::write(&self.checkpoint_path(&content.id), &content.text)
    }
}
