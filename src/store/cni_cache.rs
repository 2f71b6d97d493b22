//! Reads libcni's cache.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{StoreError, file};

/// The result folders below a program's cache folder: libcni's, that of kubelet with dockershim, multus's.
const PLACES: [&str; 3] = ["results", "cache/results", "multus/results"];

/// A file of the cache, and its text or why it cannot be read.
pub(crate) type CacheFile = (PathBuf, Result<String, StoreError>);

/// Every file of the cache below `folder`, sorted by name. Fails with `ENOENT` when no folder exists.
pub(crate) fn cni_cache(folder: &Path) -> Result<Vec<CacheFile>, StoreError> {
    let mut files = Vec::new();
    let mut missing = 0;
    for place in PLACES.map(|place| folder.join(place)) {
        let entries = match fs::read_dir(&place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing += 1;
                continue;
            }
            entries => entries.map_err(StoreError::io("cannot read", &place))?,
        };
        for entry in entries {
            files.push(entry.map_err(StoreError::io("cannot read", &place))?.path());
        }
    }
    if missing == PLACES.len() {
        let place = folder.join(PLACES[0]);
        return Err(StoreError::io("cannot read", &place)(
            io::ErrorKind::NotFound.into(),
        ));
    }
    files.sort();
    Ok(files.into_iter().filter_map(read).collect())
}

/// `None` for a file that was removed meanwhile: its pod has ended.
fn read(path: PathBuf) -> Option<CacheFile> {
    let text = file::read(&path).transpose()?;
    Some((path, text))
}
