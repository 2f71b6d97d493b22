//! Checkpoints of `i40e_net_fix`, read from its folder and never written there.

use std::fs;
use std::path::{Path, PathBuf};

use super::schema::decode;
use super::{Guard, StoreError, file};
use crate::model::text::escape;
use crate::model::{Checkpoint, PodId};

/// One file of such a folder.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub name: String,
    /// Its contents, or why it cannot be used.
    pub content: Result<Content, StoreError>,
}

/// The contents of a valid file.
#[derive(Debug)]
pub(crate) struct Content {
    /// Its id, which is its name in both folders.
    pub id: PodId,
    /// The decoded text.
    pub checkpoint: Checkpoint,
    text: String,
}

/// Every file of a folder with checkpoints of `i40e_net_fix`, sorted by name.
pub(crate) fn foreign(folder: &Path) -> Result<Vec<Foreign>, StoreError> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).map_err(StoreError::io("cannot read", folder))? {
        paths.push(entry.map_err(StoreError::io("cannot read", folder))?.path());
    }
    paths.sort();
    Ok(paths.iter().map(|path| read(path)).collect())
}

/// A file's name has at least this many characters of the sandbox id.
const SHORT: usize = 12;

fn read(path: &Path) -> Foreign {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Foreign {
        content: content(path, &name),
        name,
    }
}

fn content(path: &Path, name: &str) -> Result<Content, StoreError> {
    let id = PodId::try_from(name.to_owned())
        .map_err(|error| StoreError::corrupt(path, error.to_string()))?;
    let text = file::read(path)?
        .ok_or_else(|| StoreError::corrupt(path, "it was removed while it was read"))?;
    let checkpoint = decode(path, &text)?;
    if checkpoint.netfix.is_some() {
        let reason = "it is a file of netfix: use its state directory with --state-dir";
        return Err(StoreError::corrupt(path, reason));
    }
    let sandbox = &checkpoint.sandbox;
    if !sandbox.is_empty() && (!sandbox.starts_with(name) || name.len() < SHORT.min(sandbox.len()))
    {
        let sandbox = escape(sandbox);
        let reason = format!("its sandbox is {sandbox}, which does not match its name");
        return Err(StoreError::corrupt(path, reason));
    }
    Ok(Content {
        id,
        checkpoint,
        text,
    })
}

impl Guard {
    /// Writes an imported checkpoint unchanged, under its own name.
    pub(crate) fn adopt(&self, content: &Content) -> Result<(), StoreError> {
        file::write(&self.store.checkpoint_path(&content.id), &content.text)
    }
}
