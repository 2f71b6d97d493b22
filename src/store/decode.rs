//! From the text of a stored file to what it holds, once its schema and checksum are known to be right.

use std::path::Path;

use crate::model::Checkpoint;
use crate::model::checkpoint::SCHEMA;
use crate::store::error::StoreError;
use crate::store::file;
use crate::store::schema::{self, OfCheckpoint, Schema};

/// The schema and the text of a file with schema and checksum at its top level; `None` when it does not exist.
pub(super) fn load(path: &Path, known: u32) -> Result<Option<(u32, String)>, StoreError> {
    let Some(text) = file::read(path)? else {
        return Ok(None);
    };
    let Schema { schema } = file::parse(path, &text)?;
    schema::check(path, schema, known)?;
    file::verify(path, &text)?;
    Ok(Some((schema, text)))
}

pub(super) fn load_checkpoint(path: &Path) -> Result<Checkpoint, StoreError> {
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
pub(super) fn decode(path: &Path, text: &str) -> Result<Checkpoint, StoreError> {
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
