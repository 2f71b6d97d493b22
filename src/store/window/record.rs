//! The file of one window: its name, and from its text to what it holds.

use std::path::Path;

use crate::model::text::escape;
use crate::model::{Window, window};
use crate::store::{StoreError, file, schema};

/// The suffixes of a record and of its log.
pub(super) const RECORD: &str = ".json";
pub(super) const LOG: &str = ".log";

/// Whether a text can be a window's id, and so part of a file's name: `20261121T031500Z`.
pub(super) fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    (1..=64).contains(&text.len()) && bytes.all(|one| one.is_ascii_alphanumeric() || one == b'-')
}

pub(super) fn load(path: &Path) -> Result<Option<Window>, StoreError> {
    let Some((_, text)) = schema::load(path, window::SCHEMA)? else {
        return Ok(None);
    };
    let window = file::parse(path, &text)?;
    check_id(path, &window)?;
    Ok(Some(window))
}

pub(super) fn encode(path: &Path, window: &Window) -> Result<String, StoreError> {
    file::encode(path, window, &["checksum"])
}

pub(super) fn check_id(path: &Path, window: &Window) -> Result<(), StoreError> {
    if is_id(&window.id) {
        return Ok(());
    }
    let reason = format!("\"{}\" is no window id", escape(&window.id));
    Err(StoreError::corrupt(path, reason))
}
