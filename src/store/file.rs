//! Whole files: read without following links, verified, written atomically.

use std::fmt::Write as _;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use super::{StoreError, disk};

/// The key of the checksum, and its value while the checksum is computed.
const KEY: &str = "\"checksum\": \"sha256:";
const BLANK: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The largest file that netfix reads; the checkpoint of a pod with 100,000 routes has two thirds of it.
const MAX_SIZE: u64 = 32 << 20;

/// The suffix of a temporary file, whose name starts with a dot.
const UNFINISHED: &str = ".tmp";
/// How much of a log's end is read.
const MAX_TAIL: u64 = 256 << 10;
/// The reason for refusing an unsafe file.
pub(super) const NOT_SAFE: &str = "not a regular file that only root can write";

/// A whole file; `None` when it does not exist. Refuses symbolic links and files that others can write, because netfix acts
/// on them as root.
pub(crate) fn read(path: &Path) -> Result<Option<String>, StoreError> {
    let Some((mut file, meta)) = open(path, is_safe)? else {
        return Ok(None);
    };
    if meta.len() > MAX_SIZE {
        return Err(StoreError::corrupt(path, too_large(meta.len())));
    }
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(StoreError::corrupt(path, "not UTF-8 text"))
        }
        Err(error) => Err(StoreError::io("cannot read", path)(error)),
        Ok(_) => Ok(Some(text)),
    }
}

/// The size of a large file and the checksum in it; `None` for any other file. The key of the checksum is among the first of a
/// checkpoint.
pub(super) fn large(path: &Path) -> Option<(u64, String)> {
    const HEAD: u64 = 4096;
    let (file, meta) = open(path, is_ours).ok()??;
    if meta.len() <= LARGE as u64 {
        return None;
    }
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let (_, rest) = head.split_once(KEY)?;
    let (checksum, _) = rest.split_at_checked(BLANK.len())?;
    Some((meta.len(), checksum.to_owned()))
}

fn too_large(size: u64) -> String {
    let (size, limit) = (size >> 20, MAX_SIZE >> 20);
    format!("{size} MiB, and netfix reads at most {limit} MiB")
}

/// The last lines of a file; `None` when it does not exist.
pub(super) fn tail(path: &Path) -> Result<Option<String>, StoreError> {
    let Some((mut file, meta)) = open(path, is_safe)? else {
        return Ok(None);
    };
    let start = meta.len().saturating_sub(MAX_TAIL);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start))
        .and_then(|_| file.take(MAX_TAIL).read_to_end(&mut bytes))
        .map_err(StoreError::io("cannot read", path))?;
    let text = String::from_utf8_lossy(&bytes);
    let whole = if start == 0 {
        Some(&*text)
    } else {
        text.split_once('\n').map(|(_, rest)| rest)
    };
    Ok(Some(whole.unwrap_or_default().to_owned()))
}

/// The bytes of a file that [`is_ours`].
pub(super) fn bytes(path: &Path) -> Option<Vec<u8>> {
    let (mut file, _) = open(path, is_ours).ok()??;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// How netfix opens its own files: never through a link, and never waiting for what is in place of one.
pub(super) const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;

/// Opens a file for reading if it exists; `is_good` checks its metadata.
pub(super) fn open(
    path: &Path,
    is_good: fn(&Metadata) -> bool,
) -> Result<Option<(File, Metadata)>, StoreError> {
    let opened = OpenOptions::new().read(true).custom_flags(FLAGS).open(path);
    let file = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(StoreError::io("cannot open", path))?,
    };
    let meta = file
        .metadata()
        .map_err(StoreError::io("cannot stat", path))?;
    if is_good(&meta) {
        return Ok(Some((file, meta)));
    }
    Err(StoreError::corrupt(path, NOT_SAFE))
}

/// Whether netfix can have written the file and others cannot have changed it.
pub(super) fn is_ours(meta: &Metadata) -> bool {
    is_safe(meta) && meta.len() <= MAX_SIZE
}

/// Whether it is a regular file that others cannot have changed.
pub(super) fn is_safe(meta: &Metadata) -> bool {
    let writable_by_others =
        meta.mode() & 0o022 != 0 || meta.uid() != nix::unistd::geteuid().as_raw();
    meta.is_file() && !writable_by_others
}

/// The names in a folder; none if it does not exist.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(StoreError::io("cannot read", folder))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| {
        let name = entry
            .map_err(StoreError::io("cannot read", folder))?
            .file_name();
        Ok(name.to_string_lossy().into_owned())
    };
    entries.map(name).collect()
}

/// Decodes a file's text.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::corrupt(path, error.to_string()))
}

/// Whether a text has a checksum, right or wrong.
pub(super) fn has_checksum(text: &str) -> bool {
    text.contains(KEY)
}

/// Verifies the checksum in a file.
pub(super) fn verify(path: &Path, text: &str) -> Result<(), StoreError> {
    let corrupt = |reason: &str| Err(StoreError::corrupt(path, reason));
    // A quote inside a JSON string is escaped, so only a real key can match this.
    let Some((before, rest)) = text.split_once(KEY) else {
        return corrupt("no checksum");
    };
    let Some((sum, after)) = rest.split_at_checked(BLANK.len()) else {
        return corrupt("the checksum is truncated");
    };
    if digest(&[before, KEY, BLANK, after]) == sum {
        Ok(())
    } else {
        corrupt("the checksum does not match")
    }
}

fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.as_bytes());
    }
    let mut text = String::with_capacity(BLANK.len());
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Writes a value, with a checksum under the key at the end of `keys`.
pub(super) fn save(path: &Path, value: &impl Serialize, keys: &[&str]) -> Result<(), StoreError> {
    write(path, &encode(path, value, keys)?)
}

/// The text of a value, with a checksum under the key at the end of `keys`.
pub(super) fn encode(
    path: &Path,
    value: &impl Serialize,
    keys: &[&str],
) -> Result<String, StoreError> {
    let text = render(value, keys)
        .map_err(|error| StoreError::write("cannot encode", path)(error.into()))?;
    let size = text.len() as u64;
    if size > MAX_SIZE {
        return Err(StoreError::too_large(path, size >> 20, MAX_SIZE >> 20));
    }
    Ok(text)
}

/// The size in bytes above which a file is large: that of a pod of Kubernetes has some 20 KiB. A large one is not indented: that
/// would double it, and no person reads that many routes.
const LARGE: usize = 1 << 20;

/// JSON without spaces, but for the one in [`KEY`].
struct Dense;

impl serde_json::ser::Formatter for Dense {
    fn begin_object_value<W: io::Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The value as JSON with its checksum.
fn render(value: &impl Serialize, keys: &[&str]) -> Result<String, serde_json::Error> {
    let mut document = serde_json::to_value(value)?;
    let place = keys.iter().fold(&mut document, |at, key| &mut at[*key]);
    *place = format!("sha256:{BLANK}").into();
    let mut text = serde_json::to_string_pretty(&document)?;
    if text.len() > LARGE {
        let mut dense = Vec::new();
        document.serialize(&mut serde_json::Serializer::with_formatter(
            &mut dense, Dense,
        ))?;
        text = String::from_utf8_lossy(&dense).into_owned();
    }
    text.push('\n');
    Ok(with_checksum(&text).unwrap_or(text))
}

/// The text with the right checksum in the place of the one that it has; `None` where it has no place for one.
pub(crate) fn with_checksum(text: &str) -> Option<String> {
    let (before, rest) = text.split_once(KEY)?;
    let (_, after) = rest.split_at_checked(BLANK.len())?;
    let sum = digest(&[before, KEY, BLANK, after]);
    Some(format!("{before}{KEY}{sum}{after}"))
}

/// Replaces a file atomically: temporary file in the same folder, fsync, rename, fsync of the folder.
pub(super) fn write(path: &Path, text: &str) -> Result<(), StoreError> {
    replace(path, text.as_bytes(), 0o600)
}

/// Replaces a file atomically, with these permissions. Where that fails, the old file is unchanged.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    // A bare name means the current folder.
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let folder = parent.unwrap_or(Path::new("."));
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let temporary = folder.join(format!(".{name}{UNFINISHED}"));
    // Where something stays in its place, it cannot be created.
    let _ = disk::remove(&temporary);
    let written = create(&temporary, bytes, mode)
        .and_then(|file| disk::sync(&file))
        .map_err(StoreError::write("cannot write", path))
        .and_then(|()| {
            disk::rename(&temporary, path).map_err(StoreError::write("cannot replace", path))
        });
    if written.is_err() {
        let _ = disk::remove(&temporary);
    }
    written?;
    sync_folder(folder)
}

/// Removes temporary files of a killed netfix. A failure is harmless.
pub(super) fn remove_unfinished(folder: &Path) {
    for name in names(folder).unwrap_or_default() {
        if name.starts_with('.') && name.ends_with(UNFINISHED) {
            let _ = disk::remove(&folder.join(name));
        }
    }
}

/// Creates a file that must not exist yet, with this mode under any umask; the caller syncs it.
pub(super) fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(mode)
        .custom_flags(libc::O_NOFOLLOW);
    let file = disk::open(&options, path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    disk::write(&file, bytes)?;
    Ok(file)
}

/// Makes a rename or removal in a directory durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder)
        .and_then(|folder| disk::sync(&folder))
        .map_err(StoreError::write("cannot sync", folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::problem::StoreCause;

    fn sample() -> String {
        let value = serde_json::json!({"alias": "\"checksum\": \"sha256:"});
        render(&value, &["checksum"]).unwrap()
    }

    #[test]
    fn a_large_file_is_not_indented_and_verifies() {
        let all: Vec<_> = (0..50_000)
            .map(|at| serde_json::json!({"at": at}))
            .collect();
        let value = serde_json::json!({"all": all, "text": "a: b\u{2028}", "checksum": ""});
        let text = render(&value, &["checksum"]).unwrap();
        assert!(text.len() < LARGE, "{}", text.len());
        verify(Path::new("x"), &text).unwrap();
        let mut read: serde_json::Value = parse(Path::new("x"), &text).unwrap();
        read["checksum"] = "".into();
        assert_eq!(read, value);
    }

    #[test]
    fn every_single_flipped_bit_is_noticed() {
        let text = sample();
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let damaged = String::from_utf8(bytes).unwrap();
                assert!(
                    matches!(verify(Path::new("x"), &damaged), Err(error) if matches!(error.cause, StoreCause::Corrupt { .. })),
                    "{damaged}"
                );
            }
        }
    }

    #[test]
    fn every_truncation_is_detected() {
        let text = sample();
        for end in 0..text.len() - 1 {
            assert!(verify(Path::new("x"), &text[..end]).is_err(), "{end}");
        }
    }
}
