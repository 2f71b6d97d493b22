//! The schemas of stored files, and from a text to what it holds, once its schema and checksum are known to be right.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{StoreError, file};
use crate::model::checkpoint::SCHEMA;
use crate::model::text::escape as escape_text;
use crate::model::{Bytes, Checkpoint};

/// A file of netfix, or netfix's part of a checkpoint.
#[derive(Deserialize)]
struct Schema {
    schema: u32,
    /// The netfix that wrote it.
    version: Option<String>,
}

/// A checkpoint; one of `i40e_net_fix` has no schema.
#[derive(Deserialize)]
struct OfCheckpoint {
    netfix: Option<Schema>,
}

/// Refuses what a newer netfix wrote; a damaged schema is damage.
fn check(
    path: &Path,
    text: &str,
    schema: u32,
    version: Option<&str>,
    known: u32,
) -> Result<(), StoreError> {
    if (1..=known).contains(&schema) {
        return Ok(());
    }
    let reason = format!("unknown schema {schema}: this netfix reads up to {known}");
    if file::verify(path, text).is_err() {
        return Err(StoreError::corrupt(path, reason));
    }
    let by = version.map(|version| format!(", and netfix {} wrote it", escape_text(version)));
    let reason = reason + &by.unwrap_or_default();
    Err(StoreError::newer(path, reason))
}

/// The schema and the text of a file with schema and checksum at its top level; `None` when it does not exist.
pub(super) fn load(path: &Path, known: u32) -> Result<Option<(u32, String)>, StoreError> {
    let Some(text) = file::read(path)? else {
        return Ok(None);
    };
    let own: Schema = file::parse(path, &text)?;
    check(path, &text, own.schema, own.version.as_deref(), known)?;
    file::verify(path, &text)?;
    Ok(Some((own.schema, text)))
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
fn verify(path: &Path, text: &str, schema: Option<u32>) -> Result<(), StoreError> {
    match schema {
        Some(schema) => {
            check(path, text, schema, None, SCHEMA)?;
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
    let parsed = (!is_ambiguous(text))
        .then(|| file::parse::<Checkpoint>(path, text).ok())
        .flatten();
    let schema = match &parsed {
        Some(checkpoint) => checkpoint.netfix.as_ref().map(|own| own.schema),
        None => file::parse::<OfCheckpoint>(path, text)?
            .netfix
            .map(|own| own.schema),
    };
    // A newer schema, or damage, is a better reason than what cannot be parsed.
    verify(path, text, schema)?;
    let checkpoint = match parsed {
        Some(checkpoint) => checkpoint,
        None => parse(path, text, schema.unwrap_or(1))?,
    };
    if checkpoint.result.interfaces.is_empty() {
        return Err(StoreError::corrupt(path, "it has no interface"));
    }
    Ok(checkpoint)
}

/// The keys of texts that are bytes to the kernel.
const TEXTS: [&str; 15] = [
    "alias", "altnames", "dev", "host", "ifname", "iif", "label", "master", "name", "netns", "oif",
    "over", "own", "podname", "primary",
];

/// Parses a checkpoint or the node's state. In schema 1 a backslash in a name is one; what has any becomes schema 2.
pub(super) fn parse<T: DeserializeOwned>(
    path: &Path,
    text: &str,
    schema: u32,
) -> Result<T, StoreError> {
    if schema > 1 || !is_ambiguous(text) {
        return file::parse(path, text);
    }
    let mut content: Value = file::parse(path, text)?;
    escape(&mut content, false);
    for schema in ["/schema", "/netfix/schema"] {
        if let Some(schema) = content.pointer_mut(schema) {
            *schema = SCHEMA.into();
        }
    }
    serde_json::from_value(content).map_err(|error| StoreError::corrupt(path, error.to_string()))
}

/// Whether it has a backslash in a text, whose meaning the schema decides.
fn is_ambiguous(text: &str) -> bool {
    text.contains("\\\\")
}

fn escape(value: &mut Value, is_text: bool) {
    match value {
        Value::String(text) if is_text => *text = Bytes::from(text.as_str()).escaped(),
        Value::Array(values) => values.iter_mut().for_each(|value| escape(value, is_text)),
        Value::Object(object) => {
            for (key, value) in object {
                escape(value, TEXTS.contains(&key.as_str()));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::IfName;

    fn read(schema: u32, name: &str) -> Checkpoint {
        let name = serde_json::to_string(name).unwrap();
        let text = format!(
            r#"{{"netns": {name}, "podname": {name}, "ifname": {name},
                "result": {{"interfaces": [{{"name": {name}}}]}}}}"#
        );
        parse(Path::new("x"), &text, schema).unwrap()
    }

    #[test]
    fn a_backslash_of_an_old_file_is_one_and_a_new_one_begins_an_escape() {
        let name = |name: &[u8]| IfName::try_from(Bytes::from(name.to_vec())).unwrap();
        for old in ["a\\b", "a\\\\b", "a\\xfc", "büro"] {
            let checkpoint = read(1, old);
            assert_eq!(checkpoint.ifname, name(old.as_bytes()));
            assert_eq!(checkpoint.result.interfaces[0].name, checkpoint.ifname);
            assert_eq!(checkpoint.podname, Bytes::from(old));
            let written = serde_json::to_string(&checkpoint).unwrap();
            let again: Checkpoint = parse(Path::new("x"), &written, 2).unwrap();
            assert_eq!(again, checkpoint);
        }
        assert_eq!(read(2, "a\\xfc").ifname, name(b"a\xfc"));
    }
}
